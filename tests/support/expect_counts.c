/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "expect_counts.h"

#include <criterion/criterion.h>
#include <math.h>

#include "counts.h"
#include "family_data.h"
#include "family_run.h"
#include "random.h"

/* In units of what the cast makes of them: one or more of each class, and
 * both sides of the bounds between classes, where an fp32 can tell them. */
static const float kinds[] = {
    0.0f,
    -0.0f,
    1.0f,
    -2.5f,
    0.3f,
    -1000.1f,
    0x1p-25f, /* a tie that becomes 0 */
    -0x1.000002p-25f,
    0x1p-30f,
    -0x1p-24f,
    0x1.8p-20f,
    0x1.ff8p-15f,
    -0x1.ffbffep-15f, /* the largest that becomes subnormal */
    0x1.ffcp-15f,     /* a tie that becomes normal */
    0x1p-14f,
    65504.0f,
    -65520.0f,
    1e20f,
    (float)NAN,
    -(float)NAN,
    INFINITY,
    -INFINITY,
};

#define KINDS (sizeof kinds / sizeof *kinds)

/* The exponent that the cast of an input multiplies in. */
static int cast_log2(const family_data *data, int tensor)
{
    bool scaled = tensor == FAMILY_DY && data->type[tensor] == CLCONV_F32 &&
                  data->desc.math == CLCONV_MIXED;
    return scaled ? data->desc.scale_log2 : 0;
}

/* Stretches in which every second element is of some kind, one in 32 is, or
 * none is: the others are small integers. Then a long one that has no zero,
 * but one element of some kind in 512. */
#define STRETCH 150
#define STRETCHES 12
#define WITH_ZEROS 3

static float pick(int64_t i, random_source *random)
{
    static const uint64_t one_in[WITH_ZEROS] = {2, 32, 0};
    int64_t stretch = i / STRETCH % STRETCHES;
    bool with_zeros = stretch < WITH_ZEROS;
    uint64_t among = with_zeros ? one_in[stretch] : 512;
    if (among > 0 && random_below(random, among) == 0)
        return kinds[random_below(random, KINDS)];
    return (float)random_below(random, 9) + (with_zeros ? -4.0f : 1.0f);
}

static void fill(family_data *data, int tensor, random_source *random)
{
    float *value = data->value[tensor];
    int log2 = cast_log2(data, tensor);
    for (int64_t i = 0; i < data->elements[tensor]; ++i) {
        value[i] = ldexpf(pick(i, random), -log2);
        if (data->type[tensor] == CLCONV_F16)
            value[i] = host_float_from_half(host_half_from_float(value[i]));
    }
}

static clconv_counts count_on_host(const family_data *data, int tensor,
                                   int64_t batch)
{
    const float *value = data->value[tensor];
    size_t count = (size_t)family_data_elements(data, tensor, batch);
    if (data->type[tensor] == CLCONV_F16 || data->desc.math == CLCONV_MIXED)
        return counts_of_cast(value, count, cast_log2(data, tensor));
    return counts_of_fp32(value, count);
}

static void call_and_expect(family_run *run, const family_data *data,
                            const char *what, int64_t batch)
{
    const float no_beta[FAMILY_TENSORS] = {0};
    family_run_call(run, data, batch, no_beta);
    const clconv_counts *got = &run->report.dy;
    for (int i = 0; i < FAMILY_DW; ++i) {
        clconv_counts want = {0};
        double a, b;
        if (run->mem[i])
            want = count_on_host(data, i, batch);
        const char *field = counts_difference(&got[i], &want, &a, &b);
        cr_assert_null(field,
                       "%s: %s, %lld images: %.0f %s elements of %s were "
                       "counted, not %.0f",
                       family_run_name(run), what, (long long)batch, a, field,
                       family_names[i], b);
    }
}

/* Later calls do without. */
static void drop_output(family_run *run, int tensor)
{
    if (run->mem[tensor])
        clReleaseMemObject(run->mem[tensor]);
    run->mem[tensor] = NULL;
}

void expect_counts(const family *f, const char *problem)
{
    family with_bias = *f;
    random_source random = random_seeded(11);
    clconv_desc desc;
    family_data data;
    family_run run;
    if (f->ops)
        with_bias.ops |= CLCONV_OP_DB;
    cr_assert_eq(clconv_desc_parse(problem, &desc), CLCONV_OK, "%s: %s",
                 problem, clconv_last_error());
    family_data_new(&desc, &data);
    for (int i = 0; i < FAMILY_DW; ++i)
        fill(&data, i, &random);
    family_run_open(&with_bias, &desc, &run);
    call_and_expect(&run, &data, "wanted", desc.n);
    call_and_expect(&run, &data, "wanted", desc.n - 1);
    call_and_expect(&run, &data, "wanted", 0);
    drop_output(&run, FAMILY_DW);
    drop_output(&run, FAMILY_DX);
    call_and_expect(&run, &data, "not wanted", desc.n);
    family_run_close(&run);
    family_data_free(&data);
}
