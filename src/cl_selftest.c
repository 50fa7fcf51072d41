/*
 * wgmma: small whole numbers, whose products and sums fp16 and fp32 hold
 * exactly: the product is right or it is not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cl_selftest.h"

#include <stdint.h>
#include <stdlib.h>

#include "products.h"
#include "selftest.h"

enum { SIZE = 64, ELEMENTS = SIZE * SIZE };

/* SIZE x SIZE each, rows first. */
typedef struct matrices {
    int a[ELEMENTS], b[ELEMENTS];
    cl_ushort a_half[ELEMENTS], b_half[ELEMENTS];
    cl_float got[ELEMENTS];
} matrices;

/* ---- Numbers ----------------------------------------------------------- */

/* -4 ... 4, at random. */
static int next_number(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return (int)(*state >> 24) % 9 - 4;
}

static cl_ushort half_of(int number)
{
    static const cl_ushort halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    int sign = number < 0 ? 0x8000 : 0;
    return (cl_ushort)(sign | halves[abs(number)]);
}

/* NULL: no memory. */
static matrices *new_matrices(void)
{
    matrices *m = calloc(1, sizeof *m);
    uint32_t state = 1;
    for (int i = 0; m && i < ELEMENTS; ++i) {
        m->a[i] = next_number(&state);
        m->b[i] = next_number(&state);
        m->a_half[i] = half_of(m->a[i]);
        m->b_half[i] = half_of(m->b[i]);
    }
    return m;
}

static clconv_status check_element(const matrices *m, int row, int column)
{
    int want = 0;
    for (int k = 0; k < SIZE; ++k)
        want += m->a[row * SIZE + k] * m->b[k * SIZE + column];
    float got = m->got[row * SIZE + column];
    if (got == (float)want)
        return CLCONV_OK;
    return clconv_fail(CLCONV_UNSUPPORTED,
                       "its product is %g in row %d, column %d, not %d",
                       (double)got, row, column, want);
}

static clconv_status check(const matrices *m)
{
    clconv_status status = CLCONV_OK;
    for (int i = 0; status == CLCONV_OK && i < ELEMENTS; ++i)
        status = check_element(m, i / SIZE, i % SIZE);
    return status;
}

/* ---- On the device ----------------------------------------------------- */

static clconv_status multiply(const clconv_trial_place *place,
                              const char *source, matrices *m)
{
    const clconv_trial_arg args[] = {{m->a_half, sizeof m->a_half, false},
                                     {m->b_half, sizeof m->b_half, false},
                                     {m->got, sizeof m->got, false}};
    clconv_status status = clconv_trial_run(place, "wgmma_selftest", source,
                                            CLCONV_WARPGROUP, args, 3);
    return status == CLCONV_OK ? check(m) : status;
}

static clconv_status test_memory(const clconv_trial_place *place,
                                 size_t local_memory)
{
    matrices *m = new_matrices();
    char *source = clconv_wgmma_selftest_source(local_memory);
    clconv_status status =
        m && source ? multiply(place, source, m)
                    : clconv_fail(CLCONV_OUT_OF_MEMORY, "no memory for it");
    free(source);
    free(m);
    return status;
}

size_t clconv_selftest_wgmma(const clconv_trial_place *place,
                             const clconv_log *log)
{
    static const size_t sizes[] = {CLCONV_WGMMA_MEMORY,
                                   CLCONV_WGMMA_LEAST_MEMORY};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        if (test_memory(place, sizes[i]) == CLCONV_OK)
            return sizes[i];
        clconv_log_info(log,
                        "the matrix unit wgmma is not used with %zu bytes of "
                        "local memory: %s",
                        sizes[i], clconv_last_error());
    }
    return 0;
}
