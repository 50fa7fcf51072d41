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
    return k % s->group_k + 8 <= s->group_k;
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

static float round_dy(float v) {
    int bits = as_int(v) & 0x7fffffff;
    /* Finite values are clipped at 63.96875. */
    bits = select(min(bits, (int)(0x427fe000)), bits, bits >= 0x7f800000);
    float a = as_float(bits) * 0x1p10f;
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int power = clamp(as_int(a) & 0x7f800000, (int)(0x38800000), (int)(0x47000000));
    float m = as_float(power + 0x06800000);
    a = (a + m) - m;
    return as_float(as_int(a) | (as_int(v) & (int)0x80000000));
}

static float load_dy(__global const float *p, long i) {
    return round_dy(p[i]);
}

__attribute__((always_inline))
void stage_a_one(__local ushort *tile, __global const float *dy,
             const block_t *block, const sizes_t *sizes,
             int k0, int row, int k) {
    long at = dy_at(block, sizes, row, k0 + k);
    float value = at < 0 ? 0.0f : load_dy(dy, at);
    vstore_half(value, row * 40 + k, (__local half *)tile);
}

__attribute__((always_inline))
void stage_a(__local ushort *tile, __global const float *dy,
             const block_t *block, const sizes_t *sizes,
             int k0, int item) {
    for (int i = item; i < 64 * 32; i += 128)
        stage_a_one(tile, dy, block, sizes, k0,
            i / 32, i % 32);
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
void stage_b_one(__local ushort *tile, __global const float *w,
             const block_t *block, const sizes_t *sizes,
             int k0, int row, int k) {
    long at = w_at(block, sizes, row, k0 + k);
    float value = at < 0 ? 0.0f : load_w(w, at);
    vstore_half(value, row * 40 + k, (__local half *)tile);
}

__attribute__((always_inline))
void stage_b(__local ushort *tile, __global const float *w,
             const block_t *block, const sizes_t *sizes,
             int k0, int item) {
    for (int i = item; i < 32 * 32; i += 128)
        stage_b_one(tile, w, block, sizes, k0,
            i % 32, i / 32);
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
    __global const float *dy, long dy_offset,
    __global const float *w, long w_offset,
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
    __local float exchange_a[1024];
    __local float exchange_b[2048];
    int lane = item % 32;
    int warp = item / 32;
    float acc[1][4][4];
    for (int i = 0; i < 1; ++i) {
        for (int j = 0; j < 4; ++j) {
            for (int reg = 0; reg < 4; ++reg) {
                acc[i][j][reg] = 0.0f;
            }
        }
    }
    for (int k0 = block.begin; k0 < block.end; k0 += 32) {
        stage_a(tile_a, dy, &block, &sizes, k0, item);
        stage_b(tile_b, w, &block, &sizes, k0, item);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 32; k += 16) {
            uint a[1][4];
            uint b[4][2];
            for (int i = 0; i < 1; ++i) {
                for (int reg = 0; reg < 4; ++reg) {
                    a[i][reg] = load_pair(tile_a, warp * 16 + i * 16 +
                        a_row(lane, reg, 0), k + a_k(lane, reg, 0));
                }
            }
            for (int j = 0; j < 4; ++j) {
                for (int reg = 0; reg < 2; ++reg) {
                    b[j][reg] = load_pair(tile_b, j * 8 +
                        b_column(lane, reg, 0), k + b_k(lane, reg, 0));
                }
            }
            /* Each lane shows its fragments to its warp. */
            __local float *warp_a = exchange_a + warp * 16 * 16;
            __local float *warp_b = exchange_b + warp * 32 * 16;
            for (int i = 0; i < 1; ++i) {
                for (int reg = 0; reg < 4; ++reg) {
                    for (int part = 0; part < 2; ++part) {
                        warp_a[(i * 16 + a_row(lane, reg, part)) * 16 + a_k(lane, reg, part)] =
                            half_value(a[i][reg] >> 16 * part & 0xffff);
                    }
                }
            }
            for (int j = 0; j < 4; ++j) {
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
                for (int j = 0; j < 4; ++j) {
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
        for (int j = 0; j < 4; ++j) {
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
