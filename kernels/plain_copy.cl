/*
 * What copy_group.cl and async_copy.cl do, at once and for any device; an
 * address counts bytes from tiles on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static uint shared_address(__local const void *p)
{
    return 0;
}

static void copy1(__local float *tiles, uint to, __global const float *from,
                  int exists)
{
    tiles[to / 4] = exists ? *from : 0.0f;
}

static void copy4(__local float *tiles, uint to, __global const float *from,
                  int exists)
{
    *(__local float4 *)(tiles + to / 4) =
        exists ? *(__global const float4 *)from : 0.0f;
}

static void copies_commit(void)
{
}

static void copies_wait0(void)
{
}

static void copies_wait1(void)
{
}
