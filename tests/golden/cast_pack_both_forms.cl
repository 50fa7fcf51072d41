/* Step 1: cast */

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

/*
 * Sums over the elements of a vector, pairwise, in a fixed order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
static int isum(int v)
{
    return v;
}

static int isum4(int4 v)
{
    int2 two = v.lo + v.hi;
    return two.lo + two.hi;
}

static int isum16(int16 v)
{
    int8 eight = v.lo + v.hi;
    return isum4(eight.lo + eight.hi);
}

static float fsum(float v)
{
    return v;
}

static float fsum4(float4 v)
{
    float2 two = v.lo + v.hi;
    return two.lo + two.hi;
}

static float fsum16(float16 v)
{
    float8 eight = v.lo + v.hi;
    return fsum4(eight.lo + eight.hi);
}

typedef struct {
    int nonzero, zeroed, subnormal, saturated, nan, inf;
} seen_t;

static void fold(counts_t *tally, const seen_t *seen) {
    tally->nonzero += (uint)isum(seen->nonzero);
    tally->zeroed += (uint)isum(seen->zeroed);
    tally->subnormal += (uint)isum(seen->subnormal);
    tally->saturated += (uint)isum(seen->saturated);
    tally->nan += (uint)isum(seen->nan);
    tally->inf += (uint)isum(seen->inf);
}

typedef struct {
    int4 nonzero, zeroed, subnormal, saturated, nan, inf;
} seen4_t;

static void fold4(counts_t *tally, const seen4_t *seen) {
    tally->nonzero += (uint)isum4(seen->nonzero);
    tally->zeroed += (uint)isum4(seen->zeroed);
    tally->subnormal += (uint)isum4(seen->subnormal);
    tally->saturated += (uint)isum4(seen->saturated);
    tally->nan += (uint)isum4(seen->nan);
    tally->inf += (uint)isum4(seen->inf);
}

typedef struct {
    long dy_images;
    long dy_groups;
    long dy_channels;
    long dy_pixels;
    long dy_padded;
    long dy_tile_channels;
    long dy_tile_pixels;
    long dy_channel_parts;
    long dy_pixel_parts;
    long dy_lane_bits;
    long dy_block_bits;
    long dy_count;
    long w_images;
    long w_groups;
    long w_channels;
    long w_pixels;
    long w_padded;
    long w_tile_channels;
    long w_tile_pixels;
    long w_channel_parts;
    long w_pixel_parts;
    long w_lane_bits;
    long w_block_bits;
    long w_count;
} shape_t;

typedef struct {
    long dy_pixels;
    long dy_pixel_parts;
    long dy_count;
    long w_pixels;
    long w_pixel_parts;
    long w_count;
} call_t;

typedef struct {
    long images;
    long groups;
    long channels;
    long pixels;
    long padded;
    long tile_channels;
    long tile_pixels;
    long channel_parts;
    long pixel_parts;
    long lane_bits;
    long block_bits;
    long count;
} tiles_t;

/* width: channels and padding; source and target: the first element's place in
   the tensor and its copy; channel: over all groups; part: of these channels;
   line: from pixel to pixel of the copy; pitch: in local memory. */
typedef struct {
    int channels, width, pixels, pitch, block_bits;
    long source, target, channel, part, line;
} tile_t;

static tile_t tile_of(const tiles_t *tiles, uint id) {
    tile_t tile;
    const long c = id % (uint)tiles->channel_parts * tiles->tile_channels;
    id /= (uint)tiles->channel_parts;
    const long group = id % (uint)tiles->groups;
    id /= (uint)tiles->groups;
    tile.channels = (int)min(tiles->tile_channels, tiles->channels - c);
    tile.width = (int)min(tiles->tile_channels, tiles->padded - c);
    tile.channel = group * tiles->channels + c;
    const long x = id * tiles->tile_pixels;
    const long pixel = x;
    tile.pixels = (int)min(tiles->tile_pixels, tiles->pixels - x);
    tile.part = id;
    tile.line = tiles->groups * tiles->padded;
    tile.pitch = (int)tiles->tile_channels + 2;
    tile.block_bits = (int)tiles->block_bits;
    tile.source = pixel * tiles->groups * tiles->channels + tile.channel;
    tile.target = pixel * tile.line + group * tiles->padded + c;
    return tile;
}

static ushort2 half_pair(float a, float b) {
    ushort2 pair;
    vstore_half2((float2)(a, b), 0, (half *)&pair);
    return pair;
}

