/*
 * Turns whose tensors are brought to local memory as the caller has them, while
 * products go on, to slots that are used again and again. Pixels of a tensor are
 * numbered without the padding of the line: those between two positions are
 * neighbours in memory, all channels of them (NHWC), which is one copy of the
 * copy unit, or channel by channel (NCHW), where work-items copy pieces.
 *
 *     find_ranges(ranges, first, count, begin, end, &line, &sizes, item)
 *         which pixels so many turns take; empty past the last tile
 *     ask_turn(tiles, slots, full, ranges, number, dy, x, &sizes, group, item)
 *         has that turn copied
 *     read_dy(raw, exists, tiles, at, origin, &stream, item, &line, &sizes)
 *         as read_dy of fused_load.c, from the slot at address at, whose first
 *         pixel is origin; and the same for X
 *
 * Turns are numbered in the order in which they are used: the halo's, then of
 * each tile X's and dY's. ranges[range_slot(number)] holds those of the halo and
 * of two tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fused_reader.h"
#include "integers.h"
#include "nest.h"
#include "ring.h"

/* Bytes to which a copy's addresses and length are rounded. */
#define PIECE 16

/* Slots start at multiples of it. */
#define SLOT_ALIGNMENT 128

/* At least: one is used while another is filled. At most: their barriers. */
#define FEWEST_SLOTS 2
#define MOST_SLOTS 16

#define SLOT_BARRIER 8
#define RANGE_BYTES 8

typedef struct source {
    clconv_fused_reader reader;
    bool planes; /* a channel after the other, not a pixel after the other */
    int64_t channels;
    int size;     /* bytes of an element */
    int64_t step; /* pixels at multiples of which copies start and end */
    int64_t room; /* pixels of a slot */
} source;

static source source_of(const clconv_task *t, const clconv_fused *f,
                        clconv_tensor tensor)
{
    const clconv_problem *p = t->problem;
    source s = {.reader = clconv_fused_reader_of(t, f, tensor)};
    s.planes = p->layout == CLCONV_NCHW;
    s.channels = tensor == CLCONV_DY ? p->group_k : p->group_c;
    s.size = s.reader.half_type ? 2 : 4;
    int64_t pixel = s.planes ? s.size : s.size * s.channels;
    s.step = PIECE / clconv_gcd(PIECE, pixel);
    s.room = s.reader.deep * s.reader.lanes + (s.step > 1 ? s.step : 0);
    return s;
}

/* ---- May it? ---------------------------------------------------------- */

/* Do images, or planes, start and end at pieces? */
static bool suits_tensor(const clconv_problem *p, clconv_tensor tensor)
{
    int64_t pixels = tensor == CLCONV_DY ? p->p * p->q : p->h * p->w;
    int64_t channels = tensor == CLCONV_DY ? p->k : p->c;
    int64_t size = p->type[tensor] == CLCONV_F16 ? 2 : 4;
    if (p->layout == CLCONV_NCHW)
        return pixels * size % PIECE == 0;
    return p->groups == 1 && pixels * channels * size % PIECE == 0;
}

bool clconv_fused_ahead_suits(const clconv_problem *p)
{
    return p->alignment % PIECE == 0 && suits_tensor(p, CLCONV_DY) &&
           suits_tensor(p, CLCONV_X);
}

static int64_t turn_bytes(const source *s)
{
    return s->room * s->channels * s->size;
}

void clconv_fused_ahead_set(const clconv_task *t, clconv_fused *f)
{
    source dy = source_of(t, f, CLCONV_DY), x = source_of(t, f, CLCONV_X);
    clconv_fused_turns turns = clconv_fused_turns_of(t, f);
    int64_t ranges = clconv_fused_ranges(&turns) * RANGE_BYTES;
    int64_t left = (int64_t)clconv_ring_local_memory(t->device) -
                   CLCONV_RING_BARRIERS - clconv_fused_local(f) - ranges;
    f->slot_bytes = clconv_round_up(clconv_max(turn_bytes(&dy), turn_bytes(&x)),
                                    SLOT_ALIGNMENT);
    int64_t fit = clconv_max(0, left) / (f->slot_bytes + SLOT_BARRIER);
    fit = clconv_min(fit, clconv_min(turns.x + turns.dy, MOST_SLOTS));
    f->ahead = fit < FEWEST_SLOTS ? 0 : (int)fit;
    f->ahead_bytes = f->ahead * (f->slot_bytes + SLOT_BARRIER) + ranges;
}

