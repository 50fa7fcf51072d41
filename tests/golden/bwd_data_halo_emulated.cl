/* Step 2: bwd_data_halo */

typedef struct {
    long dy_image;
    long dy_channel;
    long dy_row;
    long dy_column;
    long x_image;
    long x_channel;
    long x_row;
    long x_column;
    long w_image;
    long w_channel;
    long w_row;
    long w_column;
    int n;
    int c;
    int h;
    int w;
    int k;
    int r;
    int s;
    int p;
    int q;
    int stride_h;
    int stride_w;
    int pad_top;
    int pad_left;
    int dilation_h;
    int dilation_w;
    int groups;
    int group_c;
    int group_k;
} sizes_t;

/* One work-group's tile of dX. */
typedef struct {
    int group, c0, image, h0, w0;
} block_t;

int block_sets(const sizes_t *s) {
    return s->groups * ((s->group_c + 64 - 1) / 64);
}

int block_count(const sizes_t *s) {
    return block_sets(s) * s->n * ((s->h + 8 - 1) / 8) * ((s->w + 16 - 1) / 16);
}

__attribute__((always_inline))
void block_place(block_t *b, const sizes_t *s, int number) {
    int sets = block_sets(s);
    int set = number % sets;
    int across = (s->w + 16 - 1) / 16;
    int down = (s->h + 8 - 1) / 8;
    number /= sets;
    b->c0 = set / s->groups * 64;
    b->group = set % s->groups;
    b->w0 = number % across * 16;
    number /= across;
    b->h0 = number % down * 8;
    b->image = number / down;
}

__attribute__((always_inline))
long dx_row(const block_t *b, const sizes_t *s, int m) {
    int h = b->h0 + m / 64 / 2 * 8 + m % 64 / 8;
    int w = b->w0 + m / 64 % 2 * 8 + m % 8;
    long at = b->image * s->x_image + h * s->x_row + w * s->x_column;
    return h < s->h && w < s->w ? at : -1;
}

__attribute__((always_inline))
long dx_column(const block_t *b, const sizes_t *s, int n) {
    long at = (b->group * s->group_c + b->c0 + n) * s->x_channel;
    return b->c0 + n < s->group_c ? at : -1;
}

/*
 * Lines of 64, 32 or 16 halves in local memory, line bytes each, whose 16-byte
 * pieces are permuted among 8 lines so that reads across lines meet no bank
 * twice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static uint swizzled(uint address, uint line)
{
    return address ^ ((address >> 3) & (line - 16));
}

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

/*
 * Matrices in local memory as wgmma reads them and the copy unit writes them:
 * lines as in swizzle.cl. A line holds neighbours along k, or neighbours along
 * m or n; wider matrices of the latter kind are chunks, one after the other.
 * Matrices start at multiples of 8 lines; a descriptor may be moved on by
 * lines, or by halves within one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
/* The descriptor: start, bytes from chunk to chunk, bytes from 8 lines to the
 * next 8, kind of swizzle. All but the kind in units of 16. */
static ulong matrix_of(uint address, uint line, uint chunk, uint eight)
{
    ulong kind = line == 128 ? 1 : line == 64 ? 2 : 3;
    return (ulong)(address >> 4 & 0x3fff) | (ulong)(chunk >> 4) << 16 |
           (ulong)(eight >> 4) << 32 | kind << 62;
}

/* One whose lines follow each other. */
static ulong matrix_at(uint address, uint line, uint chunk)
{
    return matrix_of(address, line, chunk, 8 * line);
}

/* One that starts so many times 16 bytes on from address 0: moves of a start are
 * sums of 32 bits. */
static ulong matrix_from(uint start, uint line, uint chunk)
{
    return matrix_at(0, line, chunk) | start;
}

/* The address of the half at (mn, k) that a descriptor leads to. */
static uint matrix_half(ulong matrix, int along_k, int mn, int k)
{
    uint start = (uint)(matrix & 0x3fff) << 4;
    uint chunk = (uint)(matrix >> 16 & 0x3fff) << 4;
    uint eight = (uint)(matrix >> 32 & 0x3fff) << 4;
    uint line = 256 >> (uint)(matrix >> 62);
    uint in_k = line * (mn & 7) + eight * (mn >> 3) + 2 * k;
    uint in_mn = 2 * (mn % (line / 2)) + chunk * (mn / (line / 2)) +
                 line * (k & 7) + eight * (k >> 3);
    return swizzled(start + (along_k ? in_k : in_mn), line);
}

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

/* Where a work-item's registers of D are. */
int d_row(int lane, int reg, int part) {
    return 16 * (lane / 32) + lane % 32 / 4 + 8 * (reg / 2 % 2);
}

int d_column(int lane, int reg, int part) {
    return 8 * (reg / 4) + 2 * (lane % 4) + reg % 2;
}

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

static float tile_half(__local const uchar *tiles, uint address) {
    return half_value(*(__local const ushort *)(tiles + address));
}

__attribute__((always_inline))
static void product(__local const uchar *tiles, float *d, ulong a, ulong b, int lane) {
    for (int k = 0; k < 16; ++k) {
        float x[2];
        for (int i = 0; i < 2; ++i)
            x[i] = tile_half(tiles, matrix_half(a, 1, d_row(lane, 2 * i, 0), k));
        for (int reg = 0; reg < 32; reg += 4) {
            for (int i = 0; i < 2; ++i) {
                float y = tile_half(tiles, matrix_half(b, 0, d_column(lane, reg + i, 0), k));
                d[reg + i] += x[0] * y;
                d[reg + i + 2] += x[1] * y;
            }
        }
    }
}

