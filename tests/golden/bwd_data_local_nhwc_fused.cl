/* Step 2: bwd_data_local */

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
    b->end = b->taps * ((s->group_k + 16 - 1) / 16 * 16);
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
    int tap = k / 16 % b->taps;
    int channel = k / 16 / b->taps * 16 + k % 16;
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
    if (term.x >= s->group_k)
        return spot(0, 0, 0, 0);
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
    if (term.x >= s->group_k)
        return spot(0, 0, 0, 0);
    long at = term.x * s->w_image + term.y * s->w_row + term.z * s->w_column;
    return spot(1, at, 0, 0);
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

__attribute__((always_inline))
static int inside_a(spot_t r, spot_t t, const sizes_t *sizes) {
    return spot_inside(r, t, sizes->p, sizes->q);
}

__attribute__((always_inline))
static __global const float *from_a(__global const float *p, spot_t r, spot_t t) {
    return (__global const float *)((__global const char *)p + spot_index(r, t));
}

__attribute__((always_inline))
static float pick_a(__global const float *p, spot_t r, spot_t t, const sizes_t *sizes) {
    if (!inside_a(r, t, sizes))
        return (float)0;
    p = from_a(p, r, t);
    return *p;
}

__attribute__((always_inline))
static void fetch_a(float *next, __global const float *p,
    __local const spot_t *row,
    __local const spot_t *term, const sizes_t *sizes, int item) {
    spot_t t = term[item % 16 * 1];
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        int index = item + i * 128;
        spot_t r = row[index / 16 * 1];
        next[i] = pick_a(p, r, t, sizes);
    }
}

__attribute__((always_inline))
static void put_a(__local ushort *tile, const float *next, int item) {
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        int index = item + i * 128;
        int row = index / 16 * 1;
        int k = index % 16 * 1;
        float value = round_dy(next[i]);
        vstore_half(value, k * 68 + row, (__local half *)tile);
    }
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

__attribute__((always_inline))
static int inside_b(spot_t r, spot_t t, const sizes_t *sizes) {
    return r.z + t.z >= 0;
}

__attribute__((always_inline))
static __global const float *from_b(__global const float *p, spot_t r, spot_t t) {
    return (__global const float *)((__global const char *)p + spot_index(r, t));
}

__attribute__((always_inline))
static float pick_b(__global const float *p, spot_t r, spot_t t, const sizes_t *sizes) {
    if (!inside_b(r, t, sizes))
        return (float)0;
    p = from_b(p, r, t);
    return *p;
}

__attribute__((always_inline))
static void fetch_b(float *next, __global const float *p,
    const spot_t *own,
    __local const spot_t *term, const sizes_t *sizes, int item) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        int index = item + i * 128;
        spot_t r = own[i % 1];
        spot_t t = term[index / 32 * 1];
        next[i] = pick_b(p, r, t, sizes);
    }
}

__attribute__((always_inline))
static void put_b(__local ushort *tile, const float *next, int item) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        int index = item + i * 128;
        int row = index % 32 * 1;
        int k = index / 32 * 1;
        float value = round_w(next[i]);
        vstore_half(value, k * 36 + row, (__local half *)tile);
    }
}

static float4 read_tile(__local const ushort *p) {
    return vload_half4(0, (__local const half *)p);
}

