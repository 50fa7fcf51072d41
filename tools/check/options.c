/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "message.h"

static const char usage[] =
    "usage: clconv-check --cases FILE.csv [option]...\n"
    "       clconv-check --problem STRING [option]...\n"
    "\n"
    "Computes the gradients of each convolution, or with --forward its\n"
    "output, and compares them with fp64. A problem in one layout and one\n"
    "kind of arithmetic counts as one check; the last line is\n"
    "\"N passed, N failed, N skipped\".\n"
    "\n"
    "  --cases FILE.csv       convolutions, one a line (may be repeated)\n"
    "  --problem STRING       one more, such as n2c8h9w9k16r3s3p1_nhwc; its\n"
    "                         sizes, layout, math and scale count (may be\n"
    "                         repeated)\n"
    "  --filter TEXT          only rows whose name contains TEXT\n"
    "  --batch N              images, instead of what the row says\n"
    "  --max-gflop X          skip rows with more 1e9 operations a gradient\n"
    "  --layout nchw|nhwc|both     default: a file's rows in both\n"
    "  --math mixed|fp32|both      default: a file's rows in both\n"
    "  --judgements LIST      of integers,random,tiny,edges; default all\n"
    "  --forward              the forward convolution instead: integers with\n"
    "                         bias, ReLU, beta and fp16 tensors, random, "
    "edges\n"
    "  --scale-log2 K         exponent of the cast of dY, default 10; tiny\n"
    "                         gradients must fail at 0\n"
    "  --plan TEXT            kernels to use; rows they do not cover are\n"
    "                         skipped\n"
    "  --emulate UNIT         compute in emulation of a matrix unit, such as\n"
    "                         mma_m16n8k16\n"
    "  --device TEXT          the device whose name contains TEXT\n"
    "  --seed S               of the data, default 1\n"
    "  --verbose              a line for every check\n"
    "  --watch-stdin          end when the other end of stdin, a pipe, is\n"
    "                         closed: with the program that holds it\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 if none failed and at least one passed, 77 without a\n"
    "device, 2 for a wrong option, else 1.\n";

enum {
    OPT_CASES = 256,
    OPT_PROBLEM,
    OPT_FILTER,
    OPT_BATCH,
    OPT_MAX_GFLOP,
    OPT_LAYOUT,
    OPT_MATH,
    OPT_JUDGEMENTS,
    OPT_FORWARD,
    OPT_SCALE_LOG2,
    OPT_PLAN,
    OPT_EMULATE,
    OPT_DEVICE,
    OPT_SEED,
    OPT_VERBOSE,
    OPT_WATCH_STDIN,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"cases", required_argument, NULL, OPT_CASES},
    {"problem", required_argument, NULL, OPT_PROBLEM},
    {"filter", required_argument, NULL, OPT_FILTER},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"max-gflop", required_argument, NULL, OPT_MAX_GFLOP},
    {"layout", required_argument, NULL, OPT_LAYOUT},
    {"math", required_argument, NULL, OPT_MATH},
    {"judgements", required_argument, NULL, OPT_JUDGEMENTS},
    {"forward", no_argument, NULL, OPT_FORWARD},
    {"scale-log2", required_argument, NULL, OPT_SCALE_LOG2},
    {"plan", required_argument, NULL, OPT_PLAN},
    {"emulate", required_argument, NULL, OPT_EMULATE},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"seed", required_argument, NULL, OPT_SEED},
    {"verbose", no_argument, NULL, OPT_VERBOSE},
    {"watch-stdin", no_argument, NULL, OPT_WATCH_STDIN},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0}};

/* ---- Cases -------------------------------------------------------------- */

static bool add_file(const char *path, case_list *cases)
{
    char error[CASES_ERROR_SIZE];
    case_list list;
    bool ok = true;

    if (!cases_read(path, &list, error)) {
        message_error("%s", error);
        return false;
    }
    for (size_t i = 0; ok && i < list.count; ++i)
        ok = cases_add(cases, list.items[i].name, &list.items[i].desc);
    if (!ok)
        message_error("out of memory");
    cases_free(&list);
    return ok;
}

/* Says what of the description the judgements do not take from it. */
static void warn_unused(const char *text, const clconv_desc *desc)
{
    clconv_desc plain;

    clconv_desc_init(&plain);
    if (desc->x_type == plain.x_type && desc->w_type == plain.w_type &&
        desc->dy_type == plain.dy_type && desc->dw_type == plain.dw_type &&
        desc->db_type == plain.db_type && desc->dx_type == plain.dx_type &&
        desc->dy_log2 == plain.dy_log2 && desc->dx_log2 == plain.dx_log2 &&
        desc->y_type == plain.y_type && desc->b_type == plain.b_type &&
        desc->activation == plain.activation &&
        desc->overflow == plain.overflow && desc->alignment == plain.alignment)
        return;
    message_warning(
        "--problem %s: fp16 tensors, relu, dylog, dxlog, inf and "
        "align are not taken from it; the integers judgement tries some",
        text);
}

