/*
 * What kernels/wgmma.cl does, one step after the other in plain OpenCL C; an
 * address counts bytes from tiles on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static int uniform(int value)
{
    return value;
}

static uint here(uint value)
{
    return value;
}

static void put2(__local uchar *tiles, uint to, ushort v)
{
    *(__local ushort *)(tiles + to) = v;
}

static void barrier_arrive_copies(uint address)
{
}

static uint4 get16(__local const uchar *tiles, uint from)
{
    return vload4(0, (__local const uint *)(tiles + from));
}

static uint get2(__local const uchar *tiles, uint from)
{
    return *(__local const ushort *)(tiles + from);
}

static float get_float(__local const uchar *tiles, uint from)
{
    return *(__local const float *)(tiles + from);
}

static uint4 halves8(float8 v)
{
    ushort bits[8];
    vstore_half8_rte(v, 0, (half *)bits);
    return as_uint4(vload8(0, bits));
}

static float8 floats8(uint4 v)
{
    ushort bits[8];
    vstore8(as_ushort8(v), 0, bits);
    return vload_half8(0, (const half *)bits);
}

/* ---- The copy unit ------------------------------------------------------- */

/* A tensor map's description, see kernelgen/tensor_map.c. */
typedef struct {
    ulong word[16];
} map_t;

typedef struct {
    map_t map;
    __global const half *tensor;
} source_t;

static int map_int(const source_t *source, int word, int high)
{
    return (int)(source->map.word[word] >> 32 * high);
}

static void barrier_expect(uint address, uint bytes)
{
}

static void load_bytes(__local uchar *tiles, uint to, __global const void *from,
                       uint bytes, uint full)
{
    for (uint i = 0; i < bytes / 16; ++i)
        put16(tiles, to + 16 * i, vload4(i, (__global const uint *)from));
}

/* One line, from channel, column, row, image on; zeros for what is outside. */
static void load_line(__local uchar *tiles, uint to, const source_t *source,
                      int4 from)
{
    const ulong *w = source->map.word;
    int inside = from.y >= 0 && from.y < (long)w[2] && from.z >= 0 &&
                 from.z < (long)w[3] && from.w >= 0 && from.w < (long)w[4];
    long at = from.y * (long)w[5] + from.z * (long)w[6] + from.w * (long)w[7];
    uint line = map_int(source, 13, 0);
    for (int c = 0; c < map_int(source, 8, 0); c += 8) {
        int channel = from.x + c;
        int exists = inside && channel >= 0 && channel < (long)w[1];
        copy16(tiles, swizzled(to + 2 * c, line),
               source->tensor + (exists ? at + channel : 0), exists);
    }
}

static void load_tiled(__local uchar *tiles, uint to, const source_t *source,
                       uint full, int4 from, int lane)
{
    int columns = map_int(source, 8, 1), rows = map_int(source, 9, 0);
    int lines = columns * rows * map_int(source, 9, 1);
    uint line = map_int(source, 13, 0);
    for (int i = lane; i < lines; i += 32) {
        int4 move = (int4)(0, i % columns, i / columns % rows,
                           i / columns / rows);
        load_line(tiles, to + i * line, source, from + move);
    }
}

static void load_im2col(__local uchar *tiles, uint to, const source_t *source,
                        uint full, int4 from, int2 tap, int lane)
{
    const ulong *w = source->map.word;
    int2 lower = (int2)(map_int(source, 10, 0), map_int(source, 10, 1));
    int2 upper = (int2)(map_int(source, 11, 0), map_int(source, 11, 1));
    int2 step = (int2)(map_int(source, 12, 0), map_int(source, 12, 1));
    int2 last = (int2)((int)w[2], (int)w[3]) - 1 + upper;
    int2 count = (last - lower) / step + 1;
    int2 first = (from.yz - lower) / step;
    uint line = map_int(source, 13, 0);
    for (int i = lane; i < map_int(source, 8, 1); i += 32) {
        int column = first.x + i;
        int row = first.y + column / count.x;
        int2 pixel = lower + step * (int2)(column % count.x, row % count.y);
        int4 at = (int4)(from.x, pixel.x + tap.x, pixel.y + tap.y,
                         from.w + row / count.y);
        load_line(tiles, to + i * line, source, at);
    }
}
