/*
 * Partial sums in scratch: the first count elements of a
 * vector, written step apart.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static float get_part(__global const float *p, long i, int count)
{
    return count > 0 ? p[i] : 0.0f;
}

static void put_part(__global float *p, long i, long step, int count,
                     float value)
{
    if (count > 0)
        p[i] = value;
}

static float16 get_part16(__global const float *p, long i, int count)
{
    if (count >= 16)
        return vload16(0, p + i);
    float v[16];
    for (int lane = 0; lane < 16; ++lane)
        v[lane] = lane < count ? p[i + lane] : 0.0f;
    return vload16(0, v);
}

static void put_part16(__global float *p, long i, long step, int count,
                       float16 value)
{
    if (step == 1 && count >= 16) {
        vstore16(value, 0, p + i);
        return;
    }
    float v[16];
    vstore16(value, 0, v);
    count = min(count, 16);
    for (int lane = 0; lane < count; ++lane)
        p[i + lane * step] = v[lane];
}
