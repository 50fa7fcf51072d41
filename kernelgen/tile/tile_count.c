/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tile_count.h"

#include "counts.h"
#include "entry.h"
#include "operand.h"
#include "tile_pack.h"

#define LANES CLCONV_TILE_LANES

bool clconv_tile_is_counted(const clconv_task *t, clconv_tensor tensor)
{
    return (t->counts & CLCONV_BIT(tensor)) != 0;
}

void clconv_tile_count_arg(const clconv_task *t, clconv_tensor tensor,
                           clconv_pass *pass)
{
    if (clconv_tile_is_counted(t, tensor))
        clconv_entry_arg(pass, CLCONV_ARG_COUNTS, tensor);
}

static void set_tensor(clconv_emit *e, const clconv_task *t,
                       clconv_tensor tensor)
{
    bool half_type = t->problem->type[tensor] == CLCONV_F16;
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_set_text(e, "given", half_type ? "half" : "float");
}

/* The last vector reads past the run, but not past the tensor. */
static void emit_rest(clconv_emit *e)
{
    clconv_emit_open(e, "static float16 rest_of_$tensor(__global const $given "
                        "*p, long i, int count, long total)");
    clconv_emit_line(e, "const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7,");
    clconv_emit_line(e, "                           8, 9, 10, 11, 12, 13, 14, "
                        "15);");
    clconv_emit_line(e, "float rest[16] = {0.0f};");
    clconv_emit_line(e, "if (i + 16 <= total)");
    clconv_emit_line(e,
                     "    return select((float16)(0.0f), read_${tensor}16(p, "
                     "i), lane < count);");
    clconv_emit_line(e, "for (int j = 0; j < count; ++j)");
    clconv_emit_line(e, "    rest[j] = read_$tensor(p, i + j);");
    clconv_emit_line(e, "return vload16(0, rest);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

static void emit_run(clconv_emit *e)
{
    clconv_emit_open(e, "static void see_${tensor}_run(seen16_t *seen, "
                        "__global const $given *p, long i, long end, long "
                        "total)");
    clconv_emit_line(e, "for (; i + 16 <= end; i += 16)");
    clconv_emit_line(e, "    see_${tensor}16(seen, read_${tensor}16(p, i));");
    clconv_emit_line(e, "if (i < end)");
    clconv_emit_line(e, "    see_${tensor}16(seen, rest_of_$tensor(p, i, end - "
                        "i, total));");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}

void clconv_tile_count_emit(clconv_emit *e, const clconv_task *t,
                            clconv_tensor tensor)
{
    clconv_counts_emit_seen(e, LANES);
    clconv_counts_emit_see(e, t->problem, tensor, LANES);
    clconv_operand_emit_read(e, t, tensor, LANES);
    clconv_operand_emit_read(e, t, tensor, 1);
    set_tensor(e, t, tensor);
    emit_rest(e);
    emit_run(e);
}

void clconv_tile_count_open(clconv_emit *e, clconv_tensor tensor)
{
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_open(e, "if (${tensor}_counts && begins_run)");
    clconv_emit_line(e, "seen16_t seen = {0};");
    clconv_emit_line(e, "counts_t tally = {0};");
}

void clconv_tile_count_close(clconv_emit *e, clconv_tensor tensor)
{
    clconv_emit_set_text(e, "tensor", clconv_tensor_name(tensor));
    clconv_emit_line(e, "fold16(&tally, &seen);");
    clconv_emit_line(e, "counts_flush(${tensor}_counts, &tally);");
    clconv_emit_close(e);
}
