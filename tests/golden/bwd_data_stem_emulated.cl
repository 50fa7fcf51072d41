/* Step 2: bwd_data_stem */

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

int3 fold_place(int n) {
    return (int3)(n / (1 * 1), n / 1 % 1, n % 1);
}

int fold_channel(int c, int i, int j) {
    return (c * 1 + i) * 1 + j;
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
        for (int reg = 0; reg < 8; reg += 4) {
            for (int i = 0; i < 2; ++i) {
                float y = tile_half(tiles, matrix_half(b, 0, d_column(lane, reg + i, 0), k));
                d[reg + i] += x[0] * y;
                d[reg + i + 2] += x[1] * y;
            }
        }
    }
}

int2 first_position(const sizes_t *s) {
    return (int2)((s->pad_left + 0) / 1, (s->pad_top + 0) / 1);
}

int2 positions(const sizes_t *s) {
    return (int2)((s->pad_left + 0 + s->w - 1) / 1, (s->pad_top + 0 + s->h - 1) / 1) - first_position(s) + 1;
}

/* One work-group's tile. */
typedef struct {
    int image, y0, x0;
} block_t;

int block_count(const sizes_t *s) {
    return s->n * ((positions(s).y + 16 - 1) / 16) * ((positions(s).x + 8 - 1) / 8);
}

__attribute__((always_inline))
void block_place(block_t *b, const sizes_t *s, int number) {
    int across = (positions(s).x + 8 - 1) / 8;
    int down = (positions(s).y + 16 - 1) / 16;
    b->x0 = number % across * 8;
    number /= across;
    b->y0 = number % down * 16;
    b->image = number / down;
}

__attribute__((always_inline))
int2 position(const block_t *b, const sizes_t *s, int m) {
    int y = b->y0 + m / 64 / 1 * 8 + m % 64 / 8;
    int x = b->x0 + m / 64 % 1 * 8 + m % 8;
    return first_position(s) + (int2)(x, y);
}

__attribute__((always_inline))
long dx_at(const block_t *b, const sizes_t *s, int m, int n) {
    int2 at = position(b, s, m);
    int3 place = fold_place(n);
    int h = at.y * 1 + place.y - 0 - s->pad_top;
    int w = at.x * 1 + place.z - 0 - s->pad_left;
    int exists = n < 3 * 1 && h >= 0 && h < s->h && w >= 0 && w < s->w;
    return exists ? b->image * s->x_image + place.x * s->x_channel + h * s->x_row + w * s->x_column : -1;
}

static float round_w(float v) {
    int bits = as_int(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int)(0x477fe000)), bits, bits >= 0x7f800000);
    float a = as_float(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int power = clamp(as_int(a) & 0x7f800000, (int)(0x38800000), (int)(0x47000000));
    float m = as_float(power + 0x06800000);
    a = (a + m) - m;
    return as_float(as_int(a) | (as_int(v) & (int)0x80000000));
}

static float load_w(__global const float *p, long i) {
    return round_w(p[i]);
}

__attribute__((always_inline))
int4 weight_place(int i) /* k, c, r, s */ {
    return (int4)(i / (3 * 3 * 3), i / (3 * 3) % 3, i / 3 % 3, i % 3);
}

__attribute__((always_inline))
void put_weight(__local uchar *weights, __global const float *w, int i) {
    const int4 at = weight_place(i);
    const int y = at.z + 0, x = at.w + 0;
    const int tap = y / 1 * 3 + x / 1;
    const uint to = 1024 * tap + 2 * (16 * at.x + fold_channel(at.y, y % 1, x % 1));
    vstore_half(load_w(w, i), 0, (__local half *)(weights + swizzled(to, 2 * 16)));
}

__attribute__((always_inline))
void load_tile(__local uchar *tiles, uint at, uint full, const source_t *dy_source, const block_t *b, const sizes_t *s, int lane) {
    int2 first = first_position(s);
    load_tiled(tiles, at, dy_source, full, (int4)(0, first.x + b->x0 - (3 - 1), first.y + b->y0 - (3 - 1), b->image), lane);
}

