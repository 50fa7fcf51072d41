/* Step 2: bwd_data_wgmma */

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

/* One work-group's tile of dX. */
typedef struct {
    int group;
    int pixel0, c0; /* of the tile */
    int h0, w0; /* of the phase: h = h0 + stride_h * line */
    int lines, columns; /* of the phase in an image */
    int r0, s0, r_step, s_step; /* taps that the phase meets */
    int taps_s, taps; /* of them in a filter row, in all */
    int begin, end; /* terms */
} block_t;

__attribute__((always_inline))
void block_taps(block_t *b, const sizes_t *s) {
    int y = b->h0 + s->pad_top;
    int x = b->w0 + s->pad_left;
    b->r0 = tap_from(0, y, s->dilation_h, s->stride_h, s->r);
    b->s0 = tap_from(0, x, s->dilation_w, s->stride_w, s->s);
    b->r_step = tap_from(b->r0 + 1, y, s->dilation_h, s->stride_h, s->r) - b->r0;
    b->s_step = tap_from(b->s0 + 1, x, s->dilation_w, s->stride_w, s->s) - b->s0;
    int taps_r = (s->r - b->r0 + b->r_step - 1) / b->r_step;
    b->taps_s = (s->s - b->s0 + b->s_step - 1) / b->s_step;
    b->taps = taps_r * b->taps_s;
    b->begin = 0;
    b->end = b->taps * ((s->group_k + 31) / 32 * 32);
}

__attribute__((always_inline))
int block_run(const sizes_t *s) {
    return s->x_column == 1 ? min(s->stride_w, s->w) : 1;
}

__attribute__((always_inline))
void block_place(block_t *b, const sizes_t *s, int number) {
    b->lines = (s->h - 1) / s->stride_h + 1;
    b->columns = (s->w - 1) / s->stride_w + 1;
    int pixel_tiles = (s->n * b->lines * b->columns + 64 - 1) / 64;
    int c_tiles = (s->group_c + 32 - 1) / 32;
    int run = block_run(s);
    b->w0 = number % run;
    number /= run;
    b->c0 = number % c_tiles * 32;
    number /= c_tiles;
    b->pixel0 = number % pixel_tiles * 64;
    number /= pixel_tiles;
    b->group = number % s->groups;
    number /= s->groups;
    int runs_w = min(s->stride_w, s->w) / run;
    b->w0 += number % runs_w;
    b->h0 = number / runs_w;
    block_taps(b, s);
}

__attribute__((always_inline))
int3 pixel_at(const block_t *b, const sizes_t *s, int row) {
    int pixel = b->pixel0 + row;
    int column = pixel % b->columns;
    pixel /= b->columns;
    int line = pixel % b->lines;
    int image = pixel / b->lines;
    int inside = image < s->n && b->h0 + line * s->stride_h < s->h &&
                 b->w0 + column * s->stride_w < s->w;
    return (int3)(inside ? image : -1, line, column);
}

__attribute__((always_inline))
int3 term_at(const block_t *b, const sizes_t *s, int k) {
    int tap = k / ((s->group_k + 31) / 32 * 32);
    int channel = k % ((s->group_k + 31) / 32 * 32);
    int r = b->r0 + tap / b->taps_s * b->r_step;
    int t = b->s0 + tap % b->taps_s * b->s_step;
    return (int3)(channel, r, t);
}

__attribute__((always_inline))
long dx_row(const block_t *b, const sizes_t *s, int m) {
    int3 pixel = pixel_at(b, s, m);
    int h = b->h0 + pixel.y * s->stride_h;
    int w = b->w0 + pixel.z * s->stride_w;
    long at = pixel.x * s->x_image + h * s->x_row + w * s->x_column;
    return pixel.x >= 0 ? at : -1;
}

__attribute__((always_inline))
long dx_column(const block_t *b, const sizes_t *s, int n) {
    int c = b->c0 + n;
    long at = (b->group * s->group_c + c) * s->x_channel;
    return c < s->group_c ? at : -1;
}