static float round_dx(float v) {
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

/*
 * What rounding did to elements of one tensor: a work-item's own sums, then
 * added to the report. Fields as in clconv_counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
typedef struct {
    uint nonzero, zeroed, subnormal, saturated, nan, inf;
} counts_t;

/* Adds to a 64-bit count, two uints, low first. */
static void counts_add(volatile __global uint *count, uint amount)
{
    if (amount == 0)
        return;
    uint old = atomic_add(count, amount);
    if (old + amount < old)
        atomic_inc(count + 1);
}

/* No report, no work. */
static void counts_flush(volatile __global uint *counts, counts_t *tally)
{
    if (!counts)
        return;
    counts_add(counts, tally->nonzero);
    counts_add(counts + 2, tally->zeroed);
    counts_add(counts + 4, tally->subnormal);
    counts_add(counts + 6, tally->saturated);
    counts_add(counts + 8, tally->nan);
    counts_add(counts + 10, tally->inf);
}

/* Classes of an element as five-bit fields, so that one sum over a vector of
 * up to 16 elements counts all six: nonzero, zeroed, subnormal, saturated,
 * nan, inf from the lowest. */
static void counts_take(counts_t *tally, int classes)
{
    tally->nonzero += classes & 31;
    tally->zeroed += classes >> 5 & 31;
    tally->subnormal += classes >> 10 & 31;
    tally->saturated += classes >> 15 & 31;
    tally->nan += classes >> 20 & 31;
    tally->inf += classes >> 25 & 31;
}

static void count_dx(counts_t *tally, float before, float after) {
    int b = as_int(before) & 0x7fffffff;
    int a = as_int(after) & 0x7fffffff;
    int is_nan = b > 0x7f800000;
    int is_inf = b == 0x7f800000;
    int nonzero = (b > 0) & (b <= 0x7f800000);
    int zeroed = nonzero & (a == 0);
    int subnormal = (a > 0) & (a < 0x38800000);
    int saturated = (b > 0x477fe000) & (b < 0x7f800000);
    int packed = (nonzero & 1) | (zeroed & 1) << 5 |
        (subnormal & 1) << 10 | (saturated & 1) << 15 |
        (is_nan & 1) << 20 | (is_inf & 1) << 25;
    int one = packed;
    counts_take(tally, one);
}

static void store_dx(__global half *p, long i,
    float value, float beta, counts_t *tally) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload_half(i, p);
    }
    float before = value;
    value = round_dx(value);
    count_dx(tally, before, value);
    vstore_half(value, i, p);
}

static float4 round_dx4(float4 v) {
    int4 bits = as_int4(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int4)(0x477fe000)), bits, bits >= 0x7f800000);
    float4 a = as_float4(bits);
    /* m: 2^13 times the power of two in a, so that a sum has fp16's unit. */
    int4 power = clamp(as_int4(a) & 0x7f800000, (int4)(0x38800000), (int4)(0x47000000));
    float4 m = as_float4(power + 0x06800000);
    a = (a + m) - m;
    return as_float4(as_int4(a) | (as_int4(v) & (int)0x80000000));
}

static void count_dx4(counts_t *tally, float4 before, float4 after) {
    int4 b = as_int4(before) & 0x7fffffff;
    int4 a = as_int4(after) & 0x7fffffff;
    int4 is_nan = b > 0x7f800000;
    int4 is_inf = b == 0x7f800000;
    int4 nonzero = (b > 0) & (b <= 0x7f800000);
    int4 zeroed = nonzero & (a == 0);
    int4 subnormal = (a > 0) & (a < 0x38800000);
    int4 saturated = (b > 0x477fe000) & (b < 0x7f800000);
    int4 packed = (nonzero & 1) | (zeroed & 1) << 5 |
        (subnormal & 1) << 10 | (saturated & 1) << 15 |
        (is_nan & 1) << 20 | (is_inf & 1) << 25;
    int4 four = packed;
    int2 two = four.lo + four.hi;
    int one = two.lo + two.hi;
    counts_take(tally, one);
}

static void store_dx4(__global half *p, long i,
    float4 value, float beta, counts_t *tally) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * vload_half4(0, p + i);
    }
    float4 before = value;
    value = round_dx4(value);
    count_dx4(tally, before, value);
    vstore_half4(value, 0, p + i);
}

