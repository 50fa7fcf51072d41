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
    long at = b->group * s->group_k * s->w_image + c * 1;
    return spot(c < s->group_c, at, 0, 0);
}

__attribute__((always_inline))
spot_t w_term(const block_t *b, const sizes_t *s, int k) {
    if (k >= b->end)
        return spot(0, 0, 0, 0);
    int3 term = term_at(b, s, k);
    if (term.x >= s->group_k)
        return spot(0, 0, 0, 0);
    long at = term.x * s->w_image + term.y * (long)s->s * s->group_c + term.z * (long)s->group_c;
    return spot(1, at, 0, 0);
}

/*
 * What copies to local memory need that go on by themselves (cp.async): an
 * address, that of a byte in local memory as PTX counts them, and the end of a
 * group of copies, which is waited for as a whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static uint shared_address(__local const void *p)
{
    uint address;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }"
        : "=r"(address) : "l"((ulong)p));
    return address;
}

static void copies_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/*
 * Copies of floats from global to local memory that go on while the work-item
 * does something else, in groups (copy_group.cl) that are waited for in order.
 * What does not exist is zero, and is not read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static void copy1(__local float *tiles, uint to, __global const float *from,
                  int exists)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(to), "l"(from), "r"(exists ? 4 : 0) : "memory");
}

/* Both addresses are multiples of 16. */
static void copy4(__local float *tiles, uint to, __global const float *from,
                  int exists)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(exists ? 16 : 0) : "memory");
}

/* For all groups but so many. */
static void copies_wait0(void)
{
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}

static void copies_wait1(void)
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
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
static void copy_a(__local float *tiles, uint tile, __global const float *p,
    const spot_t *own,
    __local const spot_t *term, const sizes_t *sizes, int item) {
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        int index = item + i * 128;
        spot_t r = own[i % 1];
        spot_t t = term[index / 64 * 4];
        int row = index % 64 * 1;
        int k = index / 64 * 4;
        int exists = inside_a(r, t, sizes);
        __global const float *from = from_a(p, r, t);
        uint to = tile + 4 * (k * 68 + row);
        copy1(tiles, to + 0 * 272, from, exists);
        from += sizes->dy_channel;
        copy1(tiles, to + 1 * 272, from, exists);
        from += sizes->dy_channel;
        copy1(tiles, to + 2 * 272, from, exists);
        from += sizes->dy_channel;
        copy1(tiles, to + 3 * 272, from, exists);
    }
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
static void copy_b(__local float *tiles, uint tile, __global const float *p,
    const spot_t *own,
    __local const spot_t *term, const sizes_t *sizes, int item) {
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        int index = item + i * 128;
        spot_t r = own[i % 1];
        spot_t t = term[index / 8 * 1];
        int row = index % 8 * 4;
        int k = index / 8 * 1;
        int exists = inside_b(r, t, sizes);
        __global const float *from = from_b(p, r, t);
        uint to = tile + 4 * (k * 36 + row);
        copy4(tiles, to, from, exists);
    }
}

static float4 read_tile(__local const float *p) {
    return *(__local const float4 *)p;
}

