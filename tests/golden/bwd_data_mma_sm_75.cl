/* Step 2: bwd_data_mma */

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
    int y0, x0, y_step, x_step; /* where taps lead, from the first on */
    int channel, r, t, y, x; /* of the step */
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
    b->end = b->taps * ((s->group_k + 32 - 1) / 32 * 32);
    b->channel = 0;
    b->r = b->r0;
    b->t = b->s0;
    b->y0 = (y - b->r0 * s->dilation_h) / s->stride_h;
    b->x0 = (x - b->s0 * s->dilation_w) / s->stride_w;
    b->y_step = b->r_step * s->dilation_h / s->stride_h;
    b->x_step = b->s_step * s->dilation_w / s->stride_w;
    b->y = b->y0;
    b->x = b->x0;
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
    int c_tiles = (s->group_c + 16 - 1) / 16;
    int run = block_run(s);
    b->w0 = number % run;
    number /= run;
    b->c0 = number % c_tiles * 16;
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
void block_next(block_t *b, const sizes_t *s) {
    b->t += b->s_step;
    b->x -= b->x_step;
    if (b->t < s->s)
        return;
    b->t = b->s0;
    b->x = b->x0;
    b->r += b->r_step;
    b->y -= b->y_step;
    if (b->r < s->r)
        return;
    b->r = b->r0;
    b->y = b->y0;
    b->channel += 32;
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
    long at = pixel.x * ((long)s->p * s->q * s->groups * padded(s->group_k)) + pixel.y * ((long)s->q * s->groups * padded(s->group_k)) + pixel.z * ((long)s->groups * padded(s->group_k));
    at += b->group * padded(s->group_k) * 1;
    return spot(pixel.x >= 0, at, pixel.y, pixel.z);
}

__attribute__((always_inline))
spot_t w_row(const block_t *b, const sizes_t *s, int row) {
    int c = b->c0 + row;
    long at = b->group * s->group_k * ((long)s->r * s->s * padded(s->group_c)) + c * 1;
    return spot(c < s->group_c, at, 0, 0);
}

__attribute__((always_inline))
spot_t dy_term(const block_t *b, const sizes_t *s, int k) {
    int channel = b->channel + k % 32;
    long at = channel * 1 + b->y * ((long)s->q * s->groups * padded(s->group_k)) + b->x * ((long)s->groups * padded(s->group_k));
    return spot(channel < s->group_k, at, b->y, b->x);
}

__attribute__((always_inline))
spot_t w_term(const block_t *b, const sizes_t *s, int k) {
    int channel = b->channel + k % 32;
    long at = channel * ((long)s->r * s->s * padded(s->group_c)) + b->r * ((long)s->s * padded(s->group_c)) + b->t * (long)padded(s->group_c);
    return spot(channel < s->group_k, at, 0, 0);
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
 * c[16][8] += a[16][8] * b[8][8] by the 32 lanes of a warp together, in
 * NVIDIA's PTX: fp16 operands, fp32 sums. All lanes must take part.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
void unit_multiply(float *c, const uint *a, const uint *b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
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
    for (int i = 0; i < 2; ++i)
        rows[i] = dy_row(block, sizes, item / 4 + 32 * i);
}

__attribute__((always_inline))
void a_fetch(uint4 *held, __global const half *dy, const block_t *block, const sizes_t *sizes, const spot_t *rows, int k0, int item) {
    const spot_t term = dy_term(block, sizes, k0 + 8 * (item % 4));
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int piece = i;
        const int exists = spot_inside(rows[i], term, sizes->p, sizes->q);
        held[piece] = exists ? *(__global const uint4 *)(dy + spot_index(rows[i], term)) : (uint4)(0);
    }
}

__attribute__((always_inline))
void a_put(__local uchar *tiles, uint at, const uint4 *held, int item) {
    at += swizzled(16 * item, 64);
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int piece = i;
        const uint to = at + 2048 * i;
        put16(tiles, to, held[piece]);
    }
}

__attribute__((always_inline))
void b_begin(const block_t *block, const sizes_t *sizes, int item, spot_t *rows) {
    #pragma unroll
    for (int i = 0; i < 1; ++i)
        rows[i] = w_row(block, sizes, 16 * i + 8 * (item % 2));
}

__attribute__((always_inline))
void b_fetch(uint4 *held, __global const half *w, const block_t *block, const sizes_t *sizes, const spot_t *rows, int k0, int item) {
    #pragma unroll
    for (int j = 0; j < 1; ++j) {
        if (item / 2 + 64 * j >= 32)
            break;
        const spot_t term = w_term(block, sizes, k0 + item / 2 + 64 * j);
        #pragma unroll
        for (int i = 0; i < 1; ++i) {
            const int piece = 1 * j + i;
            const int exists = spot_inside(rows[i], term, 1, 1);
            held[piece] = exists ? *(__global const uint4 *)(w + spot_index(rows[i], term)) : (uint4)(0);
        }
    }
}

__attribute__((always_inline))
void b_put(__local uchar *tiles, uint at, const uint4 *held, int item) {
    at += swizzled(16 * item, 32);
    #pragma unroll
    for (int j = 0; j < 1; ++j) {
        if (item / 2 + 64 * j >= 32)
            break;
        #pragma unroll
        for (int i = 0; i < 1; ++i) {
            const int piece = 1 * j + i;
            const uint to = at + 2048 * j + 1024 * i;
            put16(tiles, to, held[piece]);
        }
    }
}

