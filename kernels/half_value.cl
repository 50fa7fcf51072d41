/*
 * The value of fp16 bits, by arithmetic that no device lacks and no flush of
 * fp32 subnormals disturbs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
float half_value(uint bits)
{
    uint magnitude = bits & 0x7fff;
    float normal = as_float((magnitude << 13) + 0x38000000);
    float subnormal = (float)(int)magnitude * 0x1p-24f;
    float special = as_float((magnitude << 13) + 0x70000000);
    float value = magnitude < 0x0400 ? subnormal
                : magnitude < 0x7c00 ? normal : special;
    return bits & 0x8000 ? -value : value;
}
