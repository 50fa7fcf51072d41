/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cast_tiles.h"

#include <stdio.h>

#include "integers.h"
#include "pack.h"

/* NHWC: channels that a work-group should read in a row. */
#define ROW_CHANNELS 128

/* Smaller work-groups take as much as one of so many, in turns. */
#define LEAST_ITEMS 64

#define BLOCK CLCONV_PACK_CHANNELS
#define VEC CLCONV_TILES_VEC

/* ---- Geometry ---------------------------------------------------------- */

/* The size of equal parts of total: a multiple of unit, at most most. */
static int64_t even_part(int64_t total, int64_t unit, int64_t most)
{
    int64_t units = clconv_max(1, clconv_divide_up(total, unit));
    int64_t parts = clconv_divide_up(units, clconv_max(1, most / unit));
    return clconv_divide_up(units, parts) * unit;
}

/* The largest power of two up to both. */
static int64_t power_up_to(int64_t a, int64_t b)
{
    int64_t power = 1;
    while (2 * power <= a && 2 * power <= b)
        power *= 2;
    return power;
}

/* Work-items side by side along so many elements: a power of two. */
static int64_t lanes_for(int64_t elements, int lws)
{
    return power_up_to(2 * clconv_divide_up(elements, VEC) - 1, lws);
}

/* Along the other dimension, what so many rows of work-items read at once. */
static int64_t across(const clconv_tiles *s, int lws)
{
    return CLCONV_TILES_AT_ONCE * clconv_max(lws, LEAST_ITEMS) / s->lanes;
}

static void cut_nchw(clconv_tiles *s, int lws)
{
    s->tile_pixels = even_part(s->pixels, VEC, CLCONV_TILES_PIXELS);
    s->lanes = lanes_for(s->tile_pixels, lws);
    int64_t channels =
        clconv_min(across(s, lws), CLCONV_TILES_ELEMENTS / s->tile_pixels);
    s->tile_channels = even_part(s->padded, BLOCK, channels);
}

static void cut_nhwc(clconv_tiles *s, int lws)
{
    s->tile_channels = even_part(s->padded, BLOCK, ROW_CHANNELS);
    s->lanes = lanes_for(s->tile_channels, lws);
    s->tile_pixels =
        clconv_min(across(s, lws), CLCONV_TILES_ELEMENTS / s->tile_channels);
}

/* Channels of groups that have no padding between them are those of one. */
static void join_groups(clconv_tiles *s)
{
    if (s->channels != s->padded)
        return;
    s->channels *= s->groups;
    s->padded *= s->groups;
    s->groups = 1;
}

static clconv_tiles sizes_of(const clconv_problem *p, clconv_tensor tensor,
                             int64_t batch)
{
    bool is_w = tensor == CLCONV_W, is_x = tensor == CLCONV_X;
    clconv_tiles s = {
        .images = is_w ? p->k : batch,
        .groups = is_w ? 1 : p->groups,
        .channels = tensor == CLCONV_DY ? p->group_k : p->group_c,
        .padded = clconv_pack_channels(p, tensor),
        .pixels = is_w   ? p->r * p->s
                  : is_x ? p->h * p->w
                         : p->p * p->q,
    };
    join_groups(&s);
    if (p->layout == CLCONV_NHWC) {
        s.pixels *= s.images;
        s.images = 1;
    }
    return s;
}

bool clconv_tiles_are_aligned(const clconv_problem *p, clconv_tensor tensor)
{
    clconv_tiles s = sizes_of(p, tensor, 1);
    size_t size = p->type[tensor] == CLCONV_F16 ? 2 : 4;
    int64_t line = p->layout == CLCONV_NHWC ? s.channels : s.pixels;
    return line % VEC == 0 && p->alignment % (size * VEC) == 0;
}

clconv_tiles clconv_tiles_of(const clconv_problem *p, clconv_tensor tensor,
                             int64_t batch, int lws)
{
    clconv_tiles s = sizes_of(p, tensor, batch);
    if (p->layout == CLCONV_NHWC)
        cut_nhwc(&s, lws);
    else
        cut_nchw(&s, lws);
    s.channel_parts = clconv_divide_up(s.padded, s.tile_channels);
    s.pixel_parts = clconv_divide_up(s.pixels, s.tile_pixels);
    s.count = s.images * s.groups * s.channel_parts * s.pixel_parts;
    return s;
}

/* ---- As an argument ---------------------------------------------------- */

enum {
    IMAGES,
    GROUPS,
    CHANNELS,
    PIXELS,
    PADDED,
    TILE_CHANNELS,
    TILE_PIXELS,
    CHANNEL_PARTS,
    PIXEL_PARTS,
    LANE_BITS,
    BLOCK_BITS,
    COUNT,
    MEMBERS
};

static const char *const members[MEMBERS] = {
    [IMAGES] = "images",           [GROUPS] = "groups",
    [CHANNELS] = "channels",       [PIXELS] = "pixels",
    [PADDED] = "padded",           [TILE_CHANNELS] = "tile_channels",
    [TILE_PIXELS] = "tile_pixels", [CHANNEL_PARTS] = "channel_parts",
    [PIXEL_PARTS] = "pixel_parts", [LANE_BITS] = "lane_bits",
    [BLOCK_BITS] = "block_bits",   [COUNT] = "count",
};

/* Of the least power of two that is as large. */
static int64_t log2_up(int64_t value)
{
    int64_t bits = 0;
    while ((int64_t)1 << bits < value)
        ++bits;
    return bits;
}

/* Does it depend on the batch? */
static bool varies(int member, clconv_layout layout)
{
    if (layout == CLCONV_NCHW)
        return member == IMAGES || member == COUNT;
    return member == PIXELS || member == PIXEL_PARTS || member == COUNT;
}

