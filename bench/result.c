/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "result.h"

#include <math.h>
#include <stdlib.h>

const char *result_status_name(entry_status status)
{
    static const char *const names[] = {[ENTRY_TIMED] = "timed",
                                        [ENTRY_UNSUPPORTED] = "unsupported",
                                        [ENTRY_FAILED] = "FAILED",
                                        [ENTRY_WRONG] = "WRONG"};

    return names[status];
}

static double seconds(const row *r, int column)
{
    const entry *e = &r->entries[column];

    return e->status == ENTRY_TIMED ? e->seconds.median : (double)NAN;
}

double result_gflops(const row *r, int column)
{
    return 1e-9 * r->flop / seconds(r, column);
}

double result_roofline(const bench_result *b, const row *r, int column)
{
    const probe_result *peaks = &b->facts.peaks;
    work w = {.flop = r->flop, .bytes = r->entries[column].bytes};
    double peak = roofline_peak(peaks, b->columns.items[column]->name);

    return roofline_floor(&w, peak, peaks->copy_bytes) / seconds(r, column);
}

double result_ratio(const bench_result *b, const row *r, int column)
{
    return seconds(r, column) / seconds(r, b->columns.base);
}

ratio_summary result_summarize(const bench_result *b, int column)
{
    ratio_summary s = {.mean = NAN};
    double logarithms = 0;

    for (size_t i = 0; i < b->count; ++i) {
        const row *r = &b->rows[i];
        double ratio = result_ratio(b, r, column);

        if (isnan(ratio))
            continue;
        if (s.count == 0 || ratio < s.least)
            s.least = ratio, s.least_row = r;
        if (s.count == 0 || ratio > s.largest)
            s.largest = ratio, s.largest_row = r;
        logarithms += log(ratio);
        ++s.count;
    }
    if (s.count)
        s.mean = exp(logarithms / (double)s.count);
    return s;
}

bool result_is_good(const bench_result *b)
{
    for (size_t i = 0; i < b->count; ++i) {
        for (int c = 0; c < b->columns.count; ++c) {
            entry_status status = b->rows[i].entries[c].status;

            if (status == ENTRY_FAILED || status == ENTRY_WRONG)
                return false;
        }
    }
    return true;
}