__attribute__((always_inline))
int block_count(const sizes_t *s) {
    int lines = (s->h - 1) / s->stride_h + 1;
    int columns = (s->w - 1) / s->stride_w + 1;
    int pixel_tiles = (s->n * lines * columns + 64 - 1) / 64;
    int c_tiles = (s->group_c + 32 - 1) / 32;
    return min(s->stride_h, s->h) * min(s->stride_w, s->w) * s->groups * pixel_tiles * c_tiles;
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
        for (int reg = 0; reg < 16; reg += 4) {
            for (int i = 0; i < 2; ++i) {
                float y = tile_half(tiles, matrix_half(b, 0, d_column(lane, reg + i, 0), k));
                d[reg + i] += x[0] * y;
                d[reg + i + 2] += x[1] * y;
            }
        }
    }
}

__attribute__((always_inline))
void multiply(__local const uchar *tiles, uint at_a, uint at_b, float sum[1][16], int lane) {
    const ulong a = matrix_at(at_a, 64, 4096);
    const ulong b = matrix_at(at_b, 64, 2048);
    #pragma unroll
    for (int k = 0; k < 2; ++k)
        #pragma unroll
        for (int i = 0; i < 1; ++i)
            product(tiles, sum[i], a + 256 * i + 2 * k, b + 64 * k, lane);
}

int number_after(int number, int run) {
    const int others = run * ((int)get_num_groups(0) - 1);
    return number + 1 + (number % run == run - 1 ? others : 0);
}

int lower(int pad, int taps, int dilation, int stride) {
    int reach = pad - (taps - 1) * dilation;
    return reach >= 0 ? reach / stride : -((stride - 1 - reach) / stride);
}

typedef struct {
    int4 pixel; /* of A: channel of the group, column, row, image */
    int k, r, s; /* of B */
    int2 tap, step, first; /* column, row: now, from tap to tap, at first */
} cursor_t;

void cursor_begin(cursor_t *c, const block_t *b, const sizes_t *s) {
    int row = b->pixel0 / b->columns;
    int2 corner = (int2)(
        lower(s->pad_left, s->s, s->dilation_w, s->stride_w),
        lower(s->pad_top, s->r, s->dilation_h, s->stride_h));
    c->pixel = (int4)(b->group * ((s->group_k + 7) / 8 * 8), b->pixel0 % b->columns + corner.x,
        row % b->lines + corner.y, row / b->lines);
    c->k = 0;
    c->r = b->r0;
    c->s = b->s0;
    c->first = (int2)(
        (b->w0 + s->pad_left - b->s0 * s->dilation_w) / s->stride_w,
        (b->h0 + s->pad_top - b->r0 * s->dilation_h) / s->stride_h) - corner;
    c->step = (int2)(b->s_step * s->dilation_w / s->stride_w, b->r_step * s->dilation_h / s->stride_h);
    c->tap = c->first;
}

__attribute__((always_inline))
void load_step(__local uchar *tiles, uint at, uint full, const source_t *a_source, const source_t *b_source, const block_t *block, const sizes_t *sizes, cursor_t *cursor, int lane) {
    load_im2col(tiles, at, a_source, full, cursor->pixel + (int4)(cursor->k, 0, 0, 0), cursor->tap, lane);
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        load_tiled(tiles, at + 4096 + 2048 * i, b_source, full,
            (int4)(block->c0 + 32 * i, cursor->s, cursor->r, block->group * sizes->group_k + cursor->k), lane);
    cursor->k += 32;
    if (cursor->k >= sizes->group_k) {
        cursor->k = 0;
        cursor->s += block->s_step;
        cursor->tap.x -= cursor->step.x;
    }
    if (cursor->s >= sizes->s) {
        cursor->s = block->s0;
        cursor->tap.x = cursor->first.x;
        cursor->r += block->r_step;
        cursor->tap.y -= cursor->step.y;
    }
}