static void counts_share(const counts_t *tally, volatile __local uint *sums) {
    if (tally->nonzero > 0)
        atomic_add(sums + 0, tally->nonzero);
    if (tally->zeroed > 0)
        atomic_add(sums + 1, tally->zeroed);
    if (tally->subnormal > 0)
        atomic_add(sums + 2, tally->subnormal);
    if (tally->saturated > 0)
        atomic_add(sums + 3, tally->saturated);
    if (tally->nan > 0)
        atomic_add(sums + 4, tally->nan);
    if (tally->inf > 0)
        atomic_add(sums + 5, tally->inf);
}

static void counts_flush_shared(volatile __global uint *counts,
    volatile __local uint *sums) {
    const uint id = get_local_id(0);
    if (counts && id < 6)
        counts_add(counts + 2 * id, sums[id]);
}

static void counts_flush_group(volatile __global uint *counts,
    const counts_t *tally, volatile __local uint *sums) {
    counts_share(tally, sums);
    barrier(CLK_LOCAL_MEM_FENCE);
    counts_flush_shared(counts, sums);
}

static tiles_t get_dy_tiles(const shape_t *shape) {
    tiles_t tiles;
    tiles.images = shape->dy_images;
    tiles.groups = shape->dy_groups;
    tiles.channels = shape->dy_channels;
    tiles.pixels = shape->dy_pixels;
    tiles.padded = shape->dy_padded;
    tiles.tile_channels = shape->dy_tile_channels;
    tiles.tile_pixels = shape->dy_tile_pixels;
    tiles.channel_parts = shape->dy_channel_parts;
    tiles.pixel_parts = shape->dy_pixel_parts;
    tiles.lane_bits = shape->dy_lane_bits;
    tiles.block_bits = shape->dy_block_bits;
    tiles.count = shape->dy_count;
    return tiles;
}

static float read_dy(__global const float *p, long i) {
    return p[i];
}

static float4 get_dy(__global const float *in, long i, int count) {
    if (count <= 0)
        return (float4)(0.0f);
    return *(__global const float4 *)(in + i);
}

static float4 clip_dy4(float4 v) {
    int4 bits = as_int4(v) & 0x7fffffff;
    /* Finite values are clipped at 63.96875. */
    bits = select(min(bits, (int4)(0x427fe000)), bits, bits >= 0x7f800000);
    float4 a = as_float4(bits) * 0x1p10f;
    return as_float4(as_int4(a) | (as_int4(v) & (int)0x80000000));
}

static float4 cast_dy(float4 v) {
    return clip_dy4(v);
}

static void keep_dy(__global half *copy, long i, int count, float4 v) {
    const float each[4] = {v.x, v.y, v.z, v.w};
    for (int j = 0; j < min(count, 4); ++j)
        vstore_half(each[j], i + j, copy);
}

static void see_dy4(seen4_t *seen, float4 before) {
    const int4 b = as_int4(before) & 0x7fffffff;
    seen->nonzero -= b != 0;
    const int4 other = (b != 0) & ((b < 0x337fe000) | (b > 0x427fe000));
    if (!any(other))
        return;
    seen->zeroed -= (b != 0) & (b <= 0x2e000000);
    seen->subnormal -= (b > 0x2e000000) & (b < 0x337fe000);
    seen->saturated -= (b > 0x427fe000) & (b < 0x7f800000);
    const int4 is_nan = b > 0x7f800000;
    seen->nan -= is_nan;
    seen->nonzero += is_nan;
    seen->inf -= b == 0x7f800000;
}

static void read_dy_tile(__global const float *in,
    __global half *copy, __global half *out,
    const tiles_t *tiles, const tile_t *tile, __local float *sums,
    int item) {
    const int lanes = 1 << (int)tiles->lane_bits;
    const int lane = item & (lanes - 1);
    const int row = item >> (int)tiles->lane_bits;
    const int rows = 256 >> (int)tiles->lane_bits;
    const long line = tiles->groups * tiles->channels;
    for (int c = 4 * lane; c < tile->width; c += 4 * lanes) {
        const int count = tile->channels - c;
        float4 sum = 0.0f;
        for (int x = row; x < tile->pixels; x += 4 * rows) {
            float4 raw[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int pixel = x + j * rows;
                raw[j] = get_dy(in, tile->source + pixel * line + c, pixel < tile->pixels ? count : 0);
            }
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int pixel = x + j * rows;
                sum += raw[j];
                if (pixel >= tile->pixels)
                    continue;
                keep_dy(copy, tile->source + pixel * line + c, count, cast_dy(raw[j]));
                const float4 v = cast_dy(raw[j]);
                *(__global ushort4 *)(out + tile->target + pixel * tile->line + c) =
                    (ushort4)(half_pair(v.x, v.y), half_pair(v.z, v.w));
            }
        }
        vstore4(sum, 0, sums + row * tile->width + c);
    }
}