__attribute__((always_inline))
void multiply(__local const uchar *tiles, uint at, uint base, float sum[2][8], int warpgroup, int lane) {
    const ulong w = matrix_at(base, 2 * 16, 16);
    ulong dy[2];
    for (int i = 0; i < 2; ++i) {
        const int block = 2 * warpgroup + i;
        const int pixel = block / 1 * 8 * 10 + block % 1 * 8;
        dy[i] = matrix_of(at + pixel * 64, 64, 16, 10 * 64);
    }
    for (int tap = 0; tap < 9; ++tap) {
        const int pixel = (3 - 1 - tap / 3) * 10 + 3 - 1 - tap % 3;
        for (int k = 0; k < 2; ++k)
            for (int i = 0; i < 2; ++i)
                product(tiles, sum[i], dy[i] + pixel * (64 / 16) + 2 * k,
                        w + tap * (1024 / 16) + 2 * 16 * k, lane);
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
__attribute__((reqd_work_group_size(160, 1, 1)))
void bwd_data_stem(
    __global const half *dy, long dy_offset,
    __global const float *w, long w_offset,
    __global float *dx, long dx_offset,
    float beta,
    int batch,
    __global float *scratch, long scratch_offset,
    map_t dy_map) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    scratch += scratch_offset;
    const sizes_t sizes = {
        .dy_image = 13300,
        .dy_channel = 665,
        .dy_row = 35,
        .dy_column = 1,
        .x_image = 1995,
        .x_channel = 665,
        .x_row = 35,
        .x_column = 1,
        .w_image = 27,
        .w_channel = 9,
        .w_row = 3,
        .w_column = 1,
        .n = batch,
        .c = 3,
        .h = 19,
        .w = 35,
        .k = 20,
        .r = 3,
        .s = 3,
        .p = 19,
        .q = 35,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .group_c = 3,
        .group_k = 20,
    };
    __local uchar tiles[47104] __attribute__((aligned(16)));
    const int item = (int)get_local_id(0);
    const int warpgroup = item / 128;
    const int lane = item % 128;
    const int blocks = block_count(&sizes);
    const uint base = 0;
    __local uchar *weights = tiles;
    for (int i = item; i < 9216 / 16; i += 160)
        *(__local uint4 *)(weights + 16 * i) = (uint4)(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < sizes.k * 3 * 3 * 3; i += 160)
        put_weight(weights, w, i);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int copier = item - 128;
    const source_t dy_source[1] = {{ dy_map, dy }};
    int stage = 0;
    for (int number = (int)get_group_id(0); number < blocks; number += (int)get_num_groups(0)) {
        block_t block;
        block_place(&block, &sizes, number);
        const uint at = base + 9216 + stage * 12288;
        float sum[2][8];
        #pragma unroll
        for (int i = 0; i < 2; ++i)
            #pragma unroll
            for (int reg = 0; reg < 8; ++reg)
                sum[i][reg] = 0.0f;
        if (copier >= 0) {
            load_tile(tiles, at, 0, dy_source, &block, &sizes, copier);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (copier < 0) {
            multiply(tiles, at, base, sum, warpgroup, lane);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        stage = (stage + 1) % 3;
        if (copier >= 0)
            continue;
        #pragma unroll
        for (int i = 0; i < 2 * 8; i += 2) {
            const int reg = i % 8;
            const int m = 64 * (2 * warpgroup + i / 8) + d_row(lane, reg, 0);
            const int n = d_column(lane, reg, 0);
            const float *s = sum[i / 8] + reg;
            const long left = dx_at(&block, &sizes, m, n);
            const long right = dx_at(&block, &sizes, m, n + 1);
            store_pair(dx, 0, left, right, (float2)(s[0], s[1]), beta);
        }
    }
}
