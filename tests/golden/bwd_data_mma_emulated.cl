/* Step 2: bwd_data_mma */

/*
 * Channels of a group in a packed copy: whole pieces of 16 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
int padded(int channels)
{
    return (channels + 7) / 8 * 8;
}

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
    int y0, x0, y_step, x_step; /* where taps lead, from the first on */
    int channel, r, t, y, x; /* of the step */
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
    b->end = b->taps * ((s->group_k + 32 - 1) / 32 * 32);
    b->channel = 0;
    b->r = b->r0;
    b->t = b->s0;
    b->y0 = (y - b->r0 * s->dilation_h) / s->stride_h;
    b->x0 = (x - b->s0 * s->dilation_w) / s->stride_w;
    b->y_step = b->r_step * s->dilation_h / s->stride_h;
    b->x_step = b->s_step * s->dilation_w / s->stride_w;
    b->y = b->y0;
    b->x = b->x0;
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
    int c_tiles = (s->group_c + 64 - 1) / 64;
    int run = block_run(s);
    b->w0 = number % run;
    number /= run;
    b->c0 = number % c_tiles * 64;
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
void block_next(block_t *b, const sizes_t *s) {
    b->t += b->s_step;
    b->x -= b->x_step;
    if (b->t < s->s)
        return;
    b->t = b->s0;
    b->x = b->x0;
    b->r += b->r_step;
    b->y -= b->y_step;
    if (b->r < s->r)
        return;
    b->r = b->r0;
    b->y = b->y0;
    b->channel += 32;
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

/*
 * Where a row or a term of an implicit matrix product lies in a tensor: an
 * index (x, y: low and high half) and the row (z) and column (w) that the
 * tensor bounds. The element of a row and a term is at the sum of both spots,
 * if that is inside. A vector, not a struct: one load from local memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
typedef int4 spot_t;

/* What does not exist gets a row that no other spot brings back inside. */
spot_t spot(int exists, long at, int y, int x)
{
    return (spot_t)(as_int2(at), exists ? y : -0x40000000, x);
}

int spot_inside(spot_t row, spot_t term, int limit_y, int limit_x)
{
    return (uint)(row.z + term.z) < (uint)limit_y &
           (uint)(row.w + term.w) < (uint)limit_x;
}

long spot_index(spot_t row, spot_t term)
{
    return as_long(row.xy) + as_long(term.xy);
}

/* The same with an index in units that are so many times smaller. */
spot_t spot_scaled(spot_t s, int times)
{
    return (spot_t)(as_int2(as_long(s.xy) * times), s.z, s.w);
}

__attribute__((always_inline))
spot_t dy_row(const block_t *b, const sizes_t *s, int row) {
    int3 pixel = pixel_at(b, s, row);
    long at = pixel.x * ((long)s->p * s->q * s->groups * padded(s->group_k)) + pixel.y * ((long)s->q * s->groups * padded(s->group_k)) + pixel.z * ((long)s->groups * padded(s->group_k));
    at += b->group * padded(s->group_k) * 1;
    return spot(pixel.x >= 0, at, pixel.y, pixel.z);
}

__attribute__((always_inline))
spot_t w_row(const block_t *b, const sizes_t *s, int row) {
    int c = b->c0 + row;
    long at = b->group * s->group_k * ((long)s->r * s->s * padded(s->group_c)) + c * 1;
    return spot(c < s->group_c, at, 0, 0);
}

__attribute__((always_inline))
spot_t dy_term(const block_t *b, const sizes_t *s, int k) {
    int channel = b->channel + k % 32;
    long at = channel * 1 + b->y * ((long)s->q * s->groups * padded(s->group_k)) + b->x * ((long)s->groups * padded(s->group_k));
    return spot(channel < s->group_k, at, b->y, b->x);
}

__attribute__((always_inline))
spot_t w_term(const block_t *b, const sizes_t *s, int k) {
    int channel = b->channel + k % 32;
    long at = channel * ((long)s->r * s->s * padded(s->group_c)) + b->r * ((long)s->s * padded(s->group_c)) + b->t * (long)padded(s->group_c);
    return spot(channel < s->group_k, at, 0, 0);
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

float unit_dot(__local const float *x, __local const float *y) {
    float16 sum16 = vload16(0, x) * vload16(0, y);
    float8 sum8 = sum16.lo + sum16.hi;
    float4 sum4 = sum8.lo + sum8.hi;
    float2 sum2 = sum4.lo + sum4.hi;
    return sum2.lo + sum2.hi;
}

/* Where the unit keeps its elements. */
int a_row(int lane, int reg, int part) {
    return lane / 4 + 8 * (reg % 2);
}

int a_k(int lane, int reg, int part) {
    return 2 * (lane % 4) + 8 * (reg / 2) + part;
}

int b_k(int lane, int reg, int part) {
    return 2 * (lane % 4) + 8 * reg + part;
}

int b_column(int lane, int reg, int part) {
    return lane / 4;
}

int c_row(int lane, int reg, int part) {
    return lane / 4 + 8 * (reg / 2);
}

int c_column(int lane, int reg, int part) {
    return 2 * (lane % 4) + reg % 2;
}

int d_row(int lane, int reg, int part) {
    return lane / 32 * 16 + c_row(lane % 32, reg % 4, part);
}

int d_column(int lane, int reg, int part) {
    return reg / 4 * 8 + c_column(lane % 32, reg % 4, part);
}

__attribute__((always_inline))
void a_begin(const block_t *block, const sizes_t *sizes, int item, spot_t *rows) {
    #pragma unroll
    for (int i = 0; i < 2; ++i)
        rows[i] = dy_row(block, sizes, item / 4 + 32 * i);
}

__attribute__((always_inline))
void a_stage(__local uchar *tiles, uint at, __global const half *dy, const block_t *block, const sizes_t *sizes, const spot_t *rows, int k0, int item) {
    at += swizzled(16 * item, 64);
    const spot_t term = dy_term(block, sizes, k0 + 8 * (item % 4));
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const uint to = at + 2048 * i;
        const int exists = spot_inside(rows[i], term, sizes->p, sizes->q);
        copy16(tiles, to, dy + (exists ? spot_index(rows[i], term) : 0), exists);
    }
}

__attribute__((always_inline))
void b_begin(const block_t *block, const sizes_t *sizes, int item, spot_t *rows) {
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        rows[i] = w_row(block, sizes, 64 * i + 8 * (item % 8));
}

__attribute__((always_inline))
void b_stage(__local uchar *tiles, uint at, __global const half *w, const block_t *block, const sizes_t *sizes, const spot_t *rows, int k0, int item) {
    at += swizzled(16 * item, 128);
    #pragma unroll
    for (int j = 0; j < 2; ++j) {
        const spot_t term = w_term(block, sizes, k0 + item / 8 + 16 * j);
        #pragma unroll
        for (int i = 0; i < 1; ++i) {
            const uint to = at + 2048 * j + 4096 * i;
            const int exists = spot_inside(rows[i], term, 1, 1);
            copy16(tiles, to, w + (exists ? spot_index(rows[i], term) : 0), exists);
        }
    }
}

__attribute__((always_inline))
uint place_a(int row, int k, int lane) {
    row += lane % 16;
    k += lane / 16 % 2 * 8;
    return swizzled(64 * row + 2 * k, 64);
}

__attribute__((always_inline))
uint place_b(int row, int k, int lane) {
    row += lane / 16 % 2 * 8;
    k += lane % 16;
    return row / 64 * 4096 + swizzled(128 * k + 2 * (row % 64), 128);
}

__attribute__((always_inline))
void load_a(uint *m, __local const uchar *tiles, uint at, int row, int k, int lane) {
    const int g = lane % 32 / 4, t = lane % 4;
    tiles += at;
    for (int i = 0; i < 4; ++i) {
        m[i] = *(__local const uint *)(tiles + place_a(row, k, 8 * i + g) + 4 * t);
    }
}

__attribute__((always_inline))
void load_b(uint *m, __local const uchar *tiles, uint at, int row, int k, int lane) {
    const int g = lane % 32 / 4, t = lane % 4;
    tiles += at;
    for (int i = 0; i < 4; ++i) {
        uint low = *(__local const ushort *)(tiles + place_b(row, k, 8 * i + 2 * t) + 2 * g);
        uint high = *(__local const ushort *)(tiles + place_b(row, k, 8 * i + 2 * t + 1) + 2 * g);
        m[i] = low | high << 16;
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
__attribute__((reqd_work_group_size(128, 1, 1)))
void bwd_data_mma(
    __global const half *dy, long dy_offset,
    __global const half *w, long w_offset,
    __global float *dx, long dx_offset,
    float beta,
    sizes_t sizes) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    block_t block;
    block_place(&block, &sizes, (int)get_group_id(0));
    __local uchar tiles[24576] __attribute__((aligned(128)));
    const int item = (int)get_local_id(0);
    const int warpgroup = item / 128;
    const int lane = item % 128;
    const int a_row0 = 64 * warpgroup + lane / 32 * 16;
    const int b_column0 = 0 * warpgroup;
    const uint base = 0;
    __local float exchange_a[4 * 256];
    __local float exchange_b[4 * 1024];
    __local float *warp_a = exchange_a + item / 32 * 256;
    __local float *warp_b = exchange_b + item / 32 * 1024;
    float sum[1][32];
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        #pragma unroll
        for (int reg = 0; reg < 32; ++reg)
            sum[i][reg] = 0.0f;
    spot_t a_rows[2], b_rows[1];
    a_begin(&block, &sizes, item, a_rows);
    b_begin(&block, &sizes, item, b_rows);
    int ahead = block.begin;
    for (int i = 0; i < 2; ++i) {
        if (ahead < block.end) {
            const uint to = base + i * 8192;
            a_stage(tiles, to, dy, &block, &sizes, a_rows, ahead, item);
            b_stage(tiles, to + 4096, w, &block, &sizes, b_rows, ahead, item);
            ahead += 32;
            block_next(&block, &sizes);
        }
    }
    int stage = 0;
    for (int k0 = block.begin; k0 < block.end; k0 += 32) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (ahead < block.end) {
            const uint to = base + (stage == 0 ? 2 : stage - 1) * 8192;
            a_stage(tiles, to, dy, &block, &sizes, a_rows, ahead, item);
            b_stage(tiles, to + 4096, w, &block, &sizes, b_rows, ahead, item);
            ahead += 32;
            block_next(&block, &sizes);
        }
        const uint at = base + stage * 8192;
        for (int k = 0; k < 32; k += 16) {
            uint a[1][4], b[4][4];
            for (int i = 0; i < 1; ++i) {
                load_a(a[i], tiles, at, a_row0 + 64 * i, k, lane);
            }
            for (int j = 0; j < 4; ++j) {
                load_b(b[j], tiles, at + 4096, b_column0 + 16 * j, k, lane);
            }
            /* Each lane shows its fragments to its warp. */
            for (int q = 0; q < 1; ++q) {
                for (int part = 0; part < 2; ++part) {
                    for (int i = 0; i < 1; ++i) {
                        for (int reg = 0; reg < 4; ++reg) {
                            warp_a[(i * 16 + a_row(lane % 32, reg, part)) * 16 + q * 16 + a_k(lane % 32, reg, part)] =
                                half_value(a[i][q * 4 + reg] >> 16 * part & 0xffff);
                        }
                    }
                    for (int j = 0; j < 8; ++j) {
                        for (int reg = 0; reg < 2; ++reg) {
                            warp_b[(j * 8 + b_column(lane % 32, reg, part)) * 16 + q * 16 + b_k(lane % 32, reg, part)] =
                                half_value(b[j / 2][j % 2 * 2 + q * 2 + reg] >> 16 * part & 0xffff);
                        }
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            /* And sums the elements of C that are its own. */
            for (int i = 0; i < 1; ++i) {
                for (int j = 0; j < 8; ++j) {
                    for (int reg = 0; reg < 4; ++reg) {
                        __local const float *x = warp_a + (i * 16 + c_row(lane % 32, reg, 0)) * 16;
                        __local const float *y = warp_b + (j * 8 + c_column(lane % 32, reg, 0)) * 16;
                        sum[i][j * 4 + reg] += unit_dot(x, y);
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        stage = stage == 2 ? 0 : stage + 1;
    }
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