static void count_dy_tile(__global const float *in,
    const tiles_t *tiles, const tile_t *tile, int item, counts_t *tally) {
    const int lanes = 1 << (int)tiles->lane_bits;
    const int lane = item & (lanes - 1);
    const int row = item >> (int)tiles->lane_bits;
    const int rows = 256 >> (int)tiles->lane_bits;
    seen4_t seen = { 0 };
    const long line = tiles->groups * tiles->channels;
    for (int c = 4 * lane; c < tile->width; c += 4 * lanes) {
        for (int x = row; x < tile->pixels; x += rows)
            see_dy4(&seen, get_dy(in, tile->source + x * line + c, tile->channels - c));
    }
    fold4(tally, &seen);
}

static tiles_t get_w_tiles(const shape_t *shape) {
    tiles_t tiles;
    tiles.images = shape->w_images;
    tiles.groups = shape->w_groups;
    tiles.channels = shape->w_channels;
    tiles.pixels = shape->w_pixels;
    tiles.padded = shape->w_padded;
    tiles.tile_channels = shape->w_tile_channels;
    tiles.tile_pixels = shape->w_tile_pixels;
    tiles.channel_parts = shape->w_channel_parts;
    tiles.pixel_parts = shape->w_pixel_parts;
    tiles.lane_bits = shape->w_lane_bits;
    tiles.block_bits = shape->w_block_bits;
    tiles.count = shape->w_count;
    return tiles;
}

static float read_w(__global const float *p, long i) {
    return p[i];
}

static float4 get_w(__global const float *in, long i, int count) {
    if (count <= 0)
        return (float4)(0.0f);
    return *(__global const float4 *)(in + i);
}

static float4 clip_w4(float4 v) {
    int4 bits = as_int4(v) & 0x7fffffff;
    /* Finite values are clipped at 65504. */
    bits = select(min(bits, (int4)(0x477fe000)), bits, bits >= 0x7f800000);
    float4 a = as_float4(bits);
    return as_float4(as_int4(a) | (as_int4(v) & (int)0x80000000));
}

static float4 cast_w(float4 v) {
    return clip_w4(v);
}

static void see_w4(seen4_t *seen, float4 before) {
    const int4 b = as_int4(before) & 0x7fffffff;
    seen->nonzero -= b != 0;
    const int4 other = (b != 0) & ((b < 0x387fe000) | (b > 0x477fe000));
    if (!any(other))
        return;
    seen->zeroed -= (b != 0) & (b <= 0x33000000);
    seen->subnormal -= (b > 0x33000000) & (b < 0x387fe000);
    seen->saturated -= (b > 0x477fe000) & (b < 0x7f800000);
    const int4 is_nan = b > 0x7f800000;
    seen->nan -= is_nan;
    seen->nonzero += is_nan;
    seen->inf -= b == 0x7f800000;
}

static void read_w_tile(__global const float *in,
    __global half *out,
    const tiles_t *tiles, const tile_t *tile,
    int item) {
    const int lanes = 1 << (int)tiles->lane_bits;
    const int lane = item & (lanes - 1);
    const int row = item >> (int)tiles->lane_bits;
    const int rows = 256 >> (int)tiles->lane_bits;
    const long line = tiles->groups * tiles->channels;
    for (int c = 4 * lane; c < tile->width; c += 4 * lanes) {
        const int count = tile->channels - c;
        for (int x = row; x < tile->pixels; x += 4 * rows) {
            float4 raw[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int pixel = x + j * rows;
                raw[j] = get_w(in, tile->source + pixel * line + c, pixel < tile->pixels ? count : 0);
            }
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int pixel = x + j * rows;
                if (pixel >= tile->pixels)
                    continue;
                const float4 v = cast_w(raw[j]);
                *(__global ushort4 *)(out + tile->target + pixel * tile->line + c) =
                    (ushort4)(half_pair(v.x, v.y), half_pair(v.z, v.w));
            }
        }
    }
}

