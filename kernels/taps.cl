/*
 * The first filter tap from r on that a stride lets meet the input at
 * position x (counted from the padding's edge): x - r * dilation must be a
 * multiple of the stride. taps if there is none; r is at most that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
int tap_from(int r, int x, int dilation, int stride, int taps)
{
    if (stride == 1)
        return r;
    while (r < taps && (x - r * dilation) % stride != 0)
        ++r;
    return r;
}
