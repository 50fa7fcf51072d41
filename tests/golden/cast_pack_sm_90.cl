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
    long x_images;
    long x_groups;
    long x_channels;
    long x_pixels;
    long x_padded;
    long x_tile_channels;
    long x_tile_pixels;
    long x_channel_parts;
    long x_pixel_parts;
    long x_lane_bits;
    long x_block_bits;
    long x_count;
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
    long dy_images;
    long dy_count;
    long x_images;
    long x_count;
    long w_images;
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
    const long image = id / (uint)tiles->pixel_parts;
    const long x = id % (uint)tiles->pixel_parts * tiles->tile_pixels;
    const long pixel = image * tiles->pixels + x;
    tile.pixels = (int)min(tiles->tile_pixels, tiles->pixels - x);
    tile.part = id;
    tile.line = tiles->groups * tiles->padded;
    tile.pitch = (int)tiles->tile_channels + 2;
    tile.block_bits = (int)tiles->block_bits;
    tile.source = (image * tiles->groups * tiles->channels + tile.channel) * tiles->pixels + x;
    tile.target = pixel * tile.line + group * tiles->padded + c;
    return tile;
}

static ushort2 half_pair(float a, float b) {
    ushort2 pair;
    vstore_half2((float2)(a, b), 0, (half *)&pair);
    return pair;
}

static void put_pair(__local ushort *to, int pitch, int count, float4 a, float4 b) {
    if (count > 0)
        *(__local ushort2 *)(to + 0 * pitch) = half_pair(a.x, b.x);
    if (count > 1)
        *(__local ushort2 *)(to + 1 * pitch) = half_pair(a.y, b.y);
    if (count > 2)
        *(__local ushort2 *)(to + 2 * pitch) = half_pair(a.z, b.z);
    if (count > 3)
        *(__local ushort2 *)(to + 3 * pitch) = half_pair(a.w, b.w);
}

static uint4 block_at(__local const ushort *p) {
    return (uint4)(as_uint(*(__local const ushort2 *)p),
                   as_uint(*(__local const ushort2 *)(p + 2)),
                   as_uint(*(__local const ushort2 *)(p + 4)),
                   as_uint(*(__local const ushort2 *)(p + 6)));
}

static void write_tile(__local const ushort *in, __global half *out,
    const tile_t *tile, int item) {
    const int end = tile->pixels << tile->block_bits;
    for (int i = item; i < end; i += 256) {
        const int x = i >> tile->block_bits;
        const int c = 8 * (i - (x << tile->block_bits));
        if (c < tile->width)
            *(__global uint4 *)(out + tile->target + x * tile->line + c) =
                block_at(in + x * tile->pitch + c);
    }
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
    return (float4)(read_dy(in, i),
        count > 1 ? read_dy(in, i + 1) : 0.0f,
        count > 2 ? read_dy(in, i + 2) : 0.0f,
        count > 3 ? read_dy(in, i + 3) : 0.0f);
}

static float4 clip_dy4(float4 v) {
    int4 bits = as_int4(v) & 0x7fffffff;
    float4 a = as_float4(bits) * 0x1p10f;
    return as_float4(as_int4(a) | (as_int4(v) & (int)0x80000000));
}

static float4 cast_dy(float4 v) {
    return clip_dy4(v);
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
    __local ushort *out,
    const tiles_t *tiles, const tile_t *tile, __local float *sums,
    int item) {
    const int lanes = 1 << (int)tiles->lane_bits;
    const int lane = item & (lanes - 1);
    const int row = item >> (int)tiles->lane_bits;
    const int rows = 256 >> (int)tiles->lane_bits;
    for (int c = 2 * row; c < tile->width; c += 4 * rows) {
        float sum[4] = {0.0f};
        for (int x = 4 * lane; x < tile->pixels; x += 4 * lanes) {
            const int count = tile->pixels - x;
            float4 raw[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int channel = c + j / 2 * 2 * rows + j % 2;
                raw[j] = get_dy(in, tile->source + channel * tiles->pixels + x,
                    channel < tile->channels ? count : 0);
            }
            #pragma unroll
            for (int j = 0; j < 4; ++j)
                sum[j] += fsum4(raw[j]);
            #pragma unroll
            for (int j = 0; j < 4; j += 2) {
                const int channel = c + j / 2 * 2 * rows + j % 2;
                if (channel < tile->width)
                    put_pair(out + x * tile->pitch + channel, tile->pitch, count, cast_dy(raw[j]), cast_dy(raw[j + 1]));
            }
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int channel = c + j / 2 * 2 * rows + j % 2;
            if (channel < tile->width)
                sums[channel * (lanes + 1) + lane] = sum[j];
        }
    }
}

