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
    b->end = b->taps * s->group_k;
}

__attribute__((always_inline))
void block_place(block_t *b, const sizes_t *s, int number) {
    b->lines = (s->h - 1) / s->stride_h + 1;
    b->columns = (s->w - 1) / s->stride_w + 1;
    int pixel_tiles = (s->n * b->lines * b->columns + 64 - 1) / 64;
    int c_tiles = (s->group_c + 16 - 1) / 16;
    b->c0 = number % c_tiles * 16;
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
    int y = row.z + term.z;
    int x = row.w + term.w;
    return y >= 0 && y < limit_y && x >= 0 && x < limit_x;
}

long spot_index(spot_t row, spot_t term)
{
    return as_long(row.xy) + as_long(term.xy);
}

/* Do count spots, first to last, lie side by side in memory and in one row of
 * the tensor? Their columns are then reach apart. */
int spots_join(spot_t first, spot_t last, int count, int reach)
{
    return as_long(last.xy) - as_long(first.xy) == count - 1 &&
           last.z == first.z && last.w - first.w == reach;
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
static float pick_a(__global const float *p, spot_t r, spot_t t, const sizes_t *sizes) {
    return spot_inside(r, t, sizes->p, sizes->q) ? p[spot_index(r, t)] : (float)0;
}

__attribute__((always_inline))
static void fetch_a(float *next, __global const float *p,
    __local const spot_t *row,
    __local const spot_t *term, const sizes_t *sizes, int item) {
    int k = item % 16 * 1;
    spot_t t = term[k];
    #pragma unroll
    for (int i = 0; i < 16; ++i) {
        int index = item + i * 64;
        spot_t r = row[index / 16];
        next[i] = pick_a(p, r, t, sizes);
    }
}

__attribute__((always_inline))
static void put_a(__local ushort *tile, const float *next, int item) {
    #pragma unroll
    for (int i = 0; i < 16; ++i) {
        int index = item + i * 64;
        int row = index / 16;
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
static float pick_b(__global const float *p, spot_t r, spot_t t, const sizes_t *sizes) {
    return spot_inside(r, t, 1, 1) ? p[spot_index(r, t)] : (float)0;
}

__attribute__((always_inline))
static void fetch_b(float *next, __global const float *p,
    const spot_t *own,
    __local const spot_t *term, const sizes_t *sizes, int item) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        int index = item + i * 64;
        spot_t r = own[i % 1];
        spot_t t = term[index / 16];
        next[i] = pick_b(p, r, t, sizes);
    }
}

__attribute__((always_inline))
static void put_b(__local ushort *tile, const float *next, int item) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        int index = item + i * 64;
        int row = index % 16 * 1;
        int k = index / 16;
        float value = round_w(next[i]);
        vstore_half(value, k * 20 + row, (__local half *)tile);
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
__attribute__((reqd_work_group_size(64, 1, 1)))
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
    __local ushort tile_a[16 * 68] __attribute__((aligned(16)));
    __local spot_t row_a[64], term_a[128];
    float next_a[16];
    for (int i = item; i < 64; i += 64)
        row_a[i] = dy_row(&block, &sizes, i);
    __local ushort tile_b[16 * 20] __attribute__((aligned(16)));
    __local spot_t row_b[16], term_b[128];
    float next_b[4];
    for (int i = item; i < 16; i += 64)
        row_b[i] = w_row(&block, &sizes, i);
    for (int place = item; place < 128; place += 64) {
        int k = block.begin + place;
        term_a[place] = dy_term(&block, &sizes, k);
        term_b[place] = w_term(&block, &sizes, k);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    spot_t own_b[1];
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        int first = (item + i * 64) % 16 * 1;
        own_b[i] = row_b[first];
    }
    int step = 0; /* the place of its terms */
    fetch_a(next_a, (__global const float *)dy,
        row_a, term_a + step, &sizes, item);
    fetch_b(next_b, (__global const float *)w,
        own_b, term_b + step, &sizes, item);
    int chained = 0;
    int first_m = item / 4 * 4;
    int first_n = item % 4 * 4;
    float4 sum[4][1];
    float out[4 * 1 * 4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int v = 0; v < 1; ++v) {
            sum[i][v] = 0.0f;
            vstore4(sum[i][v], i * 1 + v, out);
        }
    }
    for (int k0 = block.begin; k0 < block.end; k0 += 16) {
        put_a(tile_a, next_a, item);
        put_b(tile_b, next_b, item);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k0 > block.begin && step % 64 == 0 && item < 64) {
            int place = (step + 64) % 128 + item;
            int k = k0 + 64 + item;
            term_a[place] = dy_term(&block, &sizes, k);
            term_b[place] = w_term(&block, &sizes, k);
        }
        step = (step + 16) % 128;
        if (k0 + 16 < block.end) {
            fetch_a(next_a, (__global const float *)dy,
                row_a, term_a + step, &sizes, item);
            fetch_b(next_b, (__global const float *)w,
                own_b, term_b + step, &sizes, item);
        }
        #pragma unroll 8
        for (int k = 0; k < 16; ++k) {
            float4 a0 = read_tile(tile_a + k * 68 + first_m + 0);
            float4 b0 = read_tile(tile_b + k * 20 + first_n + 0);
            sum[0][0] += a0.s0 * b0;
            sum[1][0] += a0.s1 * b0;
            sum[2][0] += a0.s2 * b0;
            sum[3][0] += a0.s3 * b0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if ((chained += 16) == 128) {
            chained = 0;
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                #pragma unroll
                for (int v = 0; v < 1; ++v) {
                    float4 total = vload4(i * 1 + v, out) + sum[i][v];
                    vstore4(total, i * 1 + v, out);
                    sum[i][v] = 0.0f;
                }
            }
        }
    }
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int v = 0; v < 1; ++v) {
            float4 total = vload4(i * 1 + v, out) + sum[i][v];
            vstore4(total, i * 1 + v, out);
        }
    }
    counts_t tally = { 0, 0, 0, 0, 0, 0 };
    long at_m[4];
    for (int i = 0; i < 4; ++i)
        at_m[i] = dx_row(&block, &sizes, first_m + i / 4 * 64 + i % 4);
    long at_n[4];
    for (int i = 0; i < 4; ++i)
        at_n[i] = dx_column(&block, &sizes, first_n + i / 4 * 16 + i % 4);
    #pragma unroll 1
    for (int sums = 0; sums < 4 * 1; ++sums) {
        long line = at_m[sums / 1];
        const long *place = at_n + sums % 1 * 4;
        if (line >= 0 && place[0] >= 0 && place[3] == place[0] + 3) {
            float4 value = vload4(sums, out);
            long i = line + place[0];
            store_dx4(dx, i, value, beta, &tally);
        } else {
            for (int j = 0; j < 4; ++j) {
                if (line >= 0 && place[j] >= 0) {
                    float value = out[4 * sums + j];
                    long i = line + place[j];
                    store_dx(dx, i, value, beta, &tally);
                }
            }
        }
    }
    counts_flush(dx_counts, &tally);
}
