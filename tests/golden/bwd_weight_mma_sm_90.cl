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
    int column_tiles = (b->columns + 16 - 1) / 16;
    int k_tiles = (s->group_k + 64 - 1) / 64;
    b->column0 = number % column_tiles * 16;
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
 * A piece of 16 bytes from registers to local memory, in NVIDIA's PTX. An
 * address is that of a byte in local memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
/* The address is a multiple of 16. */
static void put16(__local uchar *tiles, uint to, uint4 v)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

/*
 * A copy of 16 bytes to local memory that goes on by itself (cp.async, sm_80
 * and later), in groups: see copy_group.cl.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
/* Eight halves, or zeros. Both addresses are multiples of 16. */
static void copy16(__local uchar *tiles, uint to, __global const half *from,
                   int exists)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(exists ? 16 : 0) : "memory");
}

/*
 * Four 8 x 8 matrices of halves from local memory by the 32 lanes of a warp
 * together (ldmatrix, sm_75 and later): lane 8 i + j gives the address of line
 * j of matrix i, 16 bytes; to register i comes of matrix i, with g = lane / 4
 * and t = lane % 4, (g, 2t) and (g, 2t + 1), or transposed (2t, g) and
 * (2t + 1, g), the first in the low half.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static void load_matrices(uint *m, uint line)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(line) : "memory");
}

static void load_transposed(uint *m, uint line)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(line) : "memory");
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
void a_stage(__local uchar *tiles, uint at, __global const half *dy, const block_t *block, const sizes_t *sizes, const spot_t *rows, int k0, int item) {
    at += swizzled(16 * item, 128);
    #pragma unroll
    for (int j = 0; j < 2; ++j) {
        const spot_t term = dy_term(block, sizes, k0 + item / 8 + 16 * j);
        #pragma unroll
        for (int i = 0; i < 1; ++i) {
            const uint to = at + 2048 * j + 4096 * i;
            const int exists = spot_inside(rows[i], term, 1, 1);
            copy16(tiles, to, dy + (exists ? spot_index(rows[i], term) : 0), exists);
        }
    }
}

__attribute__((always_inline))
void b_begin(const block_t *block, const sizes_t *sizes, int item, spot_t *rows) {
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        rows[i] = x_row(block, sizes, 16 * i + 8 * (item % 2));
}

__attribute__((always_inline))
void b_stage(__local uchar *tiles, uint at, __global const half *x, const block_t *block, const sizes_t *sizes, const spot_t *rows, int k0, int item) {
    at += swizzled(16 * item, 32);
    #pragma unroll
    for (int j = 0; j < 1; ++j) {
        if (item / 2 + 64 * j >= 32)
            break;
        const spot_t term = x_term(block, sizes, k0 + item / 2 + 64 * j);
        #pragma unroll
        for (int i = 0; i < 1; ++i) {
            const uint to = at + 2048 * j + 1024 * i;
            const int exists = spot_inside(rows[i], term, sizes->h, sizes->w);
            copy16(tiles, to, x + (exists ? spot_index(rows[i], term) : 0), exists);
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
    return row / 16 * 1024 + swizzled(32 * k + 2 * (row % 16), 32);
}

__attribute__((always_inline))
void load_a(uint *m, __local const uchar *tiles, uint at, int row, int k, int lane) {
    load_transposed(m, at + place_a(row, k, lane));
}

__attribute__((always_inline))
void load_b(uint *m, __local const uchar *tiles, uint at, int row, int k, int lane) {
    load_transposed(m, at + place_b(row, k, lane));
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
    int batch) {
    dy += dy_offset;
    x += x_offset;
    scratch += scratch_offset;
    const sizes_t sizes = {
        .dy_image = 12544,
        .dy_channel = 1,
        .dy_row = 896,
        .dy_column = 64,
        .x_image = 6272,
        .x_channel = 1,
        .x_row = 448,
        .x_column = 32,
        .w_image = 288,
        .w_channel = 1,
        .w_row = 96,
        .w_column = 32,
        .n = batch,
        .c = 32,
        .h = 14,
        .w = 14,
        .k = 64,
        .r = 3,
        .s = 3,
        .p = 14,
        .q = 14,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .group_c = 32,
        .group_k = 64,
    };
    block_t block;
    block_place(&block, &sizes, 4, (int)get_group_id(0));
    __local uchar tiles[15360] __attribute__((aligned(128)));
    const int item = (int)get_local_id(0);
    const int warpgroup = item / 128;
    const int lane = item % 128;
    const int a_row0 = 64 * warpgroup + lane / 32 * 16;
    const int b_column0 = 0 * warpgroup;
    const uint base = shared_address(tiles);
    float sum[1][8];
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        #pragma unroll
        for (int reg = 0; reg < 8; ++reg)
            sum[i][reg] = 0.0f;
    spot_t a_rows[1], b_rows[1];
    a_begin(&block, &sizes, item, a_rows);
    b_begin(&block, &sizes, item, b_rows);
    int ahead = block.begin;
    for (int i = 0; i < 2; ++i) {
        if (ahead < block.end) {
            const uint to = base + i * 5120;
            a_stage(tiles, to, dy, &block, &sizes, a_rows, ahead, item);
            b_stage(tiles, to + 4096, x, &block, &sizes, b_rows, ahead, item);
            ahead += 32;
        }
        copies_commit();
    }
    int stage = 0;
    for (int k0 = block.begin; k0 < block.end; k0 += 32) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        barrier(CLK_LOCAL_MEM_FENCE);
        if (ahead < block.end) {
            const uint to = base + (stage == 0 ? 2 : stage - 1) * 5120;
            a_stage(tiles, to, dy, &block, &sizes, a_rows, ahead, item);
            b_stage(tiles, to + 4096, x, &block, &sizes, b_rows, ahead, item);
            ahead += 32;
        }
        copies_commit();
        const uint at = base + stage * 5120;
        #pragma unroll
        for (int k = 0; k < 32; k += 16) {
            uint a[1][4], b[1][4];
            #pragma unroll
            for (int i = 0; i < 1; ++i) {
                load_a(a[i], tiles, at, a_row0 + 64 * i, k, lane);
            }
            #pragma unroll
            for (int j = 0; j < 1; ++j) {
                load_b(b[j], tiles, at + 4096, b_column0 + 16 * j, k, lane);
            }
            #pragma unroll
            for (int q = 0; q < 1; ++q) {
                #pragma unroll
                for (int i = 0; i < 1; ++i) {
                    #pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        unit_multiply(sum[i] + j * 4, a[i] + q * 4, b[j / 2] + j % 2 * 2 + q * 2);
                    }
                }
            }
        }
        stage = stage == 2 ? 0 : stage + 1;
    }
    __global float *partial = scratch + block.part * (sizes.k * sizes.w_image);
    #pragma unroll
    for (int i = 0; i < 2 * 1; ++i) {
        const int first = 2 * (i % 2);
        const long row = part_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
        #pragma unroll
        for (int reg = first; reg < 8; reg += 4) {
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
    int batch,
    __global const float *bias_sums, long bias_sums_offset, int bias_count, int bias_run,
    __global float *db, long db_offset,
    float beta_db) {
    scratch += scratch_offset;
    dw += dw_offset;
    bias_sums += bias_sums_offset;
    db += db_offset;
    const sizes_t sizes = {
        .dy_image = 12544,
        .dy_channel = 1,
        .dy_row = 896,
        .dy_column = 64,
        .x_image = 6272,
        .x_channel = 1,
        .x_row = 448,
        .x_column = 32,
        .w_image = 288,
        .w_channel = 1,
        .w_row = 96,
        .w_column = 32,
        .n = batch,
        .c = 32,
        .h = 14,
        .w = 14,
        .k = 64,
        .r = 3,
        .s = 3,
        .p = 14,
        .q = 14,
        .stride_h = 1,
        .stride_w = 1,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .group_c = 32,
        .group_k = 64,
    };
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
        long place = i;
        float value = 0.0f;
        #pragma unroll 8
        for (int part = 0; part < 4; ++part)
            value += scratch[part * count + place];
        store_dw(dw, i, value, beta_dw);
    }
}
