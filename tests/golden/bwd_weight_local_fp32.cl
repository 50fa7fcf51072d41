/* Step 3: bwd_weight_local */

typedef struct {
    long split;
} shape_t;

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
    int tiles = (pixels + split * 16 - 1) / (split * 16);
    b->begin = min(b->part * tiles * 16, pixels);
    b->end = min(b->begin + tiles * 16, pixels);
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

__attribute__((always_inline))
long part_row(const block_t *b, const sizes_t *s, int m) {
    return dw_row(b, s, m);
}

__attribute__((always_inline))
long part_column(const block_t *b, const sizes_t *s, int n) {
    return b->column0 + n < b->columns ? b->column0 + n : -1;
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
    return r.z + t.z >= 0;
}

__attribute__((always_inline))
static __global const float *from_a(__global const float *p, spot_t r, spot_t t) {
    return (__global const float *)((__global const char *)p + spot_index(r, t));
}

__attribute__((always_inline))
static void copy_a(__local float *tiles, uint tile, __global const float *p,
    __local const spot_t *row,
    __local const spot_t *term, const sizes_t *sizes, int item) {
    spot_t t = term[item % 16 * 1];
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        int index = item + i * 128;
        spot_t r = row[index / 16 * 4];
        int row = index / 16 * 4;
        int k = index % 16 * 1;
        int exists = inside_a(r, t, sizes);
        __global const float *from = from_a(p, r, t);
        uint to = tile + 4 * (k * 68 + row);
        copy1(tiles, to + 0 * 4, from, exists);
        from += sizes->dy_channel;
        copy1(tiles, to + 1 * 4, from, exists);
        from += sizes->dy_channel;
        copy1(tiles, to + 2 * 4, from, exists);
        from += sizes->dy_channel;
        copy1(tiles, to + 3 * 4, from, exists);
    }
}

__attribute__((always_inline))
static int inside_b(spot_t r, spot_t t, const sizes_t *sizes) {
    return spot_inside(r, t, sizes->h, sizes->w);
}

__attribute__((always_inline))
static __global const float *from_b(__global const float *p, spot_t r, spot_t t) {
    return (__global const float *)((__global const char *)p + spot_index(r, t));
}

__attribute__((always_inline))
static void copy_b(__local float *tiles, uint tile, __global const float *p,
    __local const spot_t *row,
    __local const spot_t *term, const sizes_t *sizes, int item) {
    spot_t t = term[item % 16 * 1];
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        int index = item + i * 128;
        spot_t r = row[index / 16 * 4];
        int row = index / 16 * 4;
        int k = index % 16 * 1;
        int exists = inside_b(r, t, sizes);
        __global const float *from = from_b(p, r, t);
        uint to = tile + 4 * (k * 68 + row);
        copy1(tiles, to + 0 * 4, from, exists);
        from += sizes->x_channel;
        copy1(tiles, to + 1 * 4, from, exists);
        from += sizes->x_channel;
        copy1(tiles, to + 2 * 4, from, exists);
        from += sizes->x_channel;
        copy1(tiles, to + 3 * 4, from, exists);
    }
}

static float4 read_tile(__local const float *p) {
    return *(__local const float4 *)p;
}