static void count_w_tile(__global const float *in,
    const tiles_t *tiles, const tile_t *tile, int item, counts_t *tally) {
    const int lanes = 1 << (int)tiles->lane_bits;
    const int lane = item & (lanes - 1);
    const int row = item >> (int)tiles->lane_bits;
    const int rows = 256 >> (int)tiles->lane_bits;
    seen4_t seen = { 0 };
    const long line = tiles->groups * tiles->channels;
    for (int c = 4 * lane; c < tile->width; c += 4 * lanes) {
        for (int x = row; x < tile->pixels; x += rows)
            see_w4(&seen, get_w(in, tile->source + x * line + c, tile->channels - c));
    }
    fold4(tally, &seen);
}

__kernel
void cast_pack(
    __global const float *dy, long dy_offset,
    __global half *dy_copy, long dy_copy_offset,
    __global half *dy_packed, long dy_packed_offset,
    __global uint *dy_counts, long dy_counts_offset,
    __global const float *w, long w_offset,
    __global half *w_packed, long w_packed_offset,
    __global uint *w_counts, long w_counts_offset,
    __global float *scratch, long scratch_offset,
    call_t call) {
    dy += dy_offset;
    dy_copy += dy_copy_offset;
    dy_packed += dy_packed_offset;
    if (dy_counts)
        dy_counts += dy_counts_offset;
    w += w_offset;
    w_packed += w_packed_offset;
    if (w_counts)
        w_counts += w_counts_offset;
    scratch += scratch_offset;
    const shape_t shape = {
        .dy_images = 1,
        .dy_groups = 1,
        .dy_channels = 12,
        .dy_pixels = call.dy_pixels,
        .dy_padded = 16,
        .dy_tile_channels = 16,
        .dy_tile_pixels = 256,
        .dy_channel_parts = 1,
        .dy_pixel_parts = call.dy_pixel_parts,
        .dy_lane_bits = 2,
        .dy_block_bits = 1,
        .dy_count = call.dy_count,
        .w_images = 1,
        .w_groups = 1,
        .w_channels = 20,
        .w_pixels = call.w_pixels,
        .w_padded = 24,
        .w_tile_channels = 24,
        .w_tile_pixels = 128,
        .w_channel_parts = 1,
        .w_pixel_parts = call.w_pixel_parts,
        .w_lane_bits = 3,
        .w_block_bits = 2,
        .w_count = call.w_count,
    };
    __local float sums[1024];
    int sum_parts = 0;
    const int item = (int)get_local_id(0);
    __local uint group_tally[6];
    if (item < 6)
        group_tally[item] = 0;
    counts_t tally = { 0 };
    tile_t tile = { 0 };
    __global half *out = 0;
    __global uint *counts = 0;
    long id = get_group_id(0);
    if (dy && id >= 0 && id < shape.dy_count) {
        const tiles_t tiles = get_dy_tiles(&shape);
        tile = tile_of(&tiles, (uint)id);
        out = dy_packed;
        counts = dy_counts;
        sum_parts = 256 >> (int)tiles.lane_bits;
        read_dy_tile(dy, dy_copy, out, &tiles, &tile, sums, item);
        if (counts)
            count_dy_tile(dy, &tiles, &tile, item, &tally);
    }
    id -= shape.dy_count;
    if (w && id >= 0 && id < shape.w_count) {
        const tiles_t tiles = get_w_tiles(&shape);
        tile = tile_of(&tiles, (uint)id);
        out = w_packed;
        counts = w_counts;
        read_w_tile(w, out, &tiles, &tile, item);
        if (counts)
            count_w_tile(w, &tiles, &tile, item, &tally);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (sum_parts > 0) {
        for (int c = item; c < tile.channels; c += 256) {
            float sum = 0.0f;
            #pragma unroll 8
            for (int i = 0; i < sum_parts; ++i)
                sum += sums[i * tile.width + c];
            scratch[tile.part * shape.dy_groups * shape.dy_channels + tile.channel + c] = sum;
        }
    }
    counts_flush_group(counts, &tally, group_tally);
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
void cast_pack_bias(
    __global float *scratch, long scratch_offset,
    __global float *db, long db_offset,
    float beta,
    call_t call) {
    scratch += scratch_offset;
    db += db_offset;
    const shape_t shape = {
        .dy_images = 1,
        .dy_groups = 1,
        .dy_channels = 12,
        .dy_pixels = call.dy_pixels,
        .dy_padded = 16,
        .dy_tile_channels = 16,
        .dy_tile_pixels = 256,
        .dy_channel_parts = 1,
        .dy_pixel_parts = call.dy_pixel_parts,
        .dy_lane_bits = 2,
        .dy_block_bits = 1,
        .dy_count = call.dy_count,
        .w_images = 1,
        .w_groups = 1,
        .w_channels = 20,
        .w_pixels = call.w_pixels,
        .w_padded = 24,
        .w_tile_channels = 24,
        .w_tile_pixels = 128,
        .w_channel_parts = 1,
        .w_pixel_parts = call.w_pixel_parts,
        .w_lane_bits = 3,
        .w_block_bits = 2,
        .w_count = call.w_count,
    };
    const int k = (int)get_group_id(0);
    const int count = (int)(shape.dy_images * shape.dy_pixel_parts);
    const int channels = (int)get_num_groups(0);
    float total = bias_share(scratch, count, 1, channels, k);
    __local float4 shares[256 / 4];
    ((__local float *)shares)[get_local_id(0)] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) != 0)
        return;
    total = bias_total(shares);
    store_db(db, k, total, beta);
}