static void count_dy_tile(__global const float *in,
    const tiles_t *tiles, const tile_t *tile, int item, counts_t *tally) {
    const int lanes = 1 << (int)tiles->lane_bits;
    const int lane = item & (lanes - 1);
    const int row = item >> (int)tiles->lane_bits;
    const int rows = 256 >> (int)tiles->lane_bits;
    seen4_t seen = { 0 };
    for (int c = row; c < tile->channels; c += rows) {
        for (int x = 4 * lane; x < tile->pixels; x += 4 * lanes)
            see_dy4(&seen, get_dy(in, tile->source + c * tiles->pixels + x, tile->pixels - x));
    }
    fold4(tally, &seen);
}

static tiles_t get_x_tiles(const shape_t *shape) {
    tiles_t tiles;
    tiles.images = shape->x_images;
    tiles.groups = shape->x_groups;
    tiles.channels = shape->x_channels;
    tiles.pixels = shape->x_pixels;
    tiles.padded = shape->x_padded;
    tiles.tile_channels = shape->x_tile_channels;
    tiles.tile_pixels = shape->x_tile_pixels;
    tiles.channel_parts = shape->x_channel_parts;
    tiles.pixel_parts = shape->x_pixel_parts;
    tiles.lane_bits = shape->x_lane_bits;
    tiles.block_bits = shape->x_block_bits;
    tiles.count = shape->x_count;
    return tiles;
}

static float read_x(__global const half *p, long i) {
    return vload_half(i, p);
}

static float4 get_x(__global const half *in, long i, int count) {
    if (count <= 0)
        return (float4)(0.0f);
    return (float4)(read_x(in, i),
        count > 1 ? read_x(in, i + 1) : 0.0f,
        count > 2 ? read_x(in, i + 2) : 0.0f,
        count > 3 ? read_x(in, i + 3) : 0.0f);
}

