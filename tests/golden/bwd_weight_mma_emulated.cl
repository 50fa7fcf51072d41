/* Step 3: bwd_weight_mma */

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

/* One work-group's tile of dW. */
typedef struct {
    int group;
    int k0, column0; /* of the tile */
    int columns; /* taps * channels of a group */
    int part; /* of the split sum */
    int begin, end; /* its pixels */
} block_t;

__attribute__((always_inline))
void block_place(block_t *b, const sizes_t *s, int split, int number) {
    b->columns = s->r * s->s * padded(s->group_c);
    int column_tiles = (b->columns + 64 - 1) / 64;
    int k_tiles = (s->group_k + 64 - 1) / 64;
    b->column0 = number % column_tiles * 64;
    number /= column_tiles;
    b->k0 = number % k_tiles * 64;
    number /= k_tiles;
    b->group = number % s->groups;
    b->part = number / s->groups;
    int pixels = s->n * s->p * s->q;
    int tiles = (pixels + split * 32 - 1) / (split * 32);
    b->begin = min(b->part * tiles * 32, pixels);
    b->end = min(b->begin + tiles * 32, pixels);
}

__attribute__((always_inline))
int3 pixel_at(const sizes_t *s, int pixel) {
    int row = pixel / s->q;
    return (int3)(row / s->p, row % s->p, pixel % s->q);
}

__attribute__((always_inline))
int3 column_at(const sizes_t *s, int column) {
    int tap = column / padded(s->group_c);
    int channel = column % padded(s->group_c);
    return (int3)(channel, tap / s->s, tap % s->s);
}

__attribute__((always_inline))
long dw_row(const block_t *b, const sizes_t *s, int m) {
    int k = b->k0 + m;
    long at = (b->group * s->group_k + k) * s->w_image;
    return k < s->group_k ? at : -1;
}

__attribute__((always_inline))
long dw_column(const block_t *b, const sizes_t *s, int n) {
    int3 column = column_at(s, b->column0 + n);
    long at = column.x * s->w_channel + column.y * s->w_row + column.z * s->w_column;
    return b->column0 + n < b->columns && column.x < s->group_c ? at : -1;
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
    int k = b->k0 + row;
    long at = (b->group * padded(s->group_k) + k) * 1;
    return spot(k < s->group_k, at, 0, 0);
}

__attribute__((always_inline))
spot_t dy_term(const block_t *b, const sizes_t *s, int k) {
    int3 pixel = pixel_at(s, k);
    long at = pixel.x * ((long)s->p * s->q * s->groups * padded(s->group_k)) + pixel.y * ((long)s->q * s->groups * padded(s->group_k)) + pixel.z * ((long)s->groups * padded(s->group_k));
    return spot(k < b->end, at, 0, 0);
}

__attribute__((always_inline))
spot_t x_row(const block_t *b, const sizes_t *s, int row) {
    if (b->column0 + row >= b->columns)
        return spot(0, 0, 0, 0);
    int3 column = column_at(s, b->column0 + row);
    int y = column.y * s->dilation_h - s->pad_top;
    int x = column.z * s->dilation_w - s->pad_left;
    long at = (b->group * padded(s->group_c) + column.x) * 1 + y * ((long)s->w * s->groups * padded(s->group_c)) + x * ((long)s->groups * padded(s->group_c));
    return spot(1, at, y, x);
}

__attribute__((always_inline))
spot_t x_term(const block_t *b, const sizes_t *s, int k) {
    int3 pixel = pixel_at(s, k);
    int y = pixel.y * s->stride_h;
    int x = pixel.z * s->stride_w;
    long at = pixel.x * ((long)s->h * s->w * s->groups * padded(s->group_c)) + y * ((long)s->w * s->groups * padded(s->group_c)) + x * ((long)s->groups * padded(s->group_c));
    return spot(k < b->end, at, y, x);
}

__attribute__((always_inline))
long part_row(const block_t *b, const sizes_t *s, int m) {
    return dw_row(b, s, m);
}

__attribute__((always_inline))
long part_column(const block_t *b, const sizes_t *s, int n) {
    int3 column = column_at(s, b->column0 + n);
    int tap = column.y * s->s + column.z;
    return b->column0 + n < b->columns && column.x < s->group_c ? tap * s->group_c + column.x : -1;
}