__kernel
__attribute__((reqd_work_group_size(128, 1, 1)))
void bwd_data_local(
    __global const float *dy, long dy_offset,
    __global const float *w, long w_offset,
    __global half *dx, long dx_offset,
    float beta,
    sizes_t sizes,
    __global uint *dx_counts, long dx_counts_offset) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    if (dx_counts)
        dx_counts += dx_counts_offset;
    block_t block;
    block_place(&block, &sizes, (int)get_group_id(0));
    int item = (int)get_local_id(0);
    __local ushort tile_a[2 * 1088] __attribute__((aligned(16)));
    __local spot_t row_a[64], term_a[256];
    float next_a[8];
    for (int i = item; i < 64; i += 128)
        row_a[i] = spot_scaled(dy_row(&block, &sizes, i), sizeof(float));
    __local ushort tile_b[2 * 576] __attribute__((aligned(16)));
    __local spot_t row_b[32], term_b[256];
    float next_b[4];
    for (int i = item; i < 32; i += 128)
        row_b[i] = spot_scaled(w_row(&block, &sizes, i), sizeof(float));
    for (int at = item; at < 128; at += 128) {
        int k = block.begin + at;
        term_a[at] = spot_scaled(dy_term(&block, &sizes, k), sizeof(*dy));
        term_b[at] = spot_scaled(w_term(&block, &sizes, k), sizeof(*w));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    spot_t own_b[1];
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        own_b[i] = row_b[(item + i * 128) % 32 * 1];
    }
    int place = 0; /* of the step's terms */
    int turn = 0; /* of the tiles */
    fetch_a(next_a, (__global const float *)dy,
        row_a, term_a + place, &sizes, item);
    fetch_b(next_b, (__global const float *)w,
        own_b, term_b + place, &sizes, item);
    put_a(tile_a + turn * 1088, next_a, item);
    put_b(tile_b + turn * 576, next_b, item);
    barrier(CLK_LOCAL_MEM_FENCE);
    int pair = item / (2 * 8);
    int first_m = (pair % 8 * 2 + item % 2) * 4;
    int first_n = (pair / 8 * 8 + item / 2 % 8) * 4;
    float4 sum[4][1];
    float4 out[4 * 1];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int v = 0; v < 1; ++v) {
            sum[i][v] = 0.0f;
            out[i * 1 + v] = 0.0f;
        }
    }
    for (int k0 = block.begin; k0 < block.end; k0 += 128) {
        for (int i = item; i < 128; i += 128) {
            int k = k0 + 128 + i;
            int at = (k - block.begin) % 256;
            term_a[at] = spot_scaled(dy_term(&block, &sizes, k), sizeof(*dy));
            term_b[at] = spot_scaled(w_term(&block, &sizes, k), sizeof(*w));
        }
        int last = min(k0 + 128, block.end);
        for (int k = k0; k < last; k += 16) {
            int more = k + 16 < block.end;
            place = (place + 16) & (256 - 1);
            if (more) {
                fetch_a(next_a, (__global const float *)dy,
                    row_a, term_a + place, &sizes, item);
                fetch_b(next_b, (__global const float *)w,
                    own_b, term_b + place, &sizes, item);
            }
            __local const ushort *at_a = tile_a + turn * 1088 + first_m;
            __local const ushort *at_b = tile_b + turn * 576 + first_n;
            #pragma unroll
            for (int k = 0; k < 16; ++k) {
                float4 a0 = read_tile(at_a + k * 68 + 0);
                float4 b0 = read_tile(at_b + k * 36 + 0);
                sum[0][0] += a0.s0 * b0;
                sum[1][0] += a0.s1 * b0;
                sum[2][0] += a0.s2 * b0;
                sum[3][0] += a0.s3 * b0;
            }
            turn ^= 1;
            if (more) {
                put_a(tile_a + turn * 1088, next_a, item);
                put_b(tile_b + turn * 576, next_b, item);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            #pragma unroll
            for (int v = 0; v < 1; ++v) {
                out[i * 1 + v] += sum[i][v];
                sum[i][v] = 0.0f;
            }
        }
    }
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    long at_m[4];
    for (int i = 0; i < 4; ++i)
        at_m[i] = dx_row(&block, &sizes, first_m + i / 4 * 64 + i % 4);
    long at_n[4];
    for (int i = 0; i < 4; ++i)
        at_n[i] = dx_column(&block, &sizes, first_n + i / 4 * 32 + i % 4);
    #pragma unroll 1
    for (int sums = 0; sums < 4 * 1; ++sums) {
        long line = at_m[sums / 1];
        const long *place = at_n + sums % 1 * 4;
        if (line >= 0 && place[0] >= 0 && place[3] == place[0] + 3) {
            float4 value = out[sums];
            long i = line + place[0];
            store_dx4(dx, i, value, beta, &tally);
        } else {
            for (int j = 0; j < 4; ++j) {
                if (line >= 0 && place[j] >= 0) {
                    float value = ((const float *)out)[4 * sums + j];
                    long i = line + place[j];
                    store_dx(dx, i, value, beta, &tally);
                }
            }
        }
    }
    counts_flush(dx_counts, &tally);
}