static float4 cast_x(float4 v) {
    return v;
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

static void read_x_tile(__global const half *in,
    __local ushort *out,
    const tiles_t *tiles, const tile_t *tile,
    int item) {
    const int lanes = 1 << (int)tiles->lane_bits;
    const int lane = item & (lanes - 1);
    const int row = item >> (int)tiles->lane_bits;
    const int rows = 256 >> (int)tiles->lane_bits;
    for (int c = 2 * row; c < tile->width; c += 4 * rows) {
        for (int x = 4 * lane; x < tile->pixels; x += 4 * lanes) {
            const int count = tile->pixels - x;
            float4 raw[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int channel = c + j / 2 * 2 * rows + j % 2;
                raw[j] = get_x(in, tile->source + channel * tiles->pixels + x,
                    channel < tile->channels ? count : 0);
            }
            #pragma unroll
            for (int j = 0; j < 4; j += 2) {
                const int channel = c + j / 2 * 2 * rows + j % 2;
                if (channel < tile->width)
                    put_pair(out + x * tile->pitch + channel, tile->pitch, count, cast_x(raw[j]), cast_x(raw[j + 1]));
            }
        }
    }
}

static void count_x_tile(__global const half *in,
    const tiles_t *tiles, const tile_t *tile, int item, counts_t *tally) {
    const int lanes = 1 << (int)tiles->lane_bits;
    const int lane = item & (lanes - 1);
    const int row = item >> (int)tiles->lane_bits;
    const int rows = 256 >> (int)tiles->lane_bits;
    seen4_t seen = { 0 };
    for (int c = row; c < tile->channels; c += rows) {
        for (int x = 4 * lane; x < tile->pixels; x += 4 * lanes)
            see_x4(&seen, get_x(in, tile->source + c * tiles->pixels + x, tile->pixels - x));
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
    return (float4)(read_w(in, i),
        count > 1 ? read_w(in, i + 1) : 0.0f,
        count > 2 ? read_w(in, i + 2) : 0.0f,
        count > 3 ? read_w(in, i + 3) : 0.0f);
}

static float4 clip_w4(float4 v) {
    int4 bits = as_int4(v) & 0x7fffffff;
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
    __local ushort *out,
    const tiles_t *tiles, const tile_t *tile,
    int item) {
    const int lanes = 1 << (int)tiles->lane_bits;
    const int lane = item & (lanes - 1);
    const int row = item >> (int)tiles->lane_bits;
    const int rows = 256 >> (int)tiles->lane_bits;
    for (int c = 2 * row; c < tile->width; c += 4 * rows) {
        for (int x = 4 * lane; x < tile->pixels; x += 4 * lanes) {
            const int count = tile->pixels - x;
            float4 raw[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int channel = c + j / 2 * 2 * rows + j % 2;
                raw[j] = get_w(in, tile->source + channel * tiles->pixels + x,
                    channel < tile->channels ? count : 0);
            }
            #pragma unroll
            for (int j = 0; j < 4; j += 2) {
                const int channel = c + j / 2 * 2 * rows + j % 2;
                if (channel < tile->width)
                    put_pair(out + x * tile->pitch + channel, tile->pitch, count, cast_w(raw[j]), cast_w(raw[j + 1]));
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
    for (int c = row; c < tile->channels; c += rows) {
        for (int x = 4 * lane; x < tile->pixels; x += 4 * lanes)
            see_w4(&seen, get_w(in, tile->source + c * tiles->pixels + x, tile->pixels - x));
    }
    fold4(tally, &seen);
}

__kernel
void cast_pack(
    __global const float *dy, long dy_offset,
    __global half *dy_packed, long dy_packed_offset,
    __global uint *dy_counts, long dy_counts_offset,
    __global const half *x, long x_offset,
    __global half *x_packed, long x_packed_offset,
    __global uint *x_counts, long x_counts_offset,
    __global const float *w, long w_offset,
    __global half *w_packed, long w_packed_offset,
    __global uint *w_counts, long w_counts_offset,
    __global float *scratch, long scratch_offset,
    call_t call) {
    dy += dy_offset;
    dy_packed += dy_packed_offset;
    if (dy_counts)
        dy_counts += dy_counts_offset;
    x += x_offset;
    x_packed += x_packed_offset;
    if (x_counts)
        x_counts += x_counts_offset;
    w += w_offset;
    w_packed += w_packed_offset;
    if (w_counts)
        w_counts += w_counts_offset;
    scratch += scratch_offset;
    const shape_t shape = {
        .dy_images = call.dy_images,
        .dy_groups = 1,
        .dy_channels = 12,
        .dy_pixels = 63,
        .dy_padded = 16,
        .dy_tile_channels = 16,
        .dy_tile_pixels = 64,
        .dy_channel_parts = 1,
        .dy_pixel_parts = 1,
        .dy_lane_bits = 4,
        .dy_block_bits = 1,
        .dy_count = call.dy_count,
        .x_images = call.x_images,
        .x_groups = 1,
        .x_channels = 20,
        .x_pixels = 63,
        .x_padded = 24,
        .x_tile_channels = 24,
        .x_tile_pixels = 64,
        .x_channel_parts = 1,
        .x_pixel_parts = 1,
        .x_lane_bits = 4,
        .x_block_bits = 2,
        .x_count = call.x_count,
        .w_images = call.w_images,
        .w_groups = 1,
        .w_channels = 20,
        .w_pixels = 9,
        .w_padded = 24,
        .w_tile_channels = 24,
        .w_tile_pixels = 12,
        .w_channel_parts = 1,
        .w_pixel_parts = 1,
        .w_lane_bits = 2,
        .w_block_bits = 2,
        .w_count = call.w_count,
    };
    __local ushort packed[4224]
        __attribute__((aligned(16)));
    __local float sums[272];
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
        sum_parts = 1 << (int)tiles.lane_bits;
        read_dy_tile(dy, packed, &tiles, &tile, sums, item);
        if (counts)
            count_dy_tile(dy, &tiles, &tile, item, &tally);
    }
    id -= shape.dy_count;
    if (x && id >= 0 && id < shape.x_count) {
        const tiles_t tiles = get_x_tiles(&shape);
        tile = tile_of(&tiles, (uint)id);
        out = x_packed;
        counts = x_counts;
        read_x_tile(x, packed, &tiles, &tile, item);
        if (counts)
            count_x_tile(x, &tiles, &tile, item, &tally);
    }
    id -= shape.x_count;
    if (w && id >= 0 && id < shape.w_count) {
        const tiles_t tiles = get_w_tiles(&shape);
        tile = tile_of(&tiles, (uint)id);
        out = w_packed;
        counts = w_counts;
        read_w_tile(w, packed, &tiles, &tile, item);
        if (counts)
            count_w_tile(w, &tiles, &tile, item, &tally);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    write_tile(packed, out, &tile, item);
    if (sum_parts > 0) {
        for (int c = item; c < tile.channels; c += 256) {
            float sum = 0.0f;
            #pragma unroll 8
            for (int i = 0; i < sum_parts; ++i)
                sum += sums[c * (sum_parts + 1) + i];
            scratch[tile.part * shape.dy_groups * shape.dy_channels + tile.channel + c] = sum;
        }
    }
    counts_flush_group(counts, &tally, group_tally);
}