void clconv_tiles_add(const clconv_tiles *s, clconv_layout layout,
                      const char *name, clconv_shape *out)
{
    const int64_t values[MEMBERS] = {
        [IMAGES] = s->images,
        [GROUPS] = s->groups,
        [CHANNELS] = s->channels,
        [PIXELS] = s->pixels,
        [PADDED] = s->padded,
        [TILE_CHANNELS] = s->tile_channels,
        [TILE_PIXELS] = s->tile_pixels,
        [CHANNEL_PARTS] = s->channel_parts,
        [PIXEL_PARTS] = s->pixel_parts,
        [LANE_BITS] = log2_up(s->lanes),
        [BLOCK_BITS] = log2_up(clconv_divide_up(s->tile_channels, BLOCK)),
        [COUNT] = s->count,
    };
    for (int i = 0; i < MEMBERS; ++i) {
        char member[24];
        snprintf(member, sizeof member, "%s_%s", name, members[i]);
        if (varies(i, layout))
            clconv_shape_add_varying(out, member, values[i]);
        else
            clconv_shape_add(out, member, values[i]);
    }
}

static void emit_members(clconv_emit *e, const char *line)
{
    for (int i = 0; i < MEMBERS; ++i) {
        clconv_emit_set_text(e, "member", members[i]);
        clconv_emit_line(e, line);
    }
}

void clconv_tiles_emit_get(clconv_emit *e, const char *name)
{
    clconv_emit_set_text(e, "name", name);
    clconv_emit_open(e, "static tiles_t get_${name}_tiles(const shape_t "
                        "*shape)");
    clconv_emit_line(e, "tiles_t tiles;");
    emit_members(e, "tiles.$member = shape->${name}_$member;");
    clconv_emit_line(e, "return tiles;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- A tile ------------------------------------------------------------ */

static void emit_types(clconv_emit *e)
{
    clconv_emit_line(e, "typedef struct {");
    emit_members(e, "    long $member;");
    clconv_emit_line(e, "} tiles_t;");
    clconv_emit_blank(e);
    clconv_emit_line(e, "/* width: channels and padding; source and target: "
                        "the first element's place in");
    clconv_emit_line(e, "   the tensor and its copy; channel: over all groups; "
                        "part: of these channels;");
    clconv_emit_line(e, "   line: from pixel to pixel of the copy; pitch: in "
                        "local memory. */");
    clconv_emit_line(e, "typedef struct {");
    clconv_emit_line(e, "    int channels, width, pixels, pitch, block_bits;");
    clconv_emit_line(e, "    long source, target, channel, part, line;");
    clconv_emit_line(e, "} tile_t;");
    clconv_emit_blank(e);
}

/* Which channels, and how many. */
static void emit_channels(clconv_emit *e)
{
    clconv_emit_line(e, "const long c = id % (uint)tiles->channel_parts * "
                        "tiles->tile_channels;");
    clconv_emit_line(e, "id /= (uint)tiles->channel_parts;");
    clconv_emit_line(e, "const long group = id % (uint)tiles->groups;");
    clconv_emit_line(e, "id /= (uint)tiles->groups;");
    clconv_emit_line(e, "tile.channels = (int)min(tiles->tile_channels, "
                        "tiles->channels - c);");
    clconv_emit_line(e, "tile.width = (int)min(tiles->tile_channels, "
                        "tiles->padded - c);");
    clconv_emit_line(e, "tile.channel = group * tiles->channels + c;");
}

/* Which pixels; pixel counts them over all images, in NHWC as x does. */
static void emit_pixels(clconv_emit *e, clconv_layout layout)
{
    if (layout == CLCONV_NCHW) {
        clconv_emit_line(e,
                         "const long image = id / (uint)tiles->pixel_parts;");
        clconv_emit_line(e, "const long x = id % (uint)tiles->pixel_parts * "
                            "tiles->tile_pixels;");
        clconv_emit_line(e, "const long pixel = image * tiles->pixels + x;");
    } else {
        clconv_emit_line(e, "const long x = id * tiles->tile_pixels;");
        clconv_emit_line(e, "const long pixel = x;");
    }
    clconv_emit_line(e, "tile.pixels = (int)min(tiles->tile_pixels, "
                        "tiles->pixels - x);");
    clconv_emit_line(e, "tile.part = id;");
}

static void emit_lines(clconv_emit *e)
{
    clconv_emit_line(e, "tile.line = tiles->groups * tiles->padded;");
    clconv_emit_line(e, "tile.pitch = (int)tiles->tile_channels + "
                        "$past_channels;");
    clconv_emit_line(e, "tile.block_bits = (int)tiles->block_bits;");
}

/* So many tiles that a uint does not hold their number make a copy of at least
 * 2^36 bytes. */
void clconv_tiles_emit(clconv_emit *e, clconv_layout layout)
{
    emit_types(e);
    clconv_emit_open(e, "static tile_t tile_of(const tiles_t *tiles, uint id)");
    clconv_emit_line(e, "tile_t tile;");
    emit_channels(e);
    emit_pixels(e, layout);
    emit_lines(e);
    clconv_emit_line(e, layout == CLCONV_NHWC
                            ? "tile.source = pixel * tiles->groups * "
                              "tiles->channels + tile.channel;"
                            : "tile.source = (image * tiles->groups * "
                              "tiles->channels + tile.channel) * tiles->pixels "
                              "+ x;");
    clconv_emit_line(e, "tile.target = pixel * tile.line + group * "
                        "tiles->padded + c;");
    clconv_emit_line(e, "return tile;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}