int64_t clconv_fused_ranges(const clconv_fused_turns *turns)
{
    return turns->halo + 2 * (turns->x + turns->dy);
}

/* ---- Pixels ----------------------------------------------------------- */

static void set_source(clconv_emit *e, const source *s)
{
    bool of_dy = s->reader.tensor == CLCONV_DY;
    clconv_fused_reader_set(e, &s->reader);
    clconv_emit_set_text(e, "height", of_dy ? "p" : "h");
    clconv_emit_set_text(e, "width", of_dy ? "q" : "w");
    clconv_emit_set(e, "size", s->size);
    clconv_emit_set(e, "pixel_step", s->step);
    clconv_emit_set(e, "room", s->room);
}

/* Where the place is in the tensor, perhaps outside. */
static void emit_row_column(clconv_emit *e, const source *s, const char *place)
{
    clconv_emit_set_text(e, "place", place);
    if (s->reader.tensor == CLCONV_X) {
        clconv_emit_line(e, "const int row = ${place}row;");
        clconv_emit_line(e, "const int column = ${place}column;");
        return;
    }
    clconv_emit_line(e, "const int row = ${place}row + s->pad_top - ($r - 1) * "
                        "$dilation_h;");
    clconv_emit_line(e, "const int column = ${place}column + s->pad_left - "
                        "($s - 1) * $dilation_w;");
}