static bool add_problem(const char *text, case_list *cases)
{
    clconv_desc desc;

    if (clconv_desc_parse(text, &desc)) {
        message_error("--problem: %s", clconv_last_error());
        return false;
    }
    if (!cases_add(cases, text, &desc)) {
        message_error("out of memory");
        return false;
    }
    cases->items[cases->count - 1].is_whole = true;
    warn_unused(text, &desc);
    return true;
}

/* ---- Lists of words ----------------------------------------------------- */

/* "a,b" as a mask: bit i stands for names[i]. */
static bool read_words(const char *option, const char *text,
                       const char *const *names, unsigned *out)
{
    unsigned mask = 0;

    for (;;) {
        char word[32];
        size_t length = strcspn(text, ",");
        int index;

        snprintf(word, sizeof(word), "%.*s", (int)length, text);
        if (!args_choice(option, word, names, &index))
            return false;
        mask |= 1U << index;
        if (text[length] == '\0')
            break;
        text += length + 1;
    }
    *out = mask;
    return true;
}

/* One of two words for bits 1 and 2, or "both". */
static bool read_either(const char *option, const char *text,
                        const char *const *names, unsigned *out)
{
    int index;

    if (!args_choice(option, text, names, &index))
        return false;
    *out = (unsigned)index + 1; /* 1, 2, or both bits */
    return true;
}

/* ---- Options ------------------------------------------------------------ */

static const char *const layout_names[] = {"nchw", "nhwc", "both", NULL};
static const char *const math_names[] = {"mixed", "fp32", "both", NULL};
static const char *const judgement_names[] = {"integers", "random", "tiny",
                                              "edges", NULL};

static bool read_integer(const char *option, int64_t low, int64_t high,
                         int64_t *out)
{
    return args_integer(option, optarg, low, high, out);
}

static bool read_scale(check_options *o)
{
    int64_t value;

    if (!read_integer("--scale-log2", -CLCONV_LOG2_MAX, CLCONV_LOG2_MAX, &value))
        return false;
    o->scale_log2 = (int)value;
    o->scale_given = true;
    return true;
}

static bool read_seed(check_options *o)
{
    int64_t value;

    if (!read_integer("--seed", 0, INT64_MAX, &value))
        return false;
    o->seed = (uint64_t)value;
    return true;
}

static bool read_option(int code, check_options *o)
{
    switch (code) {
    case OPT_CASES: return add_file(optarg, &o->cases);
    case OPT_PROBLEM: return add_problem(optarg, &o->cases);
    case OPT_FILTER: o->filter = optarg; return true;
    case OPT_BATCH: return read_integer("--batch", 1, CASES_MAX, &o->batch);
    case OPT_MAX_GFLOP:
        return args_real("--max-gflop", optarg, 0, 1e12, &o->max_gflop);
    case OPT_LAYOUT:
        return read_either("--layout", optarg, layout_names, &o->layouts);
    case OPT_MATH: return read_either("--math", optarg, math_names, &o->maths);
    case OPT_JUDGEMENTS:
        return read_words("--judgements", optarg, judgement_names,
                          &o->judgements);
    case OPT_FORWARD: o->forward = true; return true;
    case OPT_SCALE_LOG2: return read_scale(o);
    case OPT_PLAN: o->plan = optarg; return true;
    case OPT_EMULATE: o->emulate = optarg; return true;
    case OPT_DEVICE: o->device = optarg; return true;
    case OPT_SEED: return read_seed(o);
    case OPT_WATCH_STDIN: o->watch_stdin = true; return true;
    default: o->verbose = true; return true;
    }
}

static options_result check_rest(int argc, char **argv, const check_options *o)
{
    if (optind < argc) {
        message_error("\"%s\" is not an option; --help lists them",
                      argv[optind]);
        return OPTIONS_WRONG;
    }
    if (o->cases.count == 0) {
        message_error("give --cases FILE.csv or --problem STRING; --help "
                      "says more");
        return OPTIONS_WRONG;
    }
    return OPTIONS_RUN;
}

options_result options_read(int argc, char **argv, check_options *out)
{
    int code;

    *out = (check_options){
        .max_gflop = INFINITY, .judgements = JUDGEMENT_ALL, .seed = 1};
    opterr = 0;
    while ((code = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        switch (code) {
        case OPT_HELP: fputs(usage, stdout); return OPTIONS_DONE;
        case OPT_VERSION:
            printf("clconv-check %s\n", clconv_version());
            return OPTIONS_DONE;
        case '?':
        case ':': args_say_bad_option(code, argv); return OPTIONS_WRONG;
        default:
            if (!read_option(code, out))
                return OPTIONS_WRONG;
        }
    }
    return check_rest(argc, argv, out);
}
