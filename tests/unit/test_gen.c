/*
 * clconv-gen as a program: what it prints is compared by the golden test, what
 * it refuses here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <string.h>

#include "program.h"

#define PROBLEM "n1c2h5w5k3r3s3p1"

static program_result result;

static void refuse(const char *const *argv, int status, const char *why)
{
    program_run(argv, &result);
    cr_assert_eq(result.status, status, "status %d: %s", result.status, why);
    cr_assert(strstr(result.err, why), "%s", result.err);
    cr_assert_str_empty(result.out);
}

#define REFUSE(status, why, ...)                                               \
    refuse((const char *[]){CLCONV_GEN, __VA_ARGS__, NULL}, status, why)

Test(gen, prints_one_kernel_alone)
{
    const char *argv[] = {CLCONV_GEN, "--only",           "bwd_data_generic",
                          PROBLEM,    "bwd_data_generic", NULL};

    program_run(argv, &result);
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert(strstr(result.out, ": bwd_data_generic */"), "%s", result.out);
    cr_assert_not(strstr(result.out, ": bwd_weight"), "%s", result.out);
}

Test(gen, refuses_wrong_options)
{
    REFUSE(2, "PROBLEM is missing", "--device", "gpu");
    REFUSE(2, "--device must be cpu, cpu_avx2, gpu", "--device", "toaster",
           PROBLEM);
    REFUSE(2, "--emulate must be", "--emulate", "none", PROBLEM);
    REFUSE(2, "--only: no kernel sort", "--only", "sort", PROBLEM);
    REFUSE(2, "too many: c", "a", "b", "c");
}

Test(gen, refuses_wrong_problems_and_plans)
{
    REFUSE(1, "expected nNUMBER", "c2");
    REFUSE(1, "the filter spans 9", "n1c1h5w5k1r9s9");
    REFUSE(1, "no kernel \"sort\"", PROBLEM, "sort");
}

Test(gen, fails_if_its_text_cannot_be_written)
{
    const char *argv[] = {"/bin/sh", "-c", CLCONV_GEN " " PROBLEM " >/dev/full",
                          NULL};

    refuse(argv, 1, "cannot be written to stdout");
}

/* Rather than no text and success. */
Test(gen, refuses_a_kernel_that_the_plan_does_not_have)
{
    REFUSE(1, "--only: bwd_data_mma is not part of this plan", "--only",
           "bwd_data_mma", PROBLEM);
}