/* The number of the pixel at a place, -1 for none. */
static void emit_pixel(clconv_emit *e, const source *s)
{
    clconv_nest_open_function(e, "int ${tensor}_pixel(const sizes_t *s, const "
                                 "place_t *place)");
    emit_row_column(e, s, "place->");
    clconv_emit_line(e, "if (place->image >= s->n || row < 0 || row >= "
                        "s->$height || column < 0 || column >= s->$width)");
    clconv_emit_line(e, "    return -1;");
    clconv_emit_line(e, "return (place->image * s->$height + row) * s->$width "
                        "+ column;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* Pixels before position v; those between v and v + $batch, rounded. */
static void emit_range(clconv_emit *e, const source *s)
{
    clconv_nest_open_function(e, "int ${tensor}_before(const sizes_t *s, const "
                                 "line_t *line, int v)");
    clconv_emit_line(e, "const place_t place = place_at(line, v);");
    emit_row_column(e, s, "place.");
    clconv_emit_line(e, "if (place.image >= s->n)");
    clconv_emit_line(e, "    return s->n * s->$height * s->$width;");
    clconv_emit_line(e, "const int inside = row >= 0 && row < s->$height;");
    clconv_emit_line(e, "return (place.image * s->$height + clamp(row, 0, "
                        "s->$height)) * s->$width + (inside ? clamp(column, 0, "
                        "s->$width) : 0);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "int2 ${tensor}_range(const sizes_t *s, const "
                                 "line_t *line, int v)");
    clconv_emit_line(e, "const int from = ${tensor}_before(s, line, v);");
    clconv_emit_line(e, "const int end = ${tensor}_before(s, line, v + "
                        "$batch);");
    clconv_emit_line(e, "return (int2)(from / $pixel_step, (end + $pixel_step "
                        "- 1) / $pixel_step) * $pixel_step;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Copies ----------------------------------------------------------- */

static void emit_copy_pixels(clconv_emit *e)
{
    clconv_emit_line(e, "const int bytes = p ? $size * s->$channels * (range.y "
                        "- range.x) : 0;");
    clconv_emit_line(e, "if (item > 0)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "barrier_expect(full, bytes);");
    clconv_emit_line(e, "if (bytes > 0)");
    clconv_emit_line(e, "    load_bytes(tiles, to, p + (long)range.x * "
                        "s->$channels, bytes, full);");
}

/* Work-items that are neighbours take pieces of a channel that are. */
static void emit_copy_planes(clconv_emit *e, const source *s)
{
    int across = 1;
    while (across * s->step < s->room)
        across *= 2;
    clconv_emit_set(e, "across", across);
    clconv_emit_set(e, "down", CLCONV_FUSED_ITEMS / across);
    clconv_emit_line(e, "const int piece = $pixel_step * (item % $across);");
    clconv_emit_line(e, "const int first = item / $across;");
    clconv_emit_line(e, "const int pixel = range.x + piece;");
    clconv_emit_open(e, "if (p && pixel < range.y)");
    clconv_emit_line(e, "const int plane = s->$height * s->$width;");
    clconv_emit_line(e, "const int image = pixel / plane;");
    clconv_emit_line(e, "__global const $type *from = p + image * "
                        "s->${tensor}_image + (group * s->$channels + first) * "
                        "s->$step + pixel - image * plane;");
    clconv_emit_line(e, "to += $size * (first * $room + piece);");
    clconv_emit_open(e, "for (int c = first; c < s->$channels; c += $down)");
    clconv_emit_line(e, "copy16(tiles, to, (__global const half *)from, 1);");
    clconv_emit_line(e, "from += $down * s->$step;");
    clconv_emit_line(e, "to += $down * ($size * $room);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_line(e, "barrier_arrive_copies(full);");
}

static void emit_ask(clconv_emit *e, const source *s)
{
    clconv_nest_open_function(
        e, "void ask_$tensor(__local uchar *tiles, uint to, uint full, "
           "__global const $type *p, int2 range, const sizes_t *s, int group, "
           "int item)");
    if (s->planes)
        emit_copy_planes(e, s);
    else
        emit_copy_pixels(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- Turns ------------------------------------------------------------ */

static void set_turns(clconv_emit *e, const clconv_task *t,
                      const clconv_fused *f)
{
    source dy = source_of(t, f, CLCONV_DY), x = source_of(t, f, CLCONV_X);
    clconv_fused_turns turns = clconv_fused_turns_of(t, f);
    clconv_emit_set_text(e, "dy_type", dy.reader.half_type ? "half" : "float");
    clconv_emit_set_text(e, "x_type", x.reader.half_type ? "half" : "float");
    clconv_emit_set(e, "dy_batch", dy.reader.deep * dy.reader.lanes);
    clconv_emit_set(e, "x_batch", x.reader.deep * x.reader.lanes);
    clconv_emit_set(e, "halo_turns", turns.halo);
    clconv_emit_set(e, "x_turns", turns.x);
    clconv_emit_set(e, "tile_turns", turns.x + turns.dy);
}

static void emit_turn(clconv_emit *e)
{
    clconv_nest_open_function(e, "int range_slot(int number)");
    clconv_emit_line(e, "return number < $halo_turns ? number : $halo_turns + "
                        "(number - $halo_turns) % (2 * $tile_turns);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(e, "int is_x_turn(int number)");
    clconv_emit_line(e, "return number >= $halo_turns && (number - "
                        "$halo_turns) % $tile_turns < $x_turns;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_find_ranges(clconv_emit *e)
{
    clconv_nest_open_function(e,
                              "int2 range_of(int number, int begin, int end, "
                              "const line_t *line, const sizes_t *s)");
    clconv_emit_line(e, "const int after = number - $halo_turns;");
    clconv_emit_line(e, "const int tile = begin + max(after, 0) / "
                        "$tile_turns;");
    clconv_emit_line(e, "const int turn = after % $tile_turns;");
    clconv_emit_line(e, "if (tile >= end)");
    clconv_emit_line(e, "    return (int2)(0);");
    clconv_emit_line(e, "if (is_x_turn(number))");
    clconv_emit_line(e, "    return x_range(s, line, tile * $rows + turn * "
                        "$x_batch);");
    clconv_emit_line(e, "const int behind = after < 0 ? number * $dy_batch : "
                        "$halo + (turn - $x_turns) * $dy_batch;");
    clconv_emit_line(e, "return dy_range(s, line, tile * $rows + behind);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_nest_open_function(
        e, "void find_ranges(__local int2 *ranges, int first, int count, int "
           "begin, int end, const line_t *line, const sizes_t *s, int item)");
    clconv_emit_line(e, "if (item >= count)");
    clconv_emit_line(e, "    return;");
    clconv_emit_line(e, "ranges[range_slot(first + item)] = range_of(first + "
                        "item, begin, end, line, s);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_ask_turn(clconv_emit *e)
{
    clconv_nest_open_function(
        e, "void ask_turn(__local uchar *tiles, uint slots, uint full, __local "
           "const int2 *ranges, int number, __global const $dy_type *dy, "
           "__global const $x_type *x, const sizes_t *s, int group, int item)");
    clconv_emit_line(e, "const int slot = number % $ahead;");
    clconv_emit_line(e, "const uint to = slots + slot * $slot_bytes;");
    clconv_emit_line(e, "const int2 range = ranges[range_slot(number)];");
    clconv_emit_line(e, "if (is_x_turn(number))");
    clconv_emit_line(e, "    ask_x(tiles, to, full + 8 * slot, x, range, s, "
                        "group, item);");
    clconv_emit_line(e, "else");
    clconv_emit_line(e, "    ask_dy(tiles, to, full + 8 * slot, dy, range, s, "
                        "group, item);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- An octet --------------------------------------------------------- */

/* Of eight work-items that read 32 bytes each, side by side, four take the upper
 * half first: they meet no bank twice. */
static void emit_take_floats(clconv_emit *e)
{
    clconv_emit_line(e, "const int swapped = item & 4;");
    clconv_emit_line(e, "const uint first = from + 4 * swapped;");
    clconv_emit_line(e, "const float4 a = as_float4(get16(tiles, first));");
    clconv_emit_line(e,
                     "const float4 b = as_float4(get16(tiles, first ^ 16));");
    clconv_emit_line(e, "return (float8)(swapped ? b : a, swapped ? a : b);");
}

static void emit_take_vector(clconv_emit *e, const source *s)
{
    clconv_emit_line(e, "const uint from = at + $size * (pixel * s->$channels "
                        "+ channel);");
    if (s->reader.half_type)
        clconv_emit_line(e, "return get16(tiles, from);");
    else
        emit_take_floats(e);
}

static void emit_take_elements(clconv_emit *e, const source *s)
{
    clconv_emit_set(e, "next", s->planes ? s->size * s->room : s->size);
    clconv_emit_line(e, s->planes ? "const uint from = at + $size * (channel * "
                                    "$room + pixel);"
                                  : "const uint from = at + $size * (pixel * "
                                    "s->$channels + channel);");
    clconv_emit_set_text(e, "get", s->reader.half_type ? "get2" : "get_float");
    clconv_emit_line(e, s->reader.half_type ? "uint v[8];" : "float v[8];");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_line(e, "for (int j = 0; j < 8; ++j)");
    clconv_emit_line(e, s->reader.whole
                            ? "    v[j] = $get(tiles, from + j * $next);"
                            : "    v[j] = channel + j < s->$channels ? "
                              "$get(tiles, from + j * $next) : 0;");
    clconv_fused_emit_eight(e, &s->reader, "return");
}

static void emit_take(clconv_emit *e, const source *s)
{
    clconv_nest_open_function(
        e, "$raw take_$tensor(__local const uchar *tiles, uint at, int pixel, "
           "int channel, const sizes_t *s, int item)");
    if (s->reader.vectors)
        emit_take_vector(e, s);
    else
        emit_take_elements(e, s);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_read(clconv_emit *e, const source *s)
{
    clconv_nest_open_function(
        e, "void read_$tensor($raw raw[$deep], int exists, __local const uchar "
           "*tiles, uint at, int origin, stream_t *stream, int item, const "
           "line_t *line, const sizes_t *s)");
    clconv_emit_line(e, s->reader.vectors ? "const int octet = item % $octets;"
                                          : "const int octet = item / $lanes;");
    clconv_emit_line(e, "exists = exists && 8 * octet < s->$channels;");
    clconv_emit_line(e, "#pragma unroll");
    clconv_emit_open(e, "for (int i = 0; i < $deep; ++i)");
    clconv_emit_line(e, "const int pixel = exists ? ${tensor}_pixel(s, "
                        "&stream->place) : -1;");
    clconv_emit_line(e, "raw[i] = ($raw)(0);");
    clconv_emit_line(e, "if (pixel >= 0)");
    clconv_emit_line(e,
                     "    raw[i] = take_$tensor(tiles, at, pixel - origin, 8 "
                     "* octet, s, item);");
    clconv_emit_line(e, "place_move(&stream->place, &stream->step, line);");
    clconv_emit_close(e);
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

/* ---- All -------------------------------------------------------------- */

void clconv_fused_emit_ahead_read(clconv_emit *e, const clconv_task *t,
                                  const clconv_fused *f, clconv_tensor tensor)
{
    source s = source_of(t, f, tensor);
    set_source(e, &s);
    emit_pixel(e, &s);
    emit_range(e, &s);
    emit_ask(e, &s);
    emit_take(e, &s);
    emit_read(e, &s);
}

void clconv_fused_emit_ask(clconv_emit *e, const clconv_task *t,
                           const clconv_fused *f)
{
    set_turns(e, t, f);
    emit_turn(e);
    emit_find_ranges(e);
    emit_ask_turn(e);
}
