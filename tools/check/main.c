/*
 * clconv-check: computes the gradients of many convolutions, or the
 * convolutions, by the library and compares them with fp64. options.c says how
 * to use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "check_row.h"
#include "host.h"
#include "message.h"
#include "options.h"
#include "parent.h"
#include "reference.h"
#include "run.h"

/* ---- Progress ----------------------------------------------------------- */

/* One line on a terminal, written over and over. */
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

/* ---- Rows --------------------------------------------------------------- */

static bool is_wanted(const check_options *o, const case_row *row)
{
    return !o->filter || strstr(row->name, o->filter);
}

/* False if a row could not be judged; others still are. */
static bool check_rows(const check_options *o, runner *library, reference *ref,
                       tally *sum)
{
    bool ok = true;

    for (size_t i = 0; i < o->cases.count; ++i) {
        const case_row *row = &o->cases.items[i];

        if (!is_wanted(o, row))
            continue;
        show_progress(i + 1, o->cases.count, row->name);
        ok = check_row(o, library, ref, row, sum) && ok;
    }
    clear_progress();
    return ok;
}

static int report(bool complete, const tally *sum)
{
    if (!complete)
        message_error("not every row could be judged");
    else if (sum->passed + sum->failed + sum->skipped == 0)
        message_error("no row matches the filter");
    printf("%zu passed, %zu failed, %zu skipped\n", sum->passed, sum->failed,
           sum->skipped);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        message_error("the result cannot be written to stdout");
        complete = false;
    }
    return complete && sum->failed == 0 && sum->passed > 0 ? EXIT_SUCCESS
                                                           : EXIT_FAILURE;
}

/* ---- The whole ---------------------------------------------------------- */

static int check_all(const check_options *o, const host *h)
{
    reference *ref = NULL;
    runner library;
    tally sum = {0, 0, 0};
    bool complete;

    if (!reference_new(h, &ref))
        return EXIT_FAILURE;
    if (!runner_open(h, o->emulate, o->plan, &library)) {
        reference_free(ref);
        return EXIT_FAILURE;
    }
    printf("device: %s / %s\n", h->platform_name, h->device_name);
    complete = check_rows(o, &library, ref, &sum);
    runner_close(&library);
    reference_free(ref);
    return report(complete, &sum);
}

static int open_and_check(const check_options *o)
{
    host h;
    int status;

    if (o->watch_stdin && !parent_watch()) {
        message_error("--watch-stdin: no thread could be started");
        return EXIT_FAILURE;
    }
    switch (host_open(o->device, HOST_IN_ORDER, &h)) {
    case HOST_OK: break;
    case HOST_NO_DEVICE: return HOST_EXIT_SKIP;
    default: return EXIT_FAILURE;
    }
    status = check_all(o, &h);
    host_close(&h);
    return status;
}

int main(int argc, char **argv)
{
    check_options options;
    int status;

    message_program("clconv-check");
    switch (options_read(argc, argv, &options)) {
    case OPTIONS_RUN: status = open_and_check(&options); break;
    case OPTIONS_DONE: status = EXIT_SUCCESS; break;
    default: status = ARGS_EXIT_USAGE; break;
    }
    cases_free(&options.cases);
    return status;
}
