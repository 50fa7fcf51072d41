/*
 * What rounding did to elements of one tensor: a work-item's own sums, then
 * added to the report. Fields as in clconv_counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
typedef struct {
    uint nonzero, zeroed, subnormal, saturated, nan, inf;
} counts_t;

/* Adds to a 64-bit count, two uints, low first. */
static void counts_add(volatile __global uint *count, uint amount)
{
    if (amount == 0)
        return;
    uint old = atomic_add(count, amount);
    if (old + amount < old)
        atomic_inc(count + 1);
}

/* No report, no work. */
static void counts_flush(volatile __global uint *counts, counts_t *tally)
{
    if (!counts)
        return;
    counts_add(counts, tally->nonzero);
    counts_add(counts + 2, tally->zeroed);
    counts_add(counts + 4, tally->subnormal);
    counts_add(counts + 6, tally->saturated);
    counts_add(counts + 8, tally->nan);
    counts_add(counts + 10, tally->inf);
}

/* Classes of an element as five-bit fields, so that one sum over a vector of
 * up to 16 elements counts all six: nonzero, zeroed, subnormal, saturated,
 * nan, inf from the lowest. */
static void counts_take(counts_t *tally, int classes)
{
    tally->nonzero += classes & 31;
    tally->zeroed += classes >> 5 & 31;
    tally->subnormal += classes >> 10 & 31;
    tally->saturated += classes >> 15 & 31;
    tally->nan += classes >> 20 & 31;
    tally->inf += classes >> 25 & 31;
}
