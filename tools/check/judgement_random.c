/*
 * Normal data: every element within its bound, and each output as a whole;
 * and the same with dY around 1e-8, which fp16 without a scale would lose.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdlib.h>

#include "judgements.h"
#include "message.h"

static void judge_normal(const occasion *o, const outputs *got, const void *user)
{
    const dataset *normal = user;
    tolerances t = row_tolerances(o->check, o->check->setup.desc.scale_log2);

    row_judge(o, got, normal, &t, NULL);
    row_judge_norms(o, got, normal, &t);
}

void judgement_random(row *r, const dataset *normal)
{
    const run_inputs in = {.x = normal->x, .w = normal->w, .dy = normal->dy};

    row_each_check(r, ROW_ALL_MATHS, "random", &in, judge_normal, normal);
}

/* ---- Tiny gradients ----------------------------------------------------- */

/* 7.5e-9, and a power of two: what is expected is that of the normal data
 * times this, exactly. */
#define TINY 0x1p-27

/* The flush term is that of 2^10, whatever the library uses: with a smaller
 * scale, tiny gradients must be found wrong. */
static void judge_small(const occasion *o, const outputs *got, const void *user)
{
    const dataset *normal = user;
    tolerances t = row_tolerances(o->check, CLCONV_SCALE_LOG2_DEFAULT);

    t.dw.scale = t.db.scale = t.dx.scale = TINY;
    t.db.norm = fmin(t.db.norm, 1e-5);
    row_judge(o, got, normal, &t, NULL);
    row_judge_norms(o, got, normal, &t);
}

bool judgement_tiny(row *r, const dataset *normal)
{
    size_t count = shape_dy_count(&r->z);
    float *dy = malloc((count + 1) * sizeof(*dy));

    if (!dy) {
        message_error("out of memory");
        return false;
    }
    for (size_t i = 0; i < count; ++i)
        dy[i] = normal->dy[i] * (float)TINY;
    row_each_check(r, ROW_ALL_MATHS, "tiny",
                   &(run_inputs){.x = normal->x, .w = normal->w, .dy = dy},
                   judge_small, normal);
    free(dy);
    return true;
}
