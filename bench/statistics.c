/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "statistics.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The value at a share of the way from the first to the last. */
static double quantile(const double *sorted, size_t count, double share)
{
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;
    double part = at - (double)below;

    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

spread spread_of(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return (spread){quantile(values, count, 0.25), quantile(values, count, 0.5),
                    quantile(values, count, 0.75)};
}