static float read_x(__global const float *p, long i) {
    return p[i];
}

static void see_x(seen_t *seen, float before) {
    const int b = as_int(before) & 0x7fffffff;
    seen->nonzero += b != 0;
    const int other = (b != 0) & ((b < 0x387fe000) | (b > 0x477fe000));
    if (!other)
        return;
    seen->zeroed += (b != 0) & (b <= 0x33000000);
    seen->subnormal += (b > 0x33000000) & (b < 0x387fe000);
    seen->saturated += (b > 0x477fe000) & (b < 0x7f800000);
    const int is_nan = b > 0x7f800000;
    seen->nan += is_nan;
    seen->nonzero -= is_nan;
    seen->inf += b == 0x7f800000;
}

static float4 read_x4(__global const float *p, long i) {
    return vload4(0, p + i);
}

static void see_x4(seen4_t *seen, float4 before) {
    const int4 b = as_int4(before) & 0x7fffffff;
    seen->nonzero -= b != 0;
    const int4 other = (b != 0) & ((b < 0x387fe000) | (b > 0x477fe000));
    if (!any(other))
        return;
    seen->zeroed -= (b != 0) & (b <= 0x33000000);
    seen->subnormal -= (b > 0x33000000) & (b < 0x387fe000);
    seen->saturated -= (b > 0x477fe000) & (b < 0x7f800000);
    const int4 is_nan = b > 0x7f800000;
    seen->nan -= is_nan;
    seen->nonzero += is_nan;
    seen->inf -= b == 0x7f800000;
}

static float round_x(float v) {
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

static float cast_x(__global const float *in, __global half *out, long i) {
    float before = read_x(in, i);
    float after = round_x(before);
    vstore_half(after, i, out);
    return before;
}

static float4 round_x4(float4 v) {
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

static float4 cast_x4(__global const float *in, __global half *out, long i) {
    float4 before = read_x4(in, i);
    float4 after = round_x4(before);
    vstore_half4(after, 0, out + i);
    return before;
}

static float cast_x_range(__global const float *in, __global half *out,
    long begin, long end, int counting, counts_t *tally) {
    long i = begin + get_local_id(0) * 4;
    seen4_t seen4 = { 0 };
    float4 sum4 = 0.0f;
    for (; i + 3 < end; i += 256 * 4) {
        const float4 before = cast_x4(in, out, i);
        sum4 += before;
        if (counting)
            see_x4(&seen4, before);
    }
    if (counting)
        fold4(tally, &seen4);
    i = begin + (end - begin) / 4 * 4 + get_local_id(0);
    seen_t seen = { 0 };
    float sum = 0.0f;
    for (; i + 0 < end; i += 256 * 1) {
        const float before = cast_x(in, out, i);
        sum += before;
        if (counting)
            see_x(&seen, before);
    }
    if (counting)
        fold(tally, &seen);
    return fsum4(sum4) + sum;
}

__kernel
void cast_flat(
    __global const float *x, long x_offset,
    __global half *x_copy, long x_copy_offset,
    __global uint *x_counts, long x_counts_offset,
    long elements) {
    x += x_offset;
    x_copy += x_copy_offset;
    if (x_counts)
        x_counts += x_counts_offset;
    int counting = x_counts != 0;
    counts_t tally = { 0 };
    long begin = (long)get_group_id(0) * 16384;
    long end = min(begin + 16384, elements);
    cast_x_range(x, x_copy, begin, end, counting, &tally);
    counts_flush(x_counts, &tally);
}