__attribute__((always_inline))
long dx_part_row(const block_t *b, const sizes_t *s, int m, int part) {
    const int w = pixel_at(b, s, m).z * s->stride_w + part;
    const long row = dx_row(b, s, m);
    return row >= 0 && w < s->w ? row + part * s->x_column : -1;
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
void bwd_data_wgmma(
    __global const half *dy, long dy_offset,
    __global const half *w, long w_offset,
    __global float *dx, long dx_offset,
    float beta,
    sizes_t sizes,
    __global float *scratch, long scratch_offset,
    map_t dy_map,
    map_t w_map) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    scratch += scratch_offset;
    __local uchar tiles[25600] __attribute__((aligned(16)));
    const int item = (int)get_local_id(0);
    const int warpgroup = item / 128;
    const int lane = item % 128;
    const int blocks = block_count(&sizes);
    const int copier = item - 128;
    int stage = 0;
    const source_t a_source[1] = {{ dy_map, dy }};
    const source_t b_source[1] = {{ w_map, w }};
    for (int number = (int)get_group_id(0) * block_run(&sizes); number < blocks; number = number_after(number + 1, block_run(&sizes))) {
        float sum[2][16];
        #pragma unroll
        for (int i = 0; i < 2; ++i)
            #pragma unroll
            for (int reg = 0; reg < 16; ++reg)
                sum[i][reg] = 0.0f;
        {
            block_t block;
            block_place(&block, &sizes, number);
            cursor_t cursor;
            cursor_begin(&cursor, &block, &sizes);
            for (int k0 = block.begin; k0 < block.end; k0 += 32) {
                const uint at = stage * 6144;
                if (copier >= 0) {
                    load_step(tiles, at, 0, a_source, b_source, &block, &sizes, &cursor, copier);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                if (copier < 0) {
                    multiply(tiles, at + 4096 * warpgroup, at + 4096 + 0 * warpgroup, sum, lane);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                stage = (stage + 1) % 4;
            }
        }
        {
            block_t block;
            block_place(&block, &sizes, number + 1);
            cursor_t cursor;
            cursor_begin(&cursor, &block, &sizes);
            for (int k0 = block.begin; k0 < block.end; k0 += 32) {
                const uint at = stage * 6144;
                if (copier >= 0) {
                    load_step(tiles, at, 0, a_source, b_source, &block, &sizes, &cursor, copier);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                if (copier < 0) {
                    multiply(tiles, at + 4096 * warpgroup, at + 4096 + 0 * warpgroup, sum + 1, lane);
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                stage = (stage + 1) % 4;
            }
        }
        block_t block;
        block_place(&block, &sizes, number);
        if (copier >= 0)
            continue;
        #pragma unroll
        for (int i = 0; i < 2 * 1; ++i) {
            const int first = 2 * (i % 2);
            const long row = dx_part_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0), 0);
            #pragma unroll 1
            for (int reg = 0; reg < 16; reg += 4) {
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
                for (int j = 0; j < 16 - 4; ++j)
                    sum[i / 2][j] = sum[i / 2][j + 4];
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[i / 2][16 - 4 + j] = kept[j];
            }
        }
        #pragma unroll
        for (int i = 0; i < 2 * 1; ++i) {
            const int first = 2 * (i % 2);
            const long row = dx_part_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0), 1);
            #pragma unroll 1
            for (int reg = 0; reg < 16; reg += 4) {
                const long left = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0));
                const long right = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0) + 1);
                const float2 pair = (float2)(sum[i / 2 + 1][first], sum[i / 2 + 1][first + 1]);
                if (row >= 0)
                    store_pair(dx, row, left, right, pair, beta);
                float kept[4];
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    kept[j] = sum[i / 2 + 1][j];
                #pragma unroll
                for (int j = 0; j < 16 - 4; ++j)
                    sum[i / 2 + 1][j] = sum[i / 2 + 1][j + 4];
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[i / 2 + 1][16 - 4 + j] = kept[j];
            }
        }
    }
}
