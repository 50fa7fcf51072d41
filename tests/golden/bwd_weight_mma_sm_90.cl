/* Step 3: bwd_weight_mma */

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
    b->columns = s->r * s->s * s->group_c;
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
    int tap = column / s->group_c;
    int channel = column % s->group_c;
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
    return b->column0 + n < b->columns ? at : -1;
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
    long at = (b->group * s->group_k + k) * s->dy_channel;
    return spot(k < s->group_k, at, 0, 0);
}

__attribute__((always_inline))
spot_t dy_term(const block_t *b, const sizes_t *s, int k) {
    int3 pixel = pixel_at(s, k);
    long at = pixel.x * s->dy_image + pixel.y * s->dy_row + pixel.z * s->dy_column;
    return spot(k < b->end, at, 0, 0);
}

__attribute__((always_inline))
spot_t x_row(const block_t *b, const sizes_t *s, int row) {
    if (b->column0 + row >= b->columns)
        return spot(0, 0, 0, 0);
    int3 column = column_at(s, b->column0 + row);
    int y = column.y * s->dilation_h - s->pad_top;
    int x = column.z * s->dilation_w - s->pad_left;
    long at = (b->group * s->group_c + column.x) * s->x_channel + y * s->x_row + x * s->x_column;
    return spot(1, at, y, x);
}

__attribute__((always_inline))
spot_t x_term(const block_t *b, const sizes_t *s, int k) {
    int3 pixel = pixel_at(s, k);
    int y = pixel.y * s->stride_h;
    int x = pixel.z * s->stride_w;
    long at = pixel.x * s->x_image + y * s->x_row + x * s->x_column;
    return spot(k < b->end, at, y, x);
}

int dy_run(const block_t *b, const sizes_t *s, int row, int k) {
    return b->k0 + row + 8 <= s->group_k;
}

int x_run(const block_t *b, const sizes_t *s, int row, int k) {
    return (b->column0 + row) % s->group_c + 8 <= s->group_c;
}

long dy_at(const block_t *b, const sizes_t *sizes, int row, int k) {
    spot_t r = dy_row(b, sizes, row);
    spot_t t = dy_term(b, sizes, k);
    return spot_inside(r, t, 1, 1) ? spot_index(r, t) : -1;
}

long x_at(const block_t *b, const sizes_t *sizes, int row, int k) {
    spot_t r = x_row(b, sizes, row);
    spot_t t = x_term(b, sizes, k);
    return spot_inside(r, t, sizes->h, sizes->w) ? spot_index(r, t) : -1;
}

