/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "print.h"

#include <math.h>

/* "report" beside "mixed", the base. */
#define REPORT 1

void print_report_cost(FILE *to, const bench_result *b)
{
    ratio_summary s = result_summarize(b, REPORT);

    if (s.count == 0)
        return;
    fputs("\ncost of the report, percent of the time without it\n", to);
    for (size_t i = 0; i < b->count; ++i) {
        double ratio = result_ratio(b, &b->rows[i], REPORT);

        if (!isnan(ratio))
            fprintf(to, "  %-*s %+7.1f %%\n", b->name_width, b->rows[i].name,
                    100 * (ratio - 1));
    }
    fprintf(to, "  %-*s %+7.1f %%, from %+.1f to %+.1f %%\n", b->name_width,
            "geometric mean", 100 * (s.mean - 1), 100 * (s.least - 1),
            100 * (s.largest - 1));
}
