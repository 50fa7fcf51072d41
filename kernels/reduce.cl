/*
 * The sum of one value of each work-item of a group, in a fixed order; the
 * result is work-item 0's. The group has a power of two of work-items, all of
 * which must call; sums holds one float for each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static float reduce_sum(__local float *sums, float value)
{
    uint id = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[id] = value;
    for (uint half_size = get_local_size(0) / 2; half_size > 0;
         half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < half_size)
            sums[id] += sums[id + half_size];
    }
    return sums[id];
}
