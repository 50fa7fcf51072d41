/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tile_count.h"

#include "counts.h"
#include "entry.h"

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

void clconv_tile_count_emit(clconv_emit *e, const clconv_task *t,
                            clconv_tensor tensor)
{
    clconv_counts_emit_seen(e, CLCONV_COUNTS_RUN);
    clconv_counts_emit_run(e, t, tensor);
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
