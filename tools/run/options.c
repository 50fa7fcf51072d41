/*
 * One row of long_options and one case of apply_option() for every option;
 * values go through args.h, which says what is wrong with them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>

#include "args.h"
#include "message.h"

/* Longer strides and paddings are typing errors. */
#define MAX_STEP INT32_MAX

enum {
    OPT_DY = 256,
    OPT_X,
    OPT_W,
    OPT_OUT,
    OPT_STRIDE,
    OPT_PAD,
    OPT_DILATION,
    OPT_GROUPS,
    OPT_LAYOUT,
    OPT_MATH,
    OPT_SCALE_LOG2,
    OPT_DY_LOG2,
    OPT_DX_LOG2,
    OPT_OVERFLOW,
    OPT_DW_TYPE,
    OPT_DB_TYPE,
    OPT_DX_TYPE,
    OPT_DEVICE,
    OPT_PLAN,
    OPT_JSON,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"dy", required_argument, NULL, OPT_DY},
    {"x", required_argument, NULL, OPT_X},
    {"w", required_argument, NULL, OPT_W},
    {"out", required_argument, NULL, OPT_OUT},
    {"stride", required_argument, NULL, OPT_STRIDE},
    {"pad", required_argument, NULL, OPT_PAD},
    {"dilation", required_argument, NULL, OPT_DILATION},
    {"groups", required_argument, NULL, OPT_GROUPS},
    {"layout", required_argument, NULL, OPT_LAYOUT},
    {"math", required_argument, NULL, OPT_MATH},
    {"scale-log2", required_argument, NULL, OPT_SCALE_LOG2},
    {"dy-log2", required_argument, NULL, OPT_DY_LOG2},
    {"dx-log2", required_argument, NULL, OPT_DX_LOG2},
    {"overflow", required_argument, NULL, OPT_OVERFLOW},
    {"dw-type", required_argument, NULL, OPT_DW_TYPE},
    {"db-type", required_argument, NULL, OPT_DB_TYPE},
    {"dx-type", required_argument, NULL, OPT_DX_TYPE},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"plan", required_argument, NULL, OPT_PLAN},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: clconv-run --dy FILE --x FILE --w FILE [option]...\n"
    "\n"
    "Gradients of a 2-D convolution: reads dY, X and W from NumPy .npy files\n"
    "(float32 or float16, C order) and writes dw.npy, db.npy and dx.npy.\n"
    "\n"
    "Tensors\n"
    "  --dy FILE           gradient of the output, n,k,p,q (NHWC: n,p,q,k)\n"
    "  --x FILE            input, n,c,h,w (NHWC: n,h,w,c)\n"
    "  --w FILE            filter, k,c/groups,r,s (NHWC: k,r,s,c/groups)\n"
    "  --out DIR           where results go, made if missing (default .)\n"
    "  --dw-type TYPE      f32 (default) or f16; likewise --db-type, "
    "--dx-type\n"
    "\n"
    "Convolution\n"
    "  --stride H,W        default 1; one number stands for both\n"
    "  --pad T,B,L,R       default 0; H,W or one number work too\n"
    "  --dilation H,W      default 1: no holes\n"
    "  --groups G          default 1\n"
    "  --layout LAYOUT     nchw (default) or nhwc\n"
    "\n"
    "Numbers\n"
    "  --math MATH         mixed (default): float16 operands, float32 sums;\n"
    "                      fp32: float32 throughout\n"
    "  --scale-log2 K      the cast of a float32 dY to float16 multiplies by\n"
    "                      2^K (default 10); results are in true units\n"
    "  --dy-log2 K         dY was multiplied by 2^K already (default 0)\n"
    "  --dx-log2 K         store dX times 2^K (default 0)\n"
    "  --overflow POLICY   beyond float16's range: saturate (default) or inf\n"
    "\n"
    "Device and output\n"
    "  --device TEXT       a part of \"platform / device\"\n"
    "  --plan TEXT         a plan, whole or in part, as the output shows it\n"
    "  --json              one JSON object instead of a table\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 success, 1 failure, 2 wrong option, 77 no device.\n";

static bool take_log2(const char *option, int *out)
{
    int64_t value;

    if (!args_integer(option, optarg, -CLCONV_LOG2_MAX, CLCONV_LOG2_MAX, &value))
        return false;
    *out = (int)value;
    return true;
}

static bool take_type(const char *option, clconv_type *out)
{
    static const char *const names[] = {"f32", "f16", NULL};
    int index;

    if (!args_choice(option, optarg, names, &index))
        return false;
    *out = index == 0 ? CLCONV_F32 : CLCONV_F16;
    return true;
}