__attribute__((always_inline))
int3 element_at(const sizes_t *s, long i) {
    int k = i / s->w_image;
    int rest = (int)(i - k * s->w_image);
    int taps = s->r * s->s;
    return s->w_channel == 1 ? (int3)(k, rest / s->group_c, rest % s->group_c)
                             : (int3)(k, rest % taps, rest / taps);
}

__attribute__((always_inline))
long part_place(const sizes_t *s, long i) {
    int3 element = element_at(s, i);
    int own = element.x / s->group_k % 1;
    long tap = (long)element.x * (s->r * s->s) + element.y;
    return tap * (1 * s->group_c) + own * s->group_c + element.z;
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
    for (int i = 0; i < 1; ++i)
        rows[i] = dy_row(block, sizes, 64 * i + 8 * (item % 8));
}

__attribute__((always_inline))
void a_fetch(uint4 *held, __global const half *dy, const block_t *block, const sizes_t *sizes, const spot_t *rows, int k0, int item) {
    #pragma unroll
    for (int j = 0; j < 2; ++j) {
        const spot_t term = dy_term(block, sizes, k0 + item / 8 + 16 * j);
        #pragma unroll
        for (int i = 0; i < 1; ++i) {
            const int piece = 1 * j + i;
            const int exists = spot_inside(rows[i], term, 1, 1);
            held[piece] = exists ? *(__global const uint4 *)(dy + spot_index(rows[i], term)) : (uint4)(0);
        }
    }
}

__attribute__((always_inline))
void a_put(__local uchar *tiles, uint at, const uint4 *held, int item) {
    at += swizzled(16 * item, 128);
    #pragma unroll
    for (int j = 0; j < 2; ++j) {
        #pragma unroll
        for (int i = 0; i < 1; ++i) {
            const int piece = 1 * j + i;
            const uint to = at + 2048 * j + 4096 * i;
            put16(tiles, to, held[piece]);
        }
    }
}

__attribute__((always_inline))
void b_begin(const block_t *block, const sizes_t *sizes, int item, spot_t *rows) {
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        rows[i] = x_row(block, sizes, 64 * i + 8 * (item % 8));
}

__attribute__((always_inline))
void b_fetch(uint4 *held, __global const half *x, const block_t *block, const sizes_t *sizes, const spot_t *rows, int k0, int item) {
    #pragma unroll
    for (int j = 0; j < 2; ++j) {
        const spot_t term = x_term(block, sizes, k0 + item / 8 + 16 * j);
        #pragma unroll
        for (int i = 0; i < 1; ++i) {
            const int piece = 1 * j + i;
            const int exists = spot_inside(rows[i], term, sizes->h, sizes->w);
            held[piece] = exists ? *(__global const uint4 *)(x + spot_index(rows[i], term)) : (uint4)(0);
        }
    }
}

__attribute__((always_inline))
void b_put(__local uchar *tiles, uint at, const uint4 *held, int item) {
    at += swizzled(16 * item, 128);
    #pragma unroll
    for (int j = 0; j < 2; ++j) {
        #pragma unroll
        for (int i = 0; i < 1; ++i) {
            const int piece = 1 * j + i;
            const uint to = at + 2048 * j + 4096 * i;
            put16(tiles, to, held[piece]);
        }
    }
}

