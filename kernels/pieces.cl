/*
 * What copy_group.cl, copy16.cl and pieces_nv.cl do, at once and for any
 * device; an address counts bytes from tiles on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static void copy16(__local uchar *tiles, uint to, __global const half *from,
                   int exists)
{
    __local ushort *out = (__local ushort *)(tiles + to);
    __global const ushort *in = (__global const ushort *)from;
    vstore8(exists ? vload8(0, in) : (ushort8)0, 0, out);
}

static void put16(__local uchar *tiles, uint to, uint4 v)
{
    vstore4(v, 0, (__local uint *)(tiles + to));
}