static bool take_layout(clconv_desc *desc)
{
    static const char *const names[] = {"nchw", "nhwc", NULL};
    int index;

    if (!args_choice("--layout", optarg, names, &index))
        return false;
    desc->layout = index == 0 ? CLCONV_NCHW : CLCONV_NHWC;
    return true;
}

static bool take_math(clconv_desc *desc)
{
    static const char *const names[] = {"mixed", "fp32", NULL};
    int index;

    if (!args_choice("--math", optarg, names, &index))
        return false;
    desc->math = index == 0 ? CLCONV_MIXED : CLCONV_FP32;
    return true;
}

static bool take_overflow(clconv_desc *desc)
{
    static const char *const names[] = {"saturate", "inf", NULL};
    int index;

    if (!args_choice("--overflow", optarg, names, &index))
        return false;
    desc->overflow = index == 0 ? CLCONV_SATURATE : CLCONV_TO_INF;
    return true;
}

/* A pair of steps, height before width. */
static bool take_steps(const char *option, int64_t *h, int64_t *w)
{
    int64_t pair[2];

    if (!args_pair(option, optarg, 1, MAX_STEP, pair))
        return false;
    *h = pair[0];
    *w = pair[1];
    return true;
}

static bool take_padding(clconv_desc *desc)
{
    int64_t sides[4];

    if (!args_sides("--pad", optarg, 0, MAX_STEP, sides))
        return false;
    desc->pad_top = sides[0];
    desc->pad_bottom = sides[1];
    desc->pad_left = sides[2];
    desc->pad_right = sides[3];
    return true;
}

static bool take_text(const char **out)
{
    *out = optarg;
    return true;
}

static bool apply_option(int code, run_options *o)
{
    clconv_desc *desc = &o->desc;

    switch (code) {
    case OPT_DY: return take_text(&o->dy_path);
    case OPT_X: return take_text(&o->x_path);
    case OPT_W: return take_text(&o->w_path);
    case OPT_OUT: return take_text(&o->out_dir);
    case OPT_STRIDE:
        return take_steps("--stride", &desc->stride_h, &desc->stride_w);
    case OPT_PAD: return take_padding(desc);
    case OPT_DILATION:
        return take_steps("--dilation", &desc->dilation_h, &desc->dilation_w);
    case OPT_GROUPS:
        return args_integer("--groups", optarg, 1, MAX_STEP, &desc->groups);
    case OPT_LAYOUT: return take_layout(desc);
    case OPT_MATH: return take_math(desc);
    case OPT_SCALE_LOG2: return take_log2("--scale-log2", &desc->scale_log2);
    case OPT_DY_LOG2: return take_log2("--dy-log2", &desc->dy_log2);
    case OPT_DX_LOG2: return take_log2("--dx-log2", &desc->dx_log2);
    case OPT_OVERFLOW: return take_overflow(desc);
    case OPT_DW_TYPE: return take_type("--dw-type", &desc->dw_type);
    case OPT_DB_TYPE: return take_type("--db-type", &desc->db_type);
    case OPT_DX_TYPE: return take_type("--dx-type", &desc->dx_type);
    case OPT_DEVICE: return take_text(&o->device);
    case OPT_PLAN: return take_text(&o->plan);
    default: o->json = true; return true; /* OPT_JSON */
    }
}

/* Whether nothing is missing and nothing is left over. */
static bool is_complete(const run_options *o, int argc, char **argv)
{
    const char *missing = !o->dy_path  ? "--dy"
                          : !o->x_path ? "--x"
                          : !o->w_path ? "--w"
                                       : NULL;

    if (optind < argc) {
        message_error("%s: files are given as --dy, --x and --w; see --help",
                      argv[optind]);
        return false;
    }
    if (missing)
        message_error("%s FILE is missing; see --help", missing);
    return !missing;
}

options_result options_parse(int argc, char **argv, run_options *out)
{
    run_options o = {.out_dir = "."};
    int code;

    clconv_desc_init(&o.desc);
    opterr = 0;
    while ((code = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        switch (code) {
        case OPT_HELP: fputs(help, stdout); return OPTIONS_DONE;
        case OPT_VERSION:
            printf("clconv-run %s\n", clconv_version());
            return OPTIONS_DONE;
        case '?':
        case ':': args_say_bad_option(code, argv); return OPTIONS_WRONG;
        default:
            if (!apply_option(code, &o))
                return OPTIONS_WRONG;
        }
    }
    if (!is_complete(&o, argc, argv))
        return OPTIONS_WRONG;
    *out = o;
    return OPTIONS_RUN;
}