__attribute__((always_inline))
uint place_a(int row, int k, int lane) {
    row += lane / 8 % 2 * 8;
    k += lane % 8 + lane / 16 % 2 * 8;
    return row / 64 * 4096 + swizzled(128 * k + 2 * (row % 64), 128);
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
        uint low = *(__local const ushort *)(tiles + place_a(row, k, 8 * i + 2 * t) + 2 * g);
        uint high = *(__local const ushort *)(tiles + place_a(row, k, 8 * i + 2 * t + 1) + 2 * g);
        m[i] = low | high << 16;
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

static void store_dw(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

__kernel
__attribute__((reqd_work_group_size(128, 1, 1)))
void bwd_weight_mma(
    __global const half *dy, long dy_offset,
    __global const half *x, long x_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes) {
    dy += dy_offset;
    x += x_offset;
    scratch += scratch_offset;
    block_t block;
    block_place(&block, &sizes, 1, (int)get_group_id(0));
    __local uchar tiles[16384] __attribute__((aligned(128)));
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
    spot_t a_rows[1], b_rows[1];
    a_begin(&block, &sizes, item, a_rows);
    b_begin(&block, &sizes, item, b_rows);
    uint4 a_held[2], b_held[2];
    int ahead = block.begin, stage = 0;
    if (ahead < block.end) {
        a_fetch(a_held, dy, &block, &sizes, a_rows, ahead, item);
        b_fetch(b_held, x, &block, &sizes, b_rows, ahead, item);
        ahead += 32;
        a_put(tiles, base + stage * 8192, a_held, item);
        b_put(tiles, base + stage * 8192 + 4096, b_held, item);
    }
    for (int k0 = block.begin; k0 < block.end; k0 += 32) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const bool more = ahead < block.end;
        if (more) {
            a_fetch(a_held, dy, &block, &sizes, a_rows, ahead, item);
            b_fetch(b_held, x, &block, &sizes, b_rows, ahead, item);
            ahead += 32;
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
            for (int q = 0; q < 2; ++q) {
                for (int part = 0; part < 2; ++part) {
                    for (int i = 0; i < 1; ++i) {
                        for (int reg = 0; reg < 2; ++reg) {
                            warp_a[(i * 16 + a_row(lane % 32, reg, part)) * 16 + q * 8 + a_k(lane % 32, reg, part)] =
                                half_value(a[i][q * 2 + reg] >> 16 * part & 0xffff);
                        }
                    }
                    for (int j = 0; j < 8; ++j) {
                        for (int reg = 0; reg < 1; ++reg) {
                            warp_b[(j * 8 + b_column(lane % 32, reg, part)) * 16 + q * 8 + b_k(lane % 32, reg, part)] =
                                half_value(b[j / 2][j % 2 * 2 + q * 1 + reg] >> 16 * part & 0xffff);
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
        stage ^= 1;
        if (more) {
            a_put(tiles, base + stage * 8192, a_held, item);
            b_put(tiles, base + stage * 8192 + 4096, b_held, item);
        }
    }
    __global float *partial = scratch + block.part * (sizes.k * sizes.w_image);
    #pragma unroll
    for (int i = 0; i < 2 * 1; ++i) {
        const int first = 2 * (i % 2);
        const long row = part_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
        #pragma unroll
        for (int reg = first; reg < 32; reg += 4) {
            const float *s = sum[i / 2] + reg;
            const long column = part_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0));
            if (row >= 0 && column >= 0)
                *(__global float2 *)(partial + row + column) = (float2)(s[0] * 0x1p0f, s[1] * 0x1p0f);
        }
    }
}

static float bias_share(__global const float *sums, int count, int run,
    int channels, int k) {
    float total = 0.0f;
    for (int i = (int)get_local_id(0); i < count;) {
        float sum = 0.0f;
        const int end = min(count, i + 16384);
        for (; i < end; i += 256)
            sum += sums[((long)(i / run) * channels + k) * run + i % run];
        total += sum;
    }
    return total;
}

static float bias_total(__local const float4 *shares) {
    float4 sum = 0.0f;
    for (int i = 0; i < 256 / 4; ++i)
        sum += shares[i];
    return (sum.x + sum.y) + (sum.z + sum.w);
}

static void store_db(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

__kernel
__attribute__((reqd_work_group_size(256, 1, 1)))
void bwd_weight_mma_sum(
    __global float *scratch, long scratch_offset,
    __global float *dw, long dw_offset,
    float beta_dw,
    sizes_t sizes,
    __global const float *bias_sums, long bias_sums_offset, int bias_count, int bias_run,
    __global float *db, long db_offset,
    float beta_db) {
    scratch += scratch_offset;
    dw += dw_offset;
    bias_sums += bias_sums_offset;
    db += db_offset;
    __local float4 bias_shares[256 / 4];
    const int k = (int)get_group_id(0);
    const int bias_wanted = db && k < sizes.k;
    ((__local float *)bias_shares)[get_local_id(0)] = bias_share(bias_sums, bias_wanted ? bias_count : 0, bias_run, sizes.k, k);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (bias_wanted && get_local_id(0) == 0) {
        store_db(db, k, bias_total(bias_shares), beta_db);
    }
    long count = sizes.k * sizes.w_image;
    long i = ((long)k - sizes.k) * 256 + get_local_id(0);
    if (dw && k >= sizes.k && i < count) {
        long place = part_place(&sizes, i);
        float value = 0.0f;
        for (int part = 0; part < 1; ++part)
            value += scratch[part * count + place];
        store_dw(dw, i, value, beta_dw);
    }
}
