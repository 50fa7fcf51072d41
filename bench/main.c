/*
 * clconv-bench: times the gradients of convolutions, by the library and by
 * others. options.c says how to use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "args.h"
#include "message.h"
#include "options.h"
#include "run.h"
#include "startup.h"

static int list(const case_list *problems)
{
    cases_print(stdout, problems);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_SUCCESS;
    message_error("the list cannot be written to stdout");
    return EXIT_FAILURE;
}

static int run(const bench_options *options, const char *self)
{
    switch (options->mode) {
    case MODE_LIST: return list(&options->problems);
    case MODE_STARTUP: return startup_run(options, self);
    case MODE_STARTUP_CHILD: return startup_child(options);
    default: return run_comparison(options);
    }
}

int main(int argc, char **argv)
{
    bench_options options;
    int status;

    message_program("clconv-bench");
    switch (options_read(argc, argv, &options)) {
    case OPTIONS_RUN: status = run(&options, argv[0]); break;
    case OPTIONS_DONE: status = EXIT_SUCCESS; break;
    default: status = ARGS_EXIT_USAGE; break;
    }
    cases_free(&options.problems);
    return status;
}
