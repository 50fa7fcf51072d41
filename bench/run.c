/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cache.h"
#include "contest.h"
#include "file_out.h"
#include "message.h"
#include "plot.h"
#include "print.h"

/* ---- Facts -------------------------------------------------------------- */

static void get_text(cl_device_id device, cl_device_info what, char *text,
                     size_t size)
{
    if (clGetDeviceInfo(device, what, size, text, NULL))
        text[0] = '\0';
    text[size - 1] = '\0';
}

static bool collect_peaks(const host *h, const bench_options *o,
                          probe_result *out)
{
    *out =
        (probe_result){.fma_flops = NAN, .matrix_flops = NAN, .copy_bytes = NAN};
    return o->no_peaks || probe_run(h, out);
}

static bool collect_facts(const host *h, const bench_options *o, run_facts *out)
{
    run_facts f = {.is_cpu = h->is_cpu,
                   .pocl_affinity = getenv("POCL_AFFINITY"),
                   .cache_bytes = cache_bytes(h)};
    time_t now = time(NULL);

    memcpy(f.platform, h->platform_name, sizeof(f.platform));
    memcpy(f.device, h->device_name, sizeof(f.device));
    get_text(h->device, CL_DRIVER_VERSION, f.driver, sizeof(f.driver));
    if (clGetDeviceInfo(h->device, CL_DEVICE_MAX_COMPUTE_UNITS,
                        sizeof(f.compute_units), &f.compute_units, NULL))
        f.compute_units = 0;
    strftime(f.date, sizeof(f.date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    if (!collect_peaks(h, o, &f.peaks))
        return false;
    *out = f;
    return true;
}

/* ---- Problems ----------------------------------------------------------- */

static int name_width(const case_list *problems)
{
    size_t width = strlen("problem");

    for (size_t i = 0; i < problems->count; ++i) {
        size_t length = strlen(problems->items[i].name);

        width = length > width ? length : width;
    }
    return width > PRINT_NAME_MAX ? PRINT_NAME_MAX : (int)width;
}

static void show_progress(size_t done, size_t count, const char *name)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%zu of %zu  %.60s", done, count, name);
}

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}

/* False if a problem could not be judged; others still are. */
static bool run_problems(const bench_options *o, const contest_rules *rules,
                         bench_result *b)
{
    bool ok = true;

    for (size_t i = 0; i < o->problems.count; ++i) {
        const case_row *problem = &o->problems.items[i];
        row *r = &b->rows[b->count];

        show_progress(i + 1, o->problems.count, problem->name);
        if (!contest_run(rules, &b->columns, problem, r)) {
            ok = false;
            continue;
        }
        clear_progress();
        print_table_row(stdout, b, r);
        fflush(stdout);
        ++b->count;
    }
    clear_progress();
    return ok;
}

/* ---- Output ------------------------------------------------------------- */

static bool write_file(const char *path, const bench_result *b,
                       void (*print)(FILE *to, const bench_result *b))
{
    file_out f;

    if (!path)
        return true;
    if (!file_out_begin(path, &f))
        return false;
    print(f.stream, b);
    return file_out_commit(&f);
}

static bool write_files(const bench_options *o, const bench_result *b)
{
    bool csv = write_file(o->csv, b, print_csv);
    bool json = write_file(o->json, b, print_json);
    bool plot = !o->plot || plot_write(o->plot, b);

    return csv && json && plot;
}

static bool finish_table(const bench_options *o, const bench_result *b)
{
    if (o->mode == MODE_REPORT_COST)
        print_report_cost(stdout, b);
    print_table_end(stdout, b);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    message_error("the table cannot be written to stdout");
    return false;
}

/* ---- The whole ---------------------------------------------------------- */

static bool run_on(const bench_options *o, host *h, bench_result *b)
{
    contest_rules rules = {.host = h,
                           .plan = o->plan,
                           .ops = o->ops,
                           .measure = {.seconds = o->seconds,
                                       .repeats = o->repeats,
                                       .in_bursts = !h->is_cpu}};
    bool complete, written;

    if (!collect_facts(h, o, &b->facts))
        return false;
    rules.cache_bytes = b->facts.cache_bytes;
    print_table_head(stdout, b);
    fflush(stdout);
    complete = run_problems(o, &rules, b);
    written = finish_table(o, b);
    written = write_files(o, b) && written;
    return complete && written && result_is_good(b);
}

int run_comparison(const bench_options *o)
{
    bench_result b = {.columns = o->columns,
                      .ops = o->ops,
                      .plan = o->plan,
                      .name_width = name_width(&o->problems),
                      .left_out = o->left_out};
    bool good;
    host h;

    switch (host_open(o->device, HOST_IN_ORDER, &h)) {
    case HOST_OK: break;
    case HOST_NO_DEVICE: return HOST_EXIT_SKIP;
    default: return EXIT_FAILURE;
    }
    b.rows = malloc(o->problems.count * sizeof(*b.rows));
    if (!b.rows)
        message_error("out of memory");
    good = b.rows && run_on(o, &h, &b);
    free(b.rows);
    host_close(&h);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
