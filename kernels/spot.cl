/*
 * Where a row or a term of an implicit matrix product lies in a tensor: an
 * index (x, y: low and high half) and the row (z) and column (w) that the
 * tensor bounds. The element of a row and a term is at the sum of both spots,
 * if that is inside. A vector, not a struct: one load from local memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
typedef int4 spot_t;

/* What does not exist gets a row that no other spot brings back inside. */
spot_t spot(int exists, long at, int y, int x)
{
    return (spot_t)(as_int2(at), exists ? y : -0x40000000, x);
}

int spot_inside(spot_t row, spot_t term, int limit_y, int limit_x)
{
    int y = row.z + term.z;
    int x = row.w + term.w;
    return y >= 0 && y < limit_y && x >= 0 && x < limit_x;
}

long spot_index(spot_t row, spot_t term)
{
    return as_long(row.xy) + as_long(term.xy);
}

/* Do count spots, first to last, lie side by side in memory and in one row of
 * the tensor? Their columns are then reach apart. */
int spots_join(spot_t first, spot_t last, int count, int reach)
{
    return as_long(last.xy) - as_long(first.xy) == count - 1 &&
           last.z == first.z && last.w - first.w == reach;
}
