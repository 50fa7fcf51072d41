/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "file_out.h"
#include "message.h"
#include "plot.h"
#include "problem_list.h"

#define SECONDS_DEFAULT 2
#define SECONDS_MAX 3600
#define REPEATS_DEFAULT 5
#define REPEATS_MAX 100000

static const char usage[] =
    "usage: clconv-bench [PROBLEM | --set NAME | --file FILE]... [option]...\n"
    "       clconv-bench --startup PROBLEM [option]...\n"
    "\n"
    "Times the gradients dW, db and dX of convolutions, from plain fp32\n"
    "tensors to plain fp32 tensors, by this library and by others, in turns;\n"
    "first it holds their results against each other.\n"
    "\n"
    "Problems\n"
    "  PROBLEM             sizes, such as n32c64h16w16k64r3s3p1, or with "
    "_nhwc\n"
    "  --set NAME          a named list; --list-sets prints them\n"
    "  --file FILE         FILE.csv: one convolution a row; else one problem\n"
    "                      string a line, # begins a comment\n"
    "  --batch N           images, instead of what the problem says\n"
    "  --layout nchw|nhwc  instead of what the problem says\n"
    "  --max-gflop X       leave out problems with more 1e9 operations a\n"
    "                      gradient\n"
    "\n"
    "What is timed\n"
    "  --ops LIST          of dw,db,dx; default all\n"
    "  --only LIST         contenders, listed below; default: those marked *\n"
    "  --plan TEXT         the library's kernels, as clconv_plan_explain()\n"
    "                      prints them; default: its choice\n"
    "  --device TEXT       the device whose name contains TEXT\n"
    "  --seconds S         time for each contender and problem, default 2\n"
    "  --repeats N         calls of each at least, default 5\n"
    "  --no-peaks          do not measure what the device can do at best, "
    "which\n"
    "                      takes some seconds: no shares of it\n"
    "\n"
    "Output, besides the table\n"
    "  --csv FILE          a row for each problem and contender\n"
    "  --json FILE         the same, with all else, as one object\n"
    "  --plot FILE.svg     the ratios as a picture (needs gnuplot)\n"
    "\n"
    "Instead of timing\n"
    "  --list              prints the problems as a CSV file for --file\n"
    "\n"
    "Other measurements\n"
    "  --report-cost       what counting casts in a report buffer costs\n"
    "  --startup PROBLEM   time to the first result in a new process, with\n"
    "                      empty caches and with full ones; --repeats\n"
    "                      processes of each kind\n"
    "  --list-sets, --help, --version\n"
    "\n"
    "Exit status: 0; 1 if a contender failed or its results were wrong; 2 for\n"
    "a wrong option; 77 without a device.\n";

enum {
    OPT_SET = 256,
    OPT_FILE,
    OPT_BATCH,
    OPT_LAYOUT,
    OPT_MAX_GFLOP,
    OPT_OPS,
    OPT_ONLY,
    OPT_PLAN,
    OPT_DEVICE,
    OPT_SECONDS,
    OPT_REPEATS,
    OPT_NO_PEAKS,
    OPT_CSV,
    OPT_JSON,
    OPT_PLOT,
    OPT_LIST,
    OPT_REPORT_COST,
    OPT_STARTUP,
    OPT_STARTUP_CHILD,
    OPT_LIST_SETS,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"set", required_argument, NULL, OPT_SET},
    {"file", required_argument, NULL, OPT_FILE},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"layout", required_argument, NULL, OPT_LAYOUT},
    {"max-gflop", required_argument, NULL, OPT_MAX_GFLOP},
    {"ops", required_argument, NULL, OPT_OPS},
    {"only", required_argument, NULL, OPT_ONLY},
    {"plan", required_argument, NULL, OPT_PLAN},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"repeats", required_argument, NULL, OPT_REPEATS},
    {"no-peaks", no_argument, NULL, OPT_NO_PEAKS},
    {"csv", required_argument, NULL, OPT_CSV},
    {"json", required_argument, NULL, OPT_JSON},
    {"plot", required_argument, NULL, OPT_PLOT},
    {"list", no_argument, NULL, OPT_LIST},
    {"report-cost", no_argument, NULL, OPT_REPORT_COST},
    {"startup", required_argument, NULL, OPT_STARTUP},
    /* How --startup starts its processes; for nobody else. */
    {"startup-child", required_argument, NULL, OPT_STARTUP_CHILD},
    {"list-sets", no_argument, NULL, OPT_LIST_SETS},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0}};

/* What is applied once all options are known. */
typedef struct late_options {
    problem_changes changes;
    const char *only;
} late_options;

/* ---- Values ------------------------------------------------------------- */

static bool read_layout(problem_changes *changes)
{
    static const char *const names[] = {"nchw", "nhwc", NULL};
    int index;

    if (!args_choice("--layout", optarg, names, &index))
        return false;
    changes->has_layout = true;
    changes->layout = index == 0 ? CLCONV_NCHW : CLCONV_NHWC;
    return true;
}

