/*
 * Each sentence states extremes over layers, by a walk over all results that
 * remembers where they were. Comparisons are written so that a NaN, which is
 * "nothing to measure" for a share, never wins.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "summary.h"

#include <math.h>

/* The smallest and the largest of what was added. */
typedef struct range {
    double low, high;
} range;

static const range nothing = {HUGE_VAL, -HUGE_VAL};

static void range_add(range *r, double value)
{
    if (value < r->low)
        r->low = value;
    if (value > r->high)
        r->high = value;
}

static range lost_range(const size_result *size, experiment_mode mode)
{
    range r = nothing;

    for (size_t i = 0; i < NETWORK_CONVS; ++i)
        range_add(&r, size->layer[i].mode[mode].lost);
    return r;
}

/* "17.2 to 66.9 % at 28 px, ..." */
static void print_lost_at_scale_1(FILE *to, const size_result *sizes,
                                  size_t count)
{
    fputs("1. Rounded to fp16 as it is, dY lost this share of its nonzero "
          "elements, depending on the layer:\n   ",
          to);
    for (size_t i = 0; i < count; ++i) {
        range r = lost_range(&sizes[i], MODE_SCALE_1);

        fputs(i == 0 ? "" : i + 1 < count ? ", " : " and ", to);
        if (r.low > r.high)
            fprintf(to, "nothing (it is all 0) at %zu px", sizes[i].size);
        else
            fprintf(to, "%.1f to %.1f %% at %zu px", 100 * r.low, 100 * r.high,
                    sizes[i].size);
    }
    fputs(".\n", to);
}

/* The layer in which scale 1 turned dW the furthest from the true one. */
typedef struct worst {
    const size_result *size;
    size_t layer;
    double cosine;
} worst;

static worst worst_dw(const size_result *sizes, size_t count)
{
    worst w = {&sizes[0], 0, HUGE_VAL};

    for (size_t i = 0; i < count; ++i) {
        for (size_t l = 0; l < NETWORK_CONVS; ++l) {
            const mode_result *r = &sizes[i].layer[l].mode[MODE_SCALE_1];

            if (r->agreement.dw.cosine < w.cosine)
                w = (worst){&sizes[i], l, r->agreement.dw.cosine};
        }
    }
    return w;
}

static void print_worst_dw(FILE *to, const size_result *sizes, size_t count)
{
    worst w = worst_dw(sizes, count);
    const mode_result *mode = w.size->layer[w.layer].mode;
    const agreement *plain = &mode[MODE_SCALE_1].agreement.dw;
    const agreement *scaled = &mode[MODE_SCALED].agreement.dw;

    fprintf(to,
            "2. The dW that suffered most from that, %s at %zu px, has a "
            "cosine of %.4f to the true gradient and an\n   error of %.3f %%; "
            "multiplied by 2^10 before rounding, the same dY gives %.4f and "
            "%.3f %%.\n",
            network_conv_name(w.layer), w.size->size, plain->cosine,
            100 * plain->error, scaled->cosine, 100 * scaled->error);
}

static void print_scaled(FILE *to, const size_result *sizes, size_t count)
{
    range lost = nothing, cosine = nothing;
    double seconds[MODES] = {0};

    for (size_t i = 0; i < count; ++i) {
        for (size_t l = 0; l < NETWORK_CONVS; ++l) {
            const mode_result *mode = sizes[i].layer[l].mode;

            range_add(&lost, mode[MODE_SCALED].lost);
            range_add(&cosine, mode[MODE_SCALED].agreement.dw.cosine);
            range_add(&cosine, mode[MODE_SCALED].agreement.dx.cosine);
            for (int m = 0; m < MODES; ++m)
                seconds[m] += mode[m].microseconds;
        }
    }
    fprintf(to,
            "3. Over all sizes and layers, 2^10 lost at most %.2f %% of dY and "
            "left no cosine of dW or dX below %.4f;\n   all layers together "
            "took %.1f times as long as at scale 1, and %.1f times as long as "
            "in fp32.\n",
            100 * fmax(lost.high, 0), cosine.low,
            seconds[MODE_SCALED] / seconds[MODE_SCALE_1],
            seconds[MODE_SCALED] / seconds[MODE_FP32]);
}

void summary_print(FILE *to, const size_result *sizes, size_t count)
{
    fputc('\n', to);
    print_lost_at_scale_1(to, sizes, count);
    print_worst_dw(to, sizes, count);
    print_scaled(to, sizes, count);
}
