/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "roofline.h"

#include <math.h>
#include <string.h>

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; ++names) {
        if (strcmp(name, *names) == 0)
            return true;
    }
    return false;
}

double roofline_peak(const probe_result *peaks, const char *name)
{
    static const char *const mixed[] = {"mixed", "fp16", "report", NULL};
    static const char *const fp32[] = {"fp32", "clblast", "onednn", NULL};

    if (is_one_of(name, mixed) && peaks->matrix_flops > 0)
        return peaks->matrix_flops;
    if (is_one_of(name, mixed) || is_one_of(name, fp32))
        return peaks->fma_flops;
    return NAN;
}

double roofline_floor(const work *w, double peak, double copy_bytes)
{
    double compute = w->flop / peak, memory = w->bytes / copy_bytes;

    return memory > compute ? memory : compute;
}