/*
 * c[16][8] += a[16][16] * b[16][8] by the 32 lanes of a warp together, in
 * NVIDIA's PTX: fp16 operands, fp32 sums. All lanes must take part.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
void unit_multiply(float *c, const uint *a, const uint *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                   "r"(b[1]));
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

uint load_pair(__local const ushort *tile, int row, int k) {
    return as_uint(*(__local const ushort2 *)(tile + row * 40 + k));
}

__attribute__((always_inline))
void stage_a_one(__local ushort *tile, __global const half *dy,
             const block_t *block, const sizes_t *sizes,
             int k0, int row, int k) {
    long at = dy_at(block, sizes, row, k0 + k);
    __global const ushort *bits = (__global const ushort *)dy;
    tile[row * 40 + k] = at < 0 ? (ushort)0 : bits[at];
}

__attribute__((always_inline))
void stage_a(__local ushort *tile, __global const half *dy,
             const block_t *block, const sizes_t *sizes,
             int k0, int item) {
    for (int i = item; i < 64 * 32 / 8; i += 128) {
        int row = i % 8 * 8, k = i / 8;
        long first = dy_at(block, sizes, row, k0 + k);
        long last = dy_at(block, sizes, row + 7, k0 + k);
        if (first >= 0 && last == first + 7 && dy_run(block, sizes, row, k0 + k)) {
            ushort8 values = vload8(0, (__global const ushort *)dy + first);
            tile[(row + 0) * 40 + k] = values.s0;
            tile[(row + 1) * 40 + k] = values.s1;
            tile[(row + 2) * 40 + k] = values.s2;
            tile[(row + 3) * 40 + k] = values.s3;
            tile[(row + 4) * 40 + k] = values.s4;
            tile[(row + 5) * 40 + k] = values.s5;
            tile[(row + 6) * 40 + k] = values.s6;
            tile[(row + 7) * 40 + k] = values.s7;
        } else {
            for (int j = 0; j < 8; ++j)
                stage_a_one(tile, dy, block, sizes, k0, row + j, k);
        }
    }
}

__attribute__((always_inline))
void stage_b_one(__local ushort *tile, __global const half *x,
             const block_t *block, const sizes_t *sizes,
             int k0, int row, int k) {
    long at = x_at(block, sizes, row, k0 + k);
    __global const ushort *bits = (__global const ushort *)x;
    tile[row * 40 + k] = at < 0 ? (ushort)0 : bits[at];
}

__attribute__((always_inline))
void stage_b(__local ushort *tile, __global const half *x,
             const block_t *block, const sizes_t *sizes,
             int k0, int item) {
    for (int i = item; i < 64 * 32 / 8; i += 128) {
        int row = i % 8 * 8, k = i / 8;
        long first = x_at(block, sizes, row, k0 + k);
        long last = x_at(block, sizes, row + 7, k0 + k);
        if (first >= 0 && last == first + 7 && x_run(block, sizes, row, k0 + k)) {
            ushort8 values = vload8(0, (__global const ushort *)x + first);
            tile[(row + 0) * 40 + k] = values.s0;
            tile[(row + 1) * 40 + k] = values.s1;
            tile[(row + 2) * 40 + k] = values.s2;
            tile[(row + 3) * 40 + k] = values.s3;
            tile[(row + 4) * 40 + k] = values.s4;
            tile[(row + 5) * 40 + k] = values.s5;
            tile[(row + 6) * 40 + k] = values.s6;
            tile[(row + 7) * 40 + k] = values.s7;
        } else {
            for (int j = 0; j < 8; ++j)
                stage_b_one(tile, x, block, sizes, k0, row + j, k);
        }
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
    block_place(&block, &sizes, 4, (int)get_group_id(0));
    int item = (int)get_local_id(0);
    __local ushort tile_a[64 * 40] __attribute__((aligned(16)));
    __local ushort tile_b[64 * 40] __attribute__((aligned(16)));
    int lane = item % 32;
    int warp = item / 32;
    float acc[1][8][4];
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            #pragma unroll
            for (int reg = 0; reg < 4; ++reg) {
                acc[i][j][reg] = 0.0f;
            }
        }
    }
    for (int k0 = block.begin; k0 < block.end; k0 += 32) {
        stage_a(tile_a, dy, &block, &sizes, k0, item);
        stage_b(tile_b, x, &block, &sizes, k0, item);
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int k = 0; k < 32; k += 16) {
            uint a[1][4];
            uint b[8][2];
            #pragma unroll
            for (int i = 0; i < 1; ++i) {
                #pragma unroll
                for (int reg = 0; reg < 4; ++reg) {
                    a[i][reg] = load_pair(tile_a, warp * 16 + i * 16 +
                        a_row(lane, reg, 0), k + a_k(lane, reg, 0));
                }
            }
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                #pragma unroll
                for (int reg = 0; reg < 2; ++reg) {
                    b[j][reg] = load_pair(tile_b, j * 8 +
                        b_column(lane, reg, 0), k + b_k(lane, reg, 0));
                }
            }
            #pragma unroll
            for (int i = 0; i < 1; ++i) {
                #pragma unroll
                for (int j = 0; j < 8; ++j) {
                    unit_multiply(acc[i][j], a[i], b[j]);
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            #pragma unroll
            for (int reg = 0; reg < 4; ++reg) {
                int m = warp * 16 + i * 16 + c_row(lane, reg, 0);
                int n = j * 8 + c_column(lane, reg, 0);
                float value = acc[i][j][reg];
                long row = dw_row(&block, &sizes, m);
                long column = dw_column(&block, &sizes, n);
                long i = row + column;
                if (row >= 0 && column >= 0) {
                    scratch[block.part * (sizes.k * sizes.w_image) + i] = value;
                }
            }
        }
    }
}

static float bias_share(__global const float *sums, int count, int run,
    int channels, int k) {
    float total = 0.0f;
    for (int i = (int)get_local_id(0); i < count;) {
        float sum = 0.0f;
        const int end = min(count, i + 8192);
        for (; i < end; i += 128)
            sum += sums[((long)(i / run) * channels + k) * run + i % run];
        total += sum;
    }
    return total;
}

static float bias_total(__local const float4 *shares) {
    float4 sum = 0.0f;
    for (int i = 0; i < 128 / 4; ++i)
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
__attribute__((reqd_work_group_size(128, 1, 1)))
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
    __local float4 bias_shares[128 / 4];
    const int k = (int)get_group_id(0);
    const int bias_wanted = db && k < sizes.k;
    ((__local float *)bias_shares)[get_local_id(0)] = bias_share(bias_sums, bias_wanted ? bias_count : 0, bias_run, sizes.k, k);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (bias_wanted && get_local_id(0) == 0) {
        store_db(db, k, bias_total(bias_shares), beta_db);
    }
    long count = sizes.k * sizes.w_image;
    long i = ((long)k - sizes.k) * 128 + get_local_id(0);
    if (dw && k >= sizes.k && i < count) {
        long place = i;
        float value = 0.0f;
        #pragma unroll 8
        for (int part = 0; part < 4; ++part)
            value += scratch[part * count + place];
        store_dw(dw, i, value, beta_dw);
    }
}
