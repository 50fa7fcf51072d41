/*
 * clconv-tune: finds the fastest plan for each problem on a device and keeps
 * it where the library looks. options.c says how to use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdlib.h>

#include "args.h"
#include "interrupt.h"
#include "message.h"
#include "options.h"
#include "records.h"
#include "tune.h"
#include "verify.h"
#include "worker.h"

/* What a command needs besides the records. */
typedef enum need { NEED_NOTHING, NEED_DEVICE, NEED_WORKERS } need;

static const struct {
    need need;
    int (*work)(station *s);
} commands[] = {
    [TUNE_PROBLEMS] = {NEED_WORKERS, tune_problems},
    [TUNE_VERIFY] = {NEED_WORKERS, verify_records},
    [TUNE_LIST] = {NEED_NOTHING, records_list},
    [TUNE_MERGE] = {NEED_NOTHING, records_merge},
    [TUNE_EXPORT] = {NEED_DEVICE, records_export},
    [TUNE_IMPORT] = {NEED_DEVICE, records_import},
    [TUNE_CLEAN] = {NEED_DEVICE, records_clean},
};

static int make_ready(station *s, need wanted, const char *argv0)
{
    int status = wanted >= NEED_DEVICE ? station_find_device(s) : EXIT_SUCCESS;
    if (status == EXIT_SUCCESS && wanted >= NEED_WORKERS &&
        !station_start(s, argv0))
        status = EXIT_FAILURE;
    return status;
}

static int work(const tune_options *o, const char *argv0)
{
    station s;
    int status = station_open(o, &s);
    if (status != EXIT_SUCCESS)
        return status;
    if (commands[o->command].need == NEED_WORKERS)
        interrupt_catch();
    status = make_ready(&s, commands[o->command].need, argv0);
    if (status == EXIT_SUCCESS)
        status = commands[o->command].work(&s);
    station_close(&s);
    return status;
}

static int work_for_parent(const tune_options *o)
{
    const worker_options w = {o->device, o->cache_dir, o->inject};
    return worker_main(&w);
}

int main(int argc, char **argv)
{
    tune_options options;
    int status;
    message_program("clconv-tune");
    signal(SIGPIPE, SIG_IGN);
    switch (options_read(argc, argv, &options)) {
    case OPTIONS_RUN:
        status = options.command == TUNE_WORKER ? work_for_parent(&options)
                                                : work(&options, argv[0]);
        break;
    case OPTIONS_DONE: status = EXIT_SUCCESS; break;
    default: status = ARGS_EXIT_USAGE; break;
    }
    cases_free(&options.problems);
    return status;
}
