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
    return k % s->q + 8 <= s->q;
}

int x_run(const block_t *b, const sizes_t *s, int row, int k) {
    return k % s->q + 8 <= s->q;
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
        int row = i / (32 / 8), k = i % (32 / 8) * 8;
        long first = dy_at(block, sizes, row, k0 + k);
        long last = dy_at(block, sizes, row, k0 + k + 7);
        if (first >= 0 && last == first + 7 && dy_run(block, sizes, row, k0 + k)) {
            *(__local ushort8 *)(tile + row * 40 + k) = vload8(0, (__global const ushort *)dy + first);
        } else {
            for (int j = 0; j < 8; ++j)
                stage_a_one(tile, dy, block, sizes, k0, row, k + j);
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
        int row = i / (32 / 8), k = i % (32 / 8) * 8;
        long first = x_at(block, sizes, row, k0 + k);
        long last = x_at(block, sizes, row, k0 + k + 7);
        if (first >= 0 && last == first + 7 && x_run(block, sizes, row, k0 + k)) {
            *(__local ushort8 *)(tile + row * 40 + k) = vload8(0, (__global const ushort *)x + first);
        } else {
            for (int j = 0; j < 8; ++j)
                stage_b_one(tile, x, block, sizes, k0, row, k + j);
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
    __global float *dw, long dw_offset,
    float beta,
    sizes_t sizes) {
    dy += dy_offset;
    x += x_offset;
    dw += dw_offset;
    block_t block;
    block_place(&block, &sizes, 1, (int)get_group_id(0));
    int item = (int)get_local_id(0);
    __local ushort tile_a[64 * 40] __attribute__((aligned(16)));
    __local ushort tile_b[64 * 40] __attribute__((aligned(16)));
    __local float exchange_a[1024];
    __local float exchange_b[4096];
    int lane = item % 32;
    int warp = item / 32;
    float acc[1][8][4];
    for (int i = 0; i < 1; ++i) {
        for (int j = 0; j < 8; ++j) {
            for (int reg = 0; reg < 4; ++reg) {
                acc[i][j][reg] = 0.0f;
            }
        }
    }
    for (int k0 = block.begin; k0 < block.end; k0 += 32) {
        stage_a(tile_a, dy, &block, &sizes, k0, item);
        stage_b(tile_b, x, &block, &sizes, k0, item);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 32; k += 16) {
            uint a[1][4];
            uint b[8][2];
            for (int i = 0; i < 1; ++i) {
                for (int reg = 0; reg < 4; ++reg) {
                    a[i][reg] = load_pair(tile_a, warp * 16 + i * 16 +
                        a_row(lane, reg, 0), k + a_k(lane, reg, 0));
                }
            }
            for (int j = 0; j < 8; ++j) {
                for (int reg = 0; reg < 2; ++reg) {
                    b[j][reg] = load_pair(tile_b, j * 8 +
                        b_column(lane, reg, 0), k + b_k(lane, reg, 0));
                }
            }
            /* Each lane shows its fragments to its warp. */
            __local float *warp_a = exchange_a + warp * 16 * 16;
            __local float *warp_b = exchange_b + warp * 64 * 16;
            for (int i = 0; i < 1; ++i) {
                for (int reg = 0; reg < 4; ++reg) {
                    for (int part = 0; part < 2; ++part) {
                        warp_a[(i * 16 + a_row(lane, reg, part)) * 16 + a_k(lane, reg, part)] =
                            half_value(a[i][reg] >> 16 * part & 0xffff);
                    }
                }
            }
            for (int j = 0; j < 8; ++j) {
                for (int reg = 0; reg < 2; ++reg) {
                    for (int part = 0; part < 2; ++part) {
                        warp_b[(j * 8 + b_column(lane, reg, part)) * 16 + b_k(lane, reg, part)] =
                            half_value(b[j][reg] >> 16 * part & 0xffff);
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            /* And sums the elements of C that are its own. */
            for (int i = 0; i < 1; ++i) {
                for (int j = 0; j < 8; ++j) {
                    for (int reg = 0; reg < 4; ++reg) {
                        __local const float *x = warp_a + (i * 16 + c_row(lane, reg, 0)) * 16;
                        __local const float *y = warp_b + (j * 8 + c_column(lane, reg, 0)) * 16;
                        acc[i][j][reg] += unit_dot(x, y);
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < 1; ++i) {
        for (int j = 0; j < 8; ++j) {
            for (int reg = 0; reg < 4; ++reg) {
                int m = warp * 16 + i * 16 + c_row(lane, reg, 0);
                int n = j * 8 + c_column(lane, reg, 0);
                float value = acc[i][j][reg];
                long row = dw_row(&block, &sizes, m);
                long column = dw_column(&block, &sizes, n);
                long i = row + column;
                if (row >= 0 && column >= 0) {
                    store_dw(dw, i, value, beta);
                }
            }
        }
    }
}