static void store_dw(__global float *p, long i,
    float value, float beta) {
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

__kernel
__attribute__((reqd_work_group_size(128, 1, 1)))
void bwd_weight_local(
    __global const float *dy, long dy_offset,
    __global const float *x, long x_offset,
    __global float *scratch, long scratch_offset,
    sizes_t sizes,
    shape_t shape) {
    dy += dy_offset;
    x += x_offset;
    scratch += scratch_offset;
    block_t block;
    block_place(&block, &sizes, (int)shape.split, (int)get_group_id(0));
    int item = (int)get_local_id(0);
    __local float tile_a[2 * 1088] __attribute__((aligned(16)));
    __local spot_t row_a[64], term_a[256];
    uint base_a = shared_address(tile_a);
    for (int i = item; i < 64; i += 128)
        row_a[i] = spot_scaled(dy_row(&block, &sizes, i), sizeof(float));
    __local float tile_b[2 * 1088] __attribute__((aligned(16)));
    __local spot_t row_b[64], term_b[256];
    uint base_b = shared_address(tile_b);
    for (int i = item; i < 64; i += 128)
        row_b[i] = spot_scaled(x_row(&block, &sizes, i), sizeof(float));
    for (int at = item; at < 128; at += 128) {
        int k = block.begin + at;
        term_a[at] = spot_scaled(dy_term(&block, &sizes, k), sizeof(*dy));
        term_b[at] = spot_scaled(x_term(&block, &sizes, k), sizeof(*x));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int place = 0; /* of the step's terms */
    int turn = 0; /* of the tiles */
    for (; turn < 1; ++turn) {
        if (block.begin + place < block.end) {
            copy_a(tile_a, base_a + 4 * 1088 * turn, dy,
                row_a, term_a + place, &sizes, item);
            copy_b(tile_b, base_b + 4 * 1088 * turn, x,
                row_b, term_b + place, &sizes, item);
        }
        copies_commit();
        place += 16;
    }
    int pair = item / (2 * 8);
    int first_m = (pair % 4 * 2 + item % 2) * 4;
    int first_n = (pair / 4 * 8 + item / 2 % 8) * 4;
    float4 sum[8][1];
    float4 out[8 * 1];
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
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
            term_b[at] = spot_scaled(x_term(&block, &sizes, k), sizeof(*x));
        }
        int last = min(k0 + 128, block.end);
        for (int k = k0; k < last; k += 16) {
            copies_wait0();
            barrier(CLK_LOCAL_MEM_FENCE);
            if (k + 16 < block.end) {
                copy_a(tile_a, base_a + 4 * 1088 * turn, dy,
                    row_a, term_a + place, &sizes, item);
                copy_b(tile_b, base_b + 4 * 1088 * turn, x,
                    row_b, term_b + place, &sizes, item);
            }
            copies_commit();
            place = (place + 16) & (256 - 1);
            turn = turn + 1 == 2 ? 0 : turn + 1;
            __local const float *at_a = tile_a + turn * 1088 + first_m;
            __local const float *at_b = tile_b + turn * 1088 + first_n;
            #pragma unroll
            for (int k = 0; k < 16; ++k) {
                float4 a0 = read_tile(at_a + k * 68 + 0);
                float4 a1 = read_tile(at_a + k * 68 + 32);
                float4 b0 = read_tile(at_b + k * 68 + 0);
                sum[0][0] += a0.s0 * b0;
                sum[1][0] += a0.s1 * b0;
                sum[2][0] += a0.s2 * b0;
                sum[3][0] += a0.s3 * b0;
                sum[4][0] += a1.s0 * b0;
                sum[5][0] += a1.s1 * b0;
                sum[6][0] += a1.s2 * b0;
                sum[7][0] += a1.s3 * b0;
            }
        }
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            #pragma unroll
            for (int v = 0; v < 1; ++v) {
                out[i * 1 + v] += sum[i][v];
                sum[i][v] = 0.0f;
            }
        }
    }
    scratch += block.part * (sizes.k * sizes.w_image);
    long at_m[8];
    for (int i = 0; i < 8; ++i)
        at_m[i] = part_row(&block, &sizes, first_m + i / 4 * 32 + i % 4);
    long at_n[4];
    for (int i = 0; i < 4; ++i)
        at_n[i] = part_column(&block, &sizes, first_n + i / 4 * 64 + i % 4);
    #pragma unroll 1
    for (int sums = 0; sums < 8 * 1; ++sums) {
        long line = at_m[sums / 1];
        const long *place = at_n + sums % 1 * 4;
        if (line >= 0 && place[0] >= 0 && place[3] == place[0] + 3) {
            float4 value = out[sums];
            long i = line + place[0];
            vstore4(value, 0, scratch + i);
        } else {
            for (int j = 0; j < 4; ++j) {
                if (line >= 0 && place[j] >= 0) {
                    float value = ((const float *)out)[4 * sums + j];
                    long i = line + place[j];
                    scratch[i] = value;
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
void bwd_weight_local_sum(
    __global float *scratch, long scratch_offset,
    __global float *dw, long dw_offset,
    float beta_dw,
    sizes_t sizes,
    __global const float *bias_sums, long bias_sums_offset, int bias_count, int bias_run,
    __global float *db, long db_offset,
    float beta_db,
    shape_t shape) {
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
        long place = part_place(&sizes, i);
        float value = 0.0f;
        #pragma unroll 8
        for (int part = 0; part < (int)shape.split; ++part)
            value += scratch[part * count + place];
        store_dw(dw, i, value, beta_dw);
    }
}
