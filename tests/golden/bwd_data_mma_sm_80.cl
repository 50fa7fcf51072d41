/* Step 2: bwd_data_mma */

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
    b->end = b->taps * s->group_k;
}

__attribute__((always_inline))
void block_place(block_t *b, const sizes_t *s, int number) {
    b->lines = (s->h - 1) / s->stride_h + 1;
    b->columns = (s->w - 1) / s->stride_w + 1;
    int pixel_tiles = (s->n * b->lines * b->columns + 64 - 1) / 64;
    int c_tiles = (s->group_c + 32 - 1) / 32;
    b->c0 = number % c_tiles * 32;
    number /= c_tiles;
    b->pixel0 = number % pixel_tiles * 64;
    number /= pixel_tiles;
    b->group = number % s->groups;
    number /= s->groups;
    int phases_w = min(s->stride_w, s->w);
    b->w0 = number % phases_w;
    b->h0 = number / phases_w;
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
    int tap = k / s->group_k;
    int channel = k % s->group_k;
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
    long at = pixel.x * s->dy_image + pixel.y * s->dy_row + pixel.z * s->dy_column;
    at += b->group * s->group_k * s->dy_channel;
    return spot(pixel.x >= 0, at, pixel.y, pixel.z);
}

__attribute__((always_inline))
spot_t dy_term(const block_t *b, const sizes_t *s, int k) {
    if (k >= b->end)
        return spot(0, 0, 0, 0);
    int3 term = term_at(b, s, k);
    int y = (b->h0 + s->pad_top - term.y * s->dilation_h) / s->stride_h;
    int x = (b->w0 + s->pad_left - term.z * s->dilation_w) / s->stride_w;
    long at = term.x * s->dy_channel + y * s->dy_row + x * s->dy_column;
    return spot(1, at, y, x);
}

__attribute__((always_inline))
spot_t w_row(const block_t *b, const sizes_t *s, int row) {
    int c = b->c0 + row;
    long at = b->group * s->group_k * s->w_image + c * s->w_channel;
    return spot(c < s->group_c, at, 0, 0);
}

__attribute__((always_inline))
spot_t w_term(const block_t *b, const sizes_t *s, int k) {
    if (k >= b->end)
        return spot(0, 0, 0, 0);
    int3 term = term_at(b, s, k);
    long at = term.x * s->w_image + term.y * s->w_row + term.z * s->w_column;
    return spot(1, at, 0, 0);
}

int dy_run(const block_t *b, const sizes_t *s, int row, int k) {
    return (b->pixel0 + row) % b->columns + 8 <= b->columns;
}

int w_run(const block_t *b, const sizes_t *s, int row, int k) {
    return b->c0 + row + 8 <= s->group_c;
}

long dy_at(const block_t *b, const sizes_t *sizes, int row, int k) {
    spot_t r = dy_row(b, sizes, row);
    spot_t t = dy_term(b, sizes, k);
    return spot_inside(r, t, sizes->p, sizes->q) ? spot_index(r, t) : -1;
}

long w_at(const block_t *b, const sizes_t *sizes, int row, int k) {
    spot_t r = w_row(b, sizes, row);
    spot_t t = w_term(b, sizes, k);
    return spot_inside(r, t, 1, 1) ? spot_index(r, t) : -1;
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
void stage_b_one(__local ushort *tile, __global const half *w,
             const block_t *block, const sizes_t *sizes,
             int k0, int row, int k) {
    long at = w_at(block, sizes, row, k0 + k);
    __global const ushort *bits = (__global const ushort *)w;
    tile[row * 40 + k] = at < 0 ? (ushort)0 : bits[at];
}

__attribute__((always_inline))
void stage_b(__local ushort *tile, __global const half *w,
             const block_t *block, const sizes_t *sizes,
             int k0, int item) {
    for (int i = item; i < 32 * 32 / 8; i += 128) {
        int row = i % 4 * 8, k = i / 4;
        long first = w_at(block, sizes, row, k0 + k);
        long last = w_at(block, sizes, row + 7, k0 + k);
        if (first >= 0 && last == first + 7 && w_run(block, sizes, row, k0 + k)) {
            ushort8 values = vload8(0, (__global const ushort *)w + first);
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
                stage_b_one(tile, w, block, sizes, k0, row + j, k);
        }
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
    int item = (int)get_local_id(0);
    __local ushort tile_a[64 * 40] __attribute__((aligned(16)));
    __local ushort tile_b[32 * 40] __attribute__((aligned(16)));
    int lane = item % 32;
    int warp = item / 32;
    float acc[1][4][4];
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            #pragma unroll
            for (int reg = 0; reg < 4; ++reg) {
                acc[i][j][reg] = 0.0f;
            }
        }
    }
    for (int k0 = block.begin; k0 < block.end; k0 += 32) {
        stage_a(tile_a, dy, &block, &sizes, k0, item);
        stage_b(tile_b, w, &block, &sizes, k0, item);
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int k = 0; k < 32; k += 16) {
            uint a[1][4];
            uint b[4][2];
            #pragma unroll
            for (int i = 0; i < 1; ++i) {
                #pragma unroll
                for (int reg = 0; reg < 4; ++reg) {
                    a[i][reg] = load_pair(tile_a, warp * 16 + i * 16 +
                        a_row(lane, reg, 0), k + a_k(lane, reg, 0));
                }
            }
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                #pragma unroll
                for (int reg = 0; reg < 2; ++reg) {
                    b[j][reg] = load_pair(tile_b, j * 8 +
                        b_column(lane, reg, 0), k + b_k(lane, reg, 0));
                }
            }
            #pragma unroll
            for (int i = 0; i < 1; ++i) {
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    unit_multiply(acc[i][j], a[i], b[j]);
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            #pragma unroll
            for (int reg = 0; reg < 4; ++reg) {
                int m = warp * 16 + i * 16 + c_row(lane, reg, 0);
                int n = j * 8 + c_column(lane, reg, 0);
                float value = acc[i][j][reg];
                long row = dx_row(&block, &sizes, m);
                long column = dx_column(&block, &sizes, n);
                long i = row + column;
                if (row >= 0 && column >= 0) {
                    store_dx(dx, i, value, beta);
                }
            }
        }
    }
}
