/*
 * clconv-gen: prints the OpenCL C that a plan runs, without OpenCL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner.h"

static const char usage[] =
    "usage: clconv-gen [options] PROBLEM [PLAN]\n"
    "Prints the generated OpenCL C of every kernel of a plan.\n"
    "\n"
    "  PROBLEM           such as n64c128h28w28k128r3s3p1_nhwc\n"
    "  PLAN              such as \"bwd_data_generic:vec=16\"; what it leaves\n"
    "                    open is chosen as on the device\n"
    "  --device PRESET   cpu (default; AVX-512), cpu_avx2, gpu, sm_75, sm_80,\n"
    "                    sm_86, sm_89 or sm_90\n"
    "  --emulate UNIT    as if the device had this matrix unit, its products\n"
    "                    in plain OpenCL C: mma_m16n8k8, mma_m16n8k16 or\n"
    "                    wgmma\n"
    "  --only KERNEL     this kernel's source alone\n"
    "  --list            the kernels and their parameters\n"
    "  --help\n";

typedef struct gen_options {
    const char *problem, *plan, *only;
    clconv_device device;
} gen_options;

static void list_param(const clconv_param *p)
{
    printf("    %s: %s; ", p->name, p->help);
    for (int v = 0; v < p->count; ++v)
        if (p->names[0])
            printf("%s%s", v ? ", " : "", p->names[v]);
        else
            printf("%s%d", v ? ", " : "", p->values[v]);
    printf("\n");
}

static void list_kernels(void)
{
    for (int i = 0; i < clconv_kernel_count; ++i) {
        const clconv_kernel *k = clconv_kernels[i];
        printf("%s (revision %d): %s\n", k->name, k->revision, k->summary);
        for (int j = 0; j < k->param_count; ++j)
            list_param(&k->params[j]);
    }
}

static int fail_usage(const char *what, const char *argument)
{
    fprintf(stderr, "clconv-gen: %s%s; see clconv-gen --help\n", what, argument);
    return 2;
}

/* 0: go on; 1: done, successfully; 2: a usage error, said. */
static int parse_options(int argc, char **argv, gen_options *out)
{
    enum { DEVICE = 256, EMULATE, ONLY, LIST, HELP };
    static const struct option longs[] = {
        {"device", required_argument, NULL, DEVICE},
        {"emulate", required_argument, NULL, EMULATE},
        {"only", required_argument, NULL, ONLY},
        {"list", no_argument, NULL, LIST},
        {"help", no_argument, NULL, HELP},
        {0},
    };
    clconv_unit_id emulate = CLCONV_UNIT_NONE;
    clconv_device_preset("cpu", &out->device);
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case DEVICE:
            if (!clconv_device_preset(optarg, &out->device))
                return fail_usage(
                    "--device must be cpu, cpu_avx2, gpu, sm_75, sm_80, "
                    "sm_86, sm_89 or sm_90, not ",
                    optarg);
            break;
        case EMULATE:
            emulate = clconv_unit_find(optarg);
            if (emulate == CLCONV_UNITS || emulate == CLCONV_UNIT_NONE)
                return fail_usage(
                    "--emulate must be mma_m16n8k8, mma_m16n8k16 or "
                    "wgmma, not ",
                    optarg);
            break;
        case ONLY:
            if (!clconv_kernel_find(optarg, strlen(optarg)))
                return fail_usage("--only: no kernel ", optarg);
            out->only = optarg;
            break;
        case LIST: list_kernels(); return 1;
        case HELP: fputs(usage, stdout); return 1;
        default: return 2;
        }
    }
    if (emulate != CLCONV_UNIT_NONE)
        clconv_device_emulate(&out->device, emulate);
    if (optind >= argc)
        return fail_usage("PROBLEM is missing", "");
    if (argc - optind > 2)
        return fail_usage("one argument too many: ", argv[optind + 2]);
    out->problem = argv[optind];
    out->plan = optind + 1 < argc ? argv[optind + 1] : NULL;
    return 0;
}

static bool print_step(const clconv_steps *steps, int index,
                       const gen_options *o)
{
    const clconv_kernel *k = steps->step[index].kernel;
    if (o->only && strcmp(o->only, k->name) != 0)
        return true;
    clconv_task task = clconv_step_task(steps, index, &o->device);
    clconv_text why = CLCONV_TEXT_EMPTY;
    char *source = clconv_kernel_source(k, &task, &why);
    if (!source) {
        fprintf(stderr, "clconv-gen: %s: %s\n", k->name,
                why.data ? why.data : "out of memory");
        clconv_text_free(&why);
        return false;
    }
    printf("/* Step %d: %s */\n\n%s", index + 1, k->name, source);
    free(source);
    return true;
}

static bool has_kernel(const clconv_steps *steps, const char *name)
{
    for (int i = 0; i < steps->count; ++i)
        if (strcmp(steps->step[i].kernel->name, name) == 0)
            return true;
    return false;
}

/* Y if the plan names a kernel for it, else all gradients. */
static unsigned ops_of(const char *plan)
{
    clconv_choice choices[CLCONV_ROLES];
    bool forward = clconv_choices_parse(plan, choices) == CLCONV_OK &&
                   choices[CLCONV_ROLE_FORWARD].kernel;
    return forward ? CLCONV_OP_FORWARD : CLCONV_OP_BACKWARD;
}

static clconv_status make_steps(const gen_options *o, clconv_steps *out)
{
    clconv_desc desc;
    clconv_problem problem;
    clconv_request request = {
        .ops = ops_of(o->plan),
        .max_workspace = SIZE_MAX,
        .plan = o->plan,
    };
    clconv_status status = clconv_desc_parse(o->problem, &desc);
    if (status == CLCONV_OK)
        status = clconv_problem_init(&desc, &problem);
    if (status == CLCONV_OK)
        status = clconv_planner_choose(&problem, &o->device, &request, out);
    return status;
}

int main(int argc, char **argv)
{
    gen_options options = {0};
    int stop = parse_options(argc, argv, &options);
    if (stop)
        return stop == 1 ? EXIT_SUCCESS : stop;
    clconv_steps steps;
    if (make_steps(&options, &steps) != CLCONV_OK) {
        fprintf(stderr, "clconv-gen: %s\n", clconv_last_error());
        return EXIT_FAILURE;
    }
    if (options.only && !has_kernel(&steps, options.only)) {
        fprintf(stderr, "clconv-gen: --only: %s is not part of this plan\n",
                options.only);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < steps.count; ++i)
        if (!print_step(&steps, i, &options))
            return EXIT_FAILURE;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_SUCCESS;
    fprintf(stderr, "clconv-gen: the source cannot be written to stdout\n");
    return EXIT_FAILURE;
}
