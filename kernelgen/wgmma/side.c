/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "side.h"

#include "integers.h"

int clconv_wgmma_line(int64_t channels)
{
    return channels <= 16 ? 16 : channels <= 32 ? 32 : 64;
}

int clconv_wgmma_chunks(const clconv_wgmma_side *s)
{
    return s->operand->along_k ? 1 : (int)clconv_divide_up(s->rows, s->line);
}

int clconv_wgmma_chunk_bytes(const clconv_wgmma_side *s)
{
    int lines = s->operand->along_k ? s->rows : s->terms;
    return lines * s->line * 2;
}

int clconv_wgmma_side_bytes(const clconv_wgmma_side *s)
{
    return clconv_wgmma_chunks(s) * clconv_wgmma_chunk_bytes(s);
}

int clconv_wgmma_rows_bytes(const clconv_wgmma_side *s, int rows)
{
    if (s->operand->along_k)
        return rows * s->line * 2;
    return rows / s->line * clconv_wgmma_chunk_bytes(s);
}

int clconv_wgmma_step_bytes(const clconv_wgmma_side *s)
{
    return s->operand->along_k ? 16 * 2 : 16 * s->line * 2;
}