__attribute__((always_inline))
uint place_a(int row, int k, int lane) {
    row += lane % 16;
    k += lane / 16 % 2 * 8;
    return swizzled(64 * row + 2 * k, 64);
}

__attribute__((always_inline))
uint place_b(int row, int k, int lane) {
    row += lane / 16 % 2 * 8;
    k += lane % 16;
    return row / 16 * 1024 + swizzled(32 * k + 2 * (row % 16), 32);
}

__attribute__((always_inline))
void load_a(uint *m, __local const uchar *tiles, uint at, int row, int k, int lane) {
    load_matrices(m, at + place_a(row, k, lane));
}

__attribute__((always_inline))
void load_b(uint *m, __local const uchar *tiles, uint at, int row, int k, int lane) {
    load_transposed(m, at + place_b(row, k, lane));
}

static void store_dx(__global float *p, long i,
    float value, float beta) {
    value *= 0x1p-10f;
    if (beta != 0.0f) {
        value += beta * p[i];
    }
    p[i] = value;
}

static void store_pair(__global float *p, long row,
    long first, long second, float2 pair,
    float beta) {
    if (first >= 0)
        store_dx(p, row + first, pair.x, beta);
    if (second >= 0)
        store_dx(p, row + second, pair.y, beta);
}

__kernel
__attribute__((reqd_work_group_size(128, 1, 1)))
void bwd_data_mma(
    __global const half *dy, long dy_offset,
    __global const half *w, long w_offset,
    __global float *dx, long dx_offset,
    float beta,
    int batch) {
    dy += dy_offset;
    w += w_offset;
    dx += dx_offset;
    const sizes_t sizes = {
        .dy_image = 3136,
        .dy_channel = 1,
        .dy_row = 448,
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
        .p = 7,
        .q = 7,
        .stride_h = 2,
        .stride_w = 2,
        .pad_top = 1,
        .pad_left = 1,
        .dilation_h = 1,
        .dilation_w = 1,
        .groups = 1,
        .group_c = 32,
        .group_k = 64,
    };
    block_t block;
    block_place(&block, &sizes, (int)get_group_id(0));
    __local uchar tiles[10240] __attribute__((aligned(128)));
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
    spot_t a_rows[2], b_rows[1];
    a_begin(&block, &sizes, item, a_rows);
    b_begin(&block, &sizes, item, b_rows);
    uint4 a_held[2], b_held[1];
    int ahead = block.begin, stage = 0;
    if (ahead < block.end) {
        a_fetch(a_held, dy, &block, &sizes, a_rows, ahead, item);
        b_fetch(b_held, w, &block, &sizes, b_rows, ahead, item);
        ahead += 32;
        block_next(&block, &sizes);
        a_put(tiles, base + stage * 5120, a_held, item);
        b_put(tiles, base + stage * 5120 + 4096, b_held, item);
    }
    for (int k0 = block.begin; k0 < block.end; k0 += 32) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const bool more = ahead < block.end;
        if (more) {
            a_fetch(a_held, dy, &block, &sizes, a_rows, ahead, item);
            b_fetch(b_held, w, &block, &sizes, b_rows, ahead, item);
            ahead += 32;
            block_next(&block, &sizes);
        }
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
            for (int q = 0; q < 2; ++q) {
                #pragma unroll
                for (int i = 0; i < 1; ++i) {
                    #pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        unit_multiply(sum[i] + j * 4, a[i] + q * 2, b[j / 2] + j % 2 * 2 + q * 1);
                    }
                }
            }
        }
        stage ^= 1;
        if (more) {
            a_put(tiles, base + stage * 5120, a_held, item);
            b_put(tiles, base + stage * 5120 + 4096, b_held, item);
        }
    }
    if (beta == 0.0f) {
        #pragma unroll
        for (int i = 0; i < 2 * 1; ++i) {
            const int first = 2 * (i % 2);
            const long row = dx_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
            #pragma unroll
            for (int reg = first; reg < 8; reg += 4) {
                const float *s = sum[i / 2] + reg;
                const long column = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0));
                if (row >= 0 && column >= 0)
                    *(__global float2 *)(dx + row + column) = (float2)(s[0] * 0x1p-10f, s[1] * 0x1p-10f);
            }
        }
    } else {
        #pragma unroll
        for (int i = 0; i < 2 * 1; ++i) {
            const int first = 2 * (i % 2);
            const long row = dx_row(&block, &sizes, 64 * warpgroup + 64 * (i / 2) + d_row(lane, first, 0));
            #pragma unroll 1
            for (int reg = 0; reg < 8; reg += 4) {
                const long left = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0));
                const long right = dx_column(&block, &sizes, 0 * warpgroup + d_column(lane, reg, 0) + 1);
                const float2 pair = (float2)(sum[i / 2][first], sum[i / 2][first + 1]);
                if (row >= 0)
                    store_pair(dx, row, left, right, pair, beta);
                float kept[4];
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    kept[j] = sum[i / 2][j];
                #pragma unroll
                for (int j = 0; j < 8 - 4; ++j)
                    sum[i / 2][j] = sum[i / 2][j + 4];
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    sum[i / 2][8 - 4 + j] = kept[j];
            }
        }
    }
}