__attribute__((always_inline))
void load_tile(__local uchar *tiles, uint at, uint full, const source_t *source, const block_t *b, const sizes_t *s, int lane) {
    load_tiled(tiles, at, source, full, (int4)(
        b->group * ((s->group_k + 7) / 8 * 8),
        b->w0 + s->pad_left - (3 - 1) * 1,
        b->h0 + s->pad_top - (3 - 1) * 1,
        b->image), lane);
}

__attribute__((always_inline))
void load_weights(__local uchar *tiles, uint at, uint ready, const source_t *source, const block_t *b, const sizes_t *s, int lane) {
    for (int tap = 0; tap < 3 * 3; ++tap)
        for (int i = 0; i < 1; ++i)
            load_tiled(tiles, at + 8192 * tap + 8192 * i, source, ready,
                (int4)(b->c0 + 64 * i, tap % 3, tap / 3, b->group * s->group_k), lane);
}

__attribute__((always_inline))
void multiply(__local const uchar *tiles, uint at, uint weights, float sum[1][32], int warpgroup, int lane) {
    const ulong w = matrix_at(weights, 2 * 64, 8192);
    ulong dy[1];
    for (int i = 0; i < 1; ++i) {
        const int block = 1 * warpgroup + i;
        const int pixel = block / 2 * 8 * 18 + block % 2 * 8;
        dy[i] = matrix_of(at + pixel * 128, 128, 16, 2304);
    }
    for (int tap = 0; tap < 3 * 3; ++tap) {
        const int pixel = (3 - 1 - tap / 3) * 1 * 18 + (3 - 1 - tap % 3) * 1;
        for (int k = 0; k < 4; ++k)
            for (int i = 0; i < 1; ++i)
                product(tiles, sum[i], dy[i] + pixel * (128 / 16) + 2 * k,
                        w + tap * (8192 / 16) + 128 * k, lane);
    }
}

static void store_dx(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void store_pair(__global float *p, long row,
    long first, long second, float2 pair,
    float beta) {
    if (first >= 0)
        store_dx(p, row + first, pair.x, beta);
    if (second >= 0)
        store_dx(p, row + second, pair.y, beta);
}

__kernel
__attribute__((reqd_work_group_size(288, 1, 1)))
void bwd_data_halo(
    __global const half *dy, long dy_offset,
    __global const half *w, long w_offset,
    __global float *dx, long dx_offset,
    float beta,
    int batch,
    __global float *scratch, long scratch_offset,
    map_t dy_map,
    map_t w_map) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    scratch += scratch_offset;
    const sizes_t sizes = {
        .dy_image = 19152,
        .dy_channel = 399,
        .dy_row = 21,
        .dy_column = 1,
        .x_image = 15960,
        .x_channel = 399,
        .x_row = 21,
        .x_column = 1,
        .w_image = 360,
        .w_channel = 9,
        .w_row = 3,
        .w_column = 1,
        .n = batch,
        .c = 40,
        .h = 19,
        .w = 21,
        .k = 48,
        .r = 3,
        .s = 3,
        .p = 19,
        .q = 21,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .group_c = 40,
        .group_k = 48,
    };
    __local uchar tiles[145408] __attribute__((aligned(16)));
    const int item = (int)get_local_id(0);
    const int warpgroup = item / 128;
    const int lane = item % 128;
    const int blocks = block_count(&sizes);
    const int copier = item - 256;
    const source_t dy_source[1] = {{ dy_map, dy }};
    const source_t w_source[1] = {{ w_map, w }};
    block_t first;
    block_place(&first, &sizes, (int)get_group_id(0));
    int stage = 0;
    if (copier >= 0)
        load_weights(tiles, 0, 0, w_source, &first, &sizes, copier);
    for (int number = (int)get_group_id(0); number < blocks; number += (int)get_num_groups(0)) {
        block_t block;
        block_place(&block, &sizes, number);
        float sum[1][32];
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            #pragma unroll
            for (int reg = 0; reg < 32; ++reg)
                sum[i][reg] = 0.0f;
        const uint at = 73728 + stage * 23552;
        if (copier >= 0)
            load_tile(tiles, at, 0, dy_source, &block, &sizes, copier);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (copier < 0)
            multiply(tiles, at, 0, sum, warpgroup, lane);
        barrier(CLK_LOCAL_MEM_FENCE);
        stage = (stage + 1) % 3;
        if (copier >= 0)
            continue;
        #pragma unroll
        for (int i = 0; i < 2 * 1; ++i) {
            const int first = 2 * (i % 2);
            const long row = dx_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
            #pragma unroll 1
            for (int reg = 0; reg < 32; reg += 4) {
                const long left = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0));
                const long right = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0) + 1);
                const float2 pair = (float2)(sum[i / 2][first], sum[i / 2][first + 1]);
                if (row >= 0)
                    store_pair(dx, row, left, right, pair, beta);
                float kept[4];
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    kept[j] = sum[i / 2][j];
                #pragma unroll
                for (int j = 0; j < 32 - 4; ++j)
                    sum[i / 2][j] = sum[i / 2][j + 4];
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[i / 2][32 - 4 + j] = kept[j];
            }
        }
    }
}
