/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "options.h"

#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "message.h"
#include "plan.h"
#include "pool.h"
#include "problem_list.h"

#define LIMIT_DEFAULT 60
#define DURATION_MAX (30 * 86400.0) /* a month */

static const char usage[] =
    "usage: clconv-tune [PROBLEM | --set NAME | --file FILE]... [option]...\n"
    "       clconv-tune verify | list | clean [option]...\n"
    "       clconv-tune merge FILE... [option]...\n"
    "       clconv-tune export FILE | import FILE [option]...\n"
    "\n"
    "Looks for the fastest plan for each problem on this device, and keeps\n"
    "it as a record in the cache directory, with its compiled programs: from\n"
    "then on clconv_plan_create() takes it. Candidates run in processes of\n"
    "their own, so that a driver that crashes or hangs costs one candidate.\n"
    "A winner has passed clconv-check, with as many of the problem's images\n"
    "as make 10 GFLOP a gradient and 2 million numbers a tensor, and is not\n"
    "slower than the default plan.\n"
    "\n"
    "Problems\n"
    "  PROBLEM             such as n32c64h16w16k64r3s3p1; clconv.h says more\n"
    "  --set NAME          a named list; --list-sets prints them\n"
    "  --file FILE         FILE.csv: one convolution a row; else one problem\n"
    "                      string a line, # begins a comment\n"
    "\n"
    "The search\n"
    "  --device TEXT       the device whose name contains TEXT\n"
    "  --budget TIME       for all problems together, such as 90s, 5m, 2h;\n"
    "                      default a minute a problem\n"
    "  --trials N          candidates of each gradient at most, within the\n"
    "                      budget; default: as many as fit\n"
    "  --resume            take what the journal has of an earlier run; plans\n"
    "                      that crashed or hung are never tried again\n"
    "  --seed N            of the search, default 1\n"
    "  --plan TEXT         only plans with these kernels and values, such as\n"
    "                      \"bwd_data_panel:span=8;bwd_weight_panel\"\n"
    "  --jobs N            processes that compile at once, default: cores, 16\n"
    "                      at most; one of them times, alone\n"
    "  --time-limit TIME   for a candidate to compile and run once, default\n"
    "                      60s\n"
    "  --exhaustive FILE.csv  every candidate, whatever it takes; a row for\n"
    "                      each, and how the search does on these numbers\n"
    "  --cache-dir DIR     for records, journal and programs; default as the\n"
    "                      library: $CLCONV_CACHE_DIR, else ~/.cache/clconv\n"
    "\n"
    "Commands\n"
    "  verify              times and judges this device's records again, also\n"
    "                      those of another driver, and drops what is wrong\n"
    "                      or slower than the default plan\n"
    "  list                prints the records\n"
    "  merge FILE...       takes better records from text files, one a line\n"
    "  export FILE         writes this device's records and programs\n"
    "  import FILE         reads what export wrote on such a device\n"
    "  clean               removes this device's records, journal, programs\n"
    "\n"
    "  --inject DEED:TEXT  for tests: workers misbehave at plans that contain\n"
    "                      TEXT; DEED is crash, crash-timed, hang,\n"
    "                      hang-timed, quit or wrong\n"
    "  --list-sets, --help, --version\n"
    "\n"
    "On a CPU workers run with POCL_AFFINITY=1, a thread to a core, so that\n"
    "times are steady.\n"
    "\n"
    "Exit status: 0 if every problem has a record (every command: if it did\n"
    "its work), 2 for a wrong option, 77 without a device, else 1.\n";

enum {
    OPT_SET = 256,
    OPT_FILE,
    OPT_DEVICE,
    OPT_BUDGET,
    OPT_TRIALS,
    OPT_RESUME,
    OPT_SEED,
    OPT_PLAN,
    OPT_JOBS,
    OPT_TIME_LIMIT,
    OPT_EXHAUSTIVE,
    OPT_CACHE_DIR,
    OPT_INJECT,
    OPT_WORKER,
    OPT_LIST_SETS,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"set", required_argument, NULL, OPT_SET},
    {"file", required_argument, NULL, OPT_FILE},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"budget", required_argument, NULL, OPT_BUDGET},
    {"trials", required_argument, NULL, OPT_TRIALS},
    {"resume", no_argument, NULL, OPT_RESUME},
    {"seed", required_argument, NULL, OPT_SEED},
    {"plan", required_argument, NULL, OPT_PLAN},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"time-limit", required_argument, NULL, OPT_TIME_LIMIT},
    {"exhaustive", required_argument, NULL, OPT_EXHAUSTIVE},
    {"cache-dir", required_argument, NULL, OPT_CACHE_DIR},
    {"inject", required_argument, NULL, OPT_INJECT},
    /* How the program starts its workers; for nobody else. */
    {"worker", no_argument, NULL, OPT_WORKER},
    {"list-sets", no_argument, NULL, OPT_LIST_SETS},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0}};

/* What stands behind the word of a command. */
static const struct {
    const char *word;
    tune_command command;
    int min_files, max_files;
} commands[] = {
    {"verify", TUNE_VERIFY, 0, 0},     {"list", TUNE_LIST, 0, 0},
    {"merge", TUNE_MERGE, 1, 1 << 20}, {"export", TUNE_EXPORT, 1, 1},
    {"import", TUNE_IMPORT, 1, 1},     {"clean", TUNE_CLEAN, 0, 0},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* ---- Values ------------------------------------------------------------ */

bool options_duration(const char *option, const char *text, double *out)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end;
    double value = strtod(text, &end);
    bool is_number = end != text && strspn(text, "0123456789.") > 0;
    for (size_t i = 0; is_number && i < sizeof units / sizeof units[0]; ++i) {
        double seconds = value * units[i].seconds;
        bool is_last = *end == '\0' || end[1] == '\0';
        if (*end == units[i].unit && is_last && seconds > 0 &&
            seconds <= DURATION_MAX) {
            *out = seconds;
            return true;
        }
    }
    message_error("%s %s: must be a time such as 90s, 5m or 2h, more than 0 "
                  "and at most 30d",
                  option, text);
    return false;
}

