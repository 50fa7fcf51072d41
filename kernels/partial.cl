/*
 * Partial sums in scratch: the first count elements of a vector.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
float get_part(__global const float *p, long i, int count)
{
    return count > 0 ? p[i] : 0.0f;
}

void put_part(__global float *p, long i, int count, float value)
{
    if (count > 0)
        p[i] = value;
}

float16 get_part16(__global const float *p, long i, int count)
{
    if (count >= 16)
        return vload16(0, p + i);
    float v[16];
    for (int lane = 0; lane < 16; ++lane)
        v[lane] = lane < count ? p[i + lane] : 0.0f;
    return vload16(0, v);
}

void put_part16(__global float *p, long i, int count, float16 value)
{
    if (count >= 16) {
        vstore16(value, 0, p + i);
        return;
    }
    float v[16];
    vstore16(value, 0, v);
    for (int lane = 0; lane < count; ++lane)
        p[i + lane] = v[lane];
}