static void store_dx(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void store_dx4(__global float *p, long i,
    float4 value, float beta) {
    if (beta != 0.0f) {
        value += beta * vload4(0, p + i);
    }
    vstore4(value, 0, p + i);
}

static float load_w(__global const float *p, long i) {
    return p[i];
}

__kernel
__attribute__((reqd_work_group_size(128, 1, 1)))
void bwd_data_local_weights(
    __global const float *w, long w_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes) {
    w += w_offset;
    scratch += scratch_offset;
    long i = get_group_id(0) * 128 + get_local_id(0);
    if (i >= sizes.k * sizes.w_image)
        return;
    int k = (int)(i / sizes.w_image);
    long within = i % sizes.w_image;
    int c = (int)(within % sizes.group_c);
    int tap = (int)(within / sizes.group_c);
    long from = k * sizes.w_image + c * sizes.w_channel + tap / sizes.s * sizes.w_row + tap % sizes.s * sizes.w_column;
    scratch[i] = load_w(w, from);
}

__kernel
__attribute__((reqd_work_group_size(128, 1, 1)))
void bwd_data_local(
    __global const float *dy, long dy_offset,
    __global float *scratch, long scratch_offset,
    __global float *dx, long dx_offset,
    float beta,
    sizes_t sizes) {
    dy += dy_offset;
    scratch += scratch_offset;
    dx += dx_offset;
    __global const float *w = scratch;
    block_t block;
    block_place(&block, &sizes, (int)get_group_id(0));
    int item = (int)get_local_id(0);
    __local float tile_a[2 * 1088] __attribute__((aligned(16)));
    __local spot_t row_a[64], term_a[256];
    uint base_a = shared_address(tile_a);
    for (int i = item; i < 64; i += 128)
        row_a[i] = spot_scaled(dy_row(&block, &sizes, i), sizeof(float));
    __local float tile_b[2 * 576] __attribute__((aligned(16)));
    __local spot_t row_b[32], term_b[256];
    uint base_b = shared_address(tile_b);
    for (int i = item; i < 32; i += 128)
        row_b[i] = spot_scaled(w_row(&block, &sizes, i), sizeof(float));
    for (int at = item; at < 128; at += 128) {
        int k = block.begin + at;
        term_a[at] = spot_scaled(dy_term(&block, &sizes, k), sizeof(*dy));
        term_b[at] = spot_scaled(w_term(&block, &sizes, k), sizeof(*w));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    spot_t own_a[1];
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        own_a[i] = row_a[(item + i * 128) % 64 * 1];
    }
    spot_t own_b[1];
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
        own_b[i] = row_b[(item + i * 128) % 8 * 4];
    }
    int place = 0; /* of the step's terms */
    int turn = 0; /* of the tiles */
    for (; turn < 1; ++turn) {
        if (block.begin + place < block.end) {
            copy_a(tile_a, base_a + 4 * 1088 * turn, dy,
                own_a, term_a + place, &sizes, item);
            copy_b(tile_b, base_b + 4 * 576 * turn, w,
                own_b, term_b + place, &sizes, item);
        }
        copies_commit();
        place += 16;
    }
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
            copies_wait0();
            barrier(CLK_LOCAL_MEM_FENCE);
            if (k + 16 < block.end) {
                copy_a(tile_a, base_a + 4 * 1088 * turn, dy,
                    own_a, term_a + place, &sizes, item);
                copy_b(tile_b, base_b + 4 * 576 * turn, w,
                    own_b, term_b + place, &sizes, item);
            }
            copies_commit();
            place = (place + 16) & (256 - 1);
            turn = turn + 1 == 2 ? 0 : turn + 1;
            __local const float *at_a = tile_a + turn * 1088 + first_m;
            __local const float *at_b = tile_b + turn * 576 + first_n;
            #pragma unroll
            for (int k = 0; k < 16; ++k) {
                float4 a0 = read_tile(at_a + k * 68 + 0);
                float4 b0 = read_tile(at_b + k * 36 + 0);
                sum[0][0] += b0.s0 * a0;
                sum[1][0] += b0.s1 * a0;
                sum[2][0] += b0.s2 * a0;
                sum[3][0] += b0.s3 * a0;
            }
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
    long at_m[4];
    for (int i = 0; i < 4; ++i)
        at_m[i] = dx_row(&block, &sizes, first_m + i / 4 * 64 + i % 4);
    long at_n[4];
    for (int i = 0; i < 4; ++i)
        at_n[i] = dx_column(&block, &sizes, first_n + i / 4 * 32 + i % 4);
    #pragma unroll 1
    for (int sums = 0; sums < 4 * 1; ++sums) {
        long line = at_n[sums / 1];
        const long *place = at_m + sums % 1 * 4;
        if (line >= 0 && place[0] >= 0 && place[3] == place[0] + 3) {
            float4 value = out[sums];
            long i = line + place[0];
            store_dx4(dx, i, value, beta);
        } else {
            for (int j = 0; j < 4; ++j) {
                if (line >= 0 && place[j] >= 0) {
                    float value = ((const float *)out)[4 * sums + j];
                    long i = line + place[j];
                    store_dx(dx, i, value, beta);
                }
            }
        }
    }
}