static bool read_ops(unsigned *out)
{
    static const char *const names[] = {"dw", "db", "dx", NULL};
    static const unsigned ops[] = {CLCONV_OP_DW, CLCONV_OP_DB, CLCONV_OP_DX};
    unsigned mask = 0;

    for (const char *at = optarg;;) {
        size_t length = strcspn(at, ",");
        char word[16];
        int index;

        snprintf(word, sizeof(word), "%.*s", (int)length, at);
        if (!args_choice("--ops", word, names, &index))
            return false;
        mask |= ops[index];
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    *out = mask;
    return true;
}

static bool set_mode(bench_mode mode, bench_options *o)
{
    if (o->mode != MODE_COMPARE) {
        message_error("--list, --report-cost and --startup are runs of their "
                      "own: give one of them, once");
        return false;
    }
    o->mode = mode;
    return true;
}

static bool apply_option(int code, bench_options *o, late_options *late)
{
    switch (code) {
    case OPT_SET: return problems_add_set(optarg, &o->problems);
    case OPT_FILE: return problems_add_file(optarg, &o->problems);
    case OPT_BATCH:
        return args_integer("--batch", optarg, 1, CASES_MAX,
                            &late->changes.batch);
    case OPT_LAYOUT: return read_layout(&late->changes);
    case OPT_MAX_GFLOP:
        return args_real("--max-gflop", optarg, 0, 1e12,
                         &late->changes.max_gflop);
    case OPT_OPS: return read_ops(&o->ops);
    case OPT_ONLY: late->only = optarg; return true;
    case OPT_PLAN: o->plan = optarg; return true;
    case OPT_DEVICE: o->device = optarg; return true;
    case OPT_SECONDS:
        return args_real("--seconds", optarg, 0, SECONDS_MAX, &o->seconds);
    case OPT_REPEATS:
        return args_integer("--repeats", optarg, 1, REPEATS_MAX, &o->repeats);
    case OPT_NO_PEAKS: o->no_peaks = true; return true;
    case OPT_CSV: o->csv = optarg; return true;
    case OPT_JSON: o->json = optarg; return true;
    case OPT_PLOT: o->plot = optarg; return true;
    case OPT_LIST: return set_mode(MODE_LIST, o);
    case OPT_REPORT_COST: return set_mode(MODE_REPORT_COST, o);
    case OPT_STARTUP:
        return set_mode(MODE_STARTUP, o) &&
               problems_add_text(optarg, &o->problems);
    default: /* OPT_STARTUP_CHILD */
        o->startup_kind = optarg;
        return set_mode(MODE_STARTUP_CHILD, o);
    }
}

/* ---- All together ------------------------------------------------------- */

static bool take_problems(int argc, char **argv, bench_options *o)
{
    for (int i = optind; i < argc; ++i) {
        if (!problems_add_text(argv[i], &o->problems))
            return false;
    }
    if (o->problems.count == 0)
        message_error("give a PROBLEM, --set NAME or --file FILE; --help and "
                      "--list-sets say more");
    return o->problems.count > 0;
}

static bool take_columns(const late_options *late, bench_options *o)
{
    if (o->mode == MODE_REPORT_COST) {
        if (late->only)
            message_error("--report-cost compares mixed with itself: leave "
                          "--only out");
        o->columns = columns_of_report();
        return !late->only;
    }
    o->columns = columns_default();
    return !late->only || columns_named(late->only, &o->columns);
}

static bool startup_is_alone(const bench_options *o)
{
    if (o->mode != MODE_STARTUP)
        return true;
    if (o->problems.count != 1)
        message_error("--startup takes one problem, its own");
    else if (o->csv || o->json || o->plot)
        message_error("--startup writes no file: leave --csv, --json and "
                      "--plot out");
    else
        return true;
    return false;
}

static bool plot_has_points(const bench_options *o)
{
    if (o->plot && o->columns.count < 2)
        message_error("--plot draws ratios: give --only two contenders at "
                      "least");
    return !o->plot || o->columns.count >= 2;
}

/* Long work shall not end at a file that cannot be written. */
static bool outputs_are_possible(const bench_options *o)
{
    return (!o->csv || file_out_possible("--csv", o->csv)) &&
           (!o->json || file_out_possible("--json", o->json)) &&
           (!o->plot ||
            (plot_possible() && file_out_possible("--plot", o->plot)));
}

static bool complete(int argc, char **argv, const late_options *late,
                     bench_options *o)
{
    return take_problems(argc, argv, o) &&
           problems_change(&o->problems, &late->changes, &o->left_out) &&
           startup_is_alone(o) && take_columns(late, o) && plot_has_points(o) &&
           outputs_are_possible(o);
}

static void print_help(void)
{
    fputs(usage, stdout);
    fputs("\nContenders\n", stdout);
    for (int i = 0; i < contender_count; ++i) {
        const contender *c = contenders[i];
        const char *version = c->version();

        printf("%c %-18s %s%s\n", version && !c->by_request ? '*' : ' ', c->name,
               version ? "" : "not built: ", version ? c->summary : c->missing);
    }
}

static options_result print_and_stop(int code)
{
    switch (code) {
    case OPT_HELP: print_help(); break;
    case OPT_LIST_SETS: problem_list_print_sets(); break;
    default: printf("clconv-bench %s\n", clconv_version()); break;
    }
    return OPTIONS_DONE;
}

options_result options_read(int argc, char **argv, bench_options *out)
{
    late_options late = {.changes.max_gflop = INFINITY};
    int code;

    *out = (bench_options){.ops = CLCONV_OP_BACKWARD,
                           .seconds = SECONDS_DEFAULT,
                           .repeats = REPEATS_DEFAULT};
    opterr = 0;
    while ((code = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        switch (code) {
        case OPT_HELP:
        case OPT_LIST_SETS:
        case OPT_VERSION: return print_and_stop(code);
        case '?':
        case ':': args_say_bad_option(code, argv); return OPTIONS_WRONG;
        default:
            if (!apply_option(code, out, &late))
                return OPTIONS_WRONG;
        }
    }
    return complete(argc, argv, &late, out) ? OPTIONS_RUN : OPTIONS_WRONG;
}