static bool read_integer(const char *option, int64_t low, int64_t high,
                         int64_t *out)
{
    return args_integer(option, optarg, low, high, out);
}

static bool read_seed(tune_options *o)
{
    int64_t value;
    if (!read_integer("--seed", 0, INT64_MAX, &value))
        return false;
    o->seed = (uint64_t)value;
    return true;
}

static bool read_trials(tune_options *o)
{
    int64_t value;
    if (!read_integer("--trials", 1, INT_MAX, &value))
        return false;
    o->trials = (int)value;
    return true;
}

static bool read_jobs(tune_options *o)
{
    int64_t value;
    if (!read_integer("--jobs", 1, POOL_MAX_JOBS, &value))
        return false;
    o->jobs = (int)value;
    return true;
}

static bool read_plan(tune_options *o)
{
    clconv_choice choices[CLCONV_ROLES];
    o->plan = optarg;
    if (clconv_choices_parse(optarg, choices) == CLCONV_OK)
        return true;
    message_error("--plan: %s", clconv_last_error());
    return false;
}

static bool apply_option(int code, tune_options *o)
{
    switch (code) {
    case OPT_SET: return problem_list_add_set(optarg, NULL, &o->problems);
    case OPT_FILE: return problem_list_add_file(optarg, NULL, &o->problems);
    case OPT_DEVICE: o->device = optarg; return true;
    case OPT_BUDGET: return options_duration("--budget", optarg, &o->budget);
    case OPT_TRIALS: return read_trials(o);
    case OPT_RESUME: o->resume = true; return true;
    case OPT_SEED: return read_seed(o);
    case OPT_PLAN: return read_plan(o);
    case OPT_JOBS: return read_jobs(o);
    case OPT_TIME_LIMIT:
        return options_duration("--time-limit", optarg, &o->limit);
    case OPT_EXHAUSTIVE: o->exhaustive = optarg; return true;
    case OPT_CACHE_DIR: o->cache_dir = optarg; return true;
    case OPT_INJECT:
        o->inject_text = optarg;
        return inject_parse("--inject", optarg, &o->inject);
    default: o->command = TUNE_WORKER; return true;
    }
}

/* ---- What stands between options --------------------------------------- */

/* The row of the word, COMMANDS if it is none. */
static int find_command(const char *word)
{
    int i = 0;
    while (i < COMMANDS && strcmp(word, commands[i].word) != 0)
        ++i;
    return i;
}

static bool problems_are_valid(const case_list *problems)
{
    for (size_t i = 0; i < problems->count; ++i)
        if (clconv_desc_validate(&problems->items[i].desc)) {
            message_error("%s: %s", problems->items[i].name,
                          clconv_last_error());
            return false;
        }
    return true;
}

static bool take_problems(int count, char **words, tune_options *o)
{
    for (int i = 0; i < count; ++i)
        if (!problem_list_add_text(words[i], NULL, &o->problems))
            return false;
    if (o->problems.count == 0)
        message_error("give a PROBLEM, --set NAME, --file FILE or a command; "
                      "--help says more");
    return o->problems.count > 0 && problems_are_valid(&o->problems);
}

static bool take_files(int row, int count, char **words, tune_options *o)
{
    o->command = commands[row].command;
    o->files = words;
    o->file_count = count;
    if (o->problems.count > 0)
        message_error("%s works on records: leave --set and --file out",
                      commands[row].word);
    else if (count < commands[row].min_files)
        message_error("%s needs a FILE", commands[row].word);
    else if (count > commands[row].max_files)
        message_error("%s: \"%s\" is too much: %s", commands[row].word,
                      words[commands[row].max_files],
                      commands[row].max_files ? "it takes one FILE"
                                              : "it takes no FILE");
    else
        return true;
    return false;
}

static bool take_words(int argc, char **argv, tune_options *o)
{
    int row = optind < argc ? find_command(argv[optind]) : COMMANDS;
    if (o->command == TUNE_WORKER)
        return true;
    if (row < COMMANDS)
        return take_files(row, argc - optind - 1, argv + optind + 1, o);
    return take_problems(argc - optind, argv + optind, o);
}

static options_result print_and_stop(int code)
{
    switch (code) {
    case OPT_HELP: fputs(usage, stdout); break;
    case OPT_LIST_SETS: problem_list_print_sets(); break;
    default: printf("clconv-tune %s\n", clconv_version()); break;
    }
    return OPTIONS_DONE;
}

options_result options_read(int argc, char **argv, tune_options *out)
{
    int code;
    *out = (tune_options){.limit = LIMIT_DEFAULT, .seed = 1};
    opterr = 0;
    while ((code = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        switch (code) {
        case OPT_HELP:
        case OPT_LIST_SETS:
        case OPT_VERSION: return print_and_stop(code);
        case '?':
        case ':': args_say_bad_option(code, argv); return OPTIONS_WRONG;
        default:
            if (!apply_option(code, out))
                return OPTIONS_WRONG;
        }
    }
    return take_words(argc, argv, out) ? OPTIONS_RUN : OPTIONS_WRONG;
}
