/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fold.h"

#include "integers.h"

bool clconv_fold_covers(const clconv_problem *p)
{
    return p->groups == 1 && p->dilation_h == 1 && p->dilation_w == 1 &&
           p->pad_top >= 0 && p->pad_left >= 0 && p->pad_bottom >= 0 &&
           p->pad_right >= 0 && p->stride_h <= CLCONV_FOLD_LINE &&
           p->stride_w <= CLCONV_FOLD_LINE &&
           p->c <= CLCONV_FOLD_LINE / (p->stride_h * p->stride_w);
}

/* Rows before the filter that make windows begin where the image does, if the
 * folded filter has no more taps for them. */
static int shift_of(int64_t pad, int64_t stride, int64_t size)
{
    int64_t shift = (stride - pad % stride) % stride;
    bool free = size + shift <= clconv_round_up(size, stride);
    return free ? (int)shift : 0;
}

clconv_fold clconv_fold_of_dx(const clconv_problem *p)
{
    return (clconv_fold){
        .high = (int)p->stride_h,
        .wide = (int)p->stride_w,
        .taps_h = (int)clconv_divide_up(p->r, p->stride_h),
        .taps_w = (int)clconv_divide_up(p->s, p->stride_w),
        .step_h = 1,
        .step_w = 1,
        .shift_h = shift_of(p->pad_top, p->stride_h, p->r),
        .shift_w = shift_of(p->pad_left, p->stride_w, p->s),
    };
}

static clconv_fold with_windows(const clconv_problem *p, int high, int wide)
{
    return (clconv_fold){
        .high = high,
        .wide = wide,
        .taps_h = (int)clconv_divide_up(p->r, high),
        .taps_w = (int)clconv_divide_up(p->s, wide),
        .step_h = high / (int)p->stride_h,
        .step_w = wide / (int)p->stride_w,
    };
}

/* A row of taps is a product, which multiplies 16 columns a tap in half a cycle
 * each, or reads 2 KiB of dY and 512 bytes of X a tap, 128 bytes a cycle. */
int64_t clconv_fold_dw_cycles(const clconv_fold *f)
{
    return f->taps_h * clconv_max(8 * f->taps_w, 16 + 4 * f->taps_w);
}

clconv_fold clconv_fold_of_dw(const clconv_problem *p)
{
    const int most = CLCONV_FOLD_LINE / (int)p->c;
    const int stride_h = (int)p->stride_h, stride_w = (int)p->stride_w;
    clconv_fold best = with_windows(p, stride_h, stride_w);
    for (int high = stride_h; high * stride_w <= most; high += stride_h)
        for (int wide = stride_w; high * wide <= most; wide += stride_w) {
            clconv_fold f = with_windows(p, high, wide);
            if (clconv_fold_dw_cycles(&f) < clconv_fold_dw_cycles(&best))
                best = f;
        }
    return best;
}

bool clconv_fold_pads(const clconv_problem *p, const clconv_fold *f)
{
    return f->taps_h * f->high != p->r || f->taps_w * f->wide != p->s;
}

/* ---- Text ------------------------------------------------------------- */

static void set_holes(clconv_emit *e, const clconv_problem *p,
                      const clconv_fold *f)
{
    clconv_emit_set(e, "channels", p->c);
    clconv_emit_set(e, "r", p->r);
    clconv_emit_set(e, "s", p->s);
    clconv_emit_set(e, "stride_h", p->stride_h);
    clconv_emit_set(e, "stride_w", p->stride_w);
    clconv_emit_set(e, "high", f->high);
    clconv_emit_set(e, "wide", f->wide);
    clconv_emit_set(e, "taps_h", f->taps_h);
    clconv_emit_set(e, "taps_w", f->taps_w);
    clconv_emit_set(e, "taps", f->taps_h * f->taps_w);
    clconv_emit_set(e, "step_h", f->step_h);
    clconv_emit_set(e, "step_w", f->step_w);
    clconv_emit_set(e, "shift_h", f->shift_h);
    clconv_emit_set(e, "shift_w", f->shift_w);
    clconv_emit_set(e, "fold_line", CLCONV_FOLD_LINE);
}

void clconv_fold_emit(clconv_emit *e, const clconv_problem *p,
                      const clconv_fold *f)
{
    bool channels_last = p->layout == CLCONV_NHWC;
    set_holes(e, p, f);
    clconv_emit_open(e, "int3 fold_place(int n)");
    clconv_emit_line(e, channels_last
                            ? "return (int3)(n % $channels, n / "
                              "($channels * $wide), n / $channels % "
                              "$wide);"
                            : "return (int3)(n / ($high * $wide), n / "
                              "$wide % $high, n % $wide);");
    clconv_emit_close(e);
    clconv_emit_blank(e);
    clconv_emit_open(e, "int fold_channel(int c, int i, int j)");
    clconv_emit_line(e, channels_last
                            ? "return (i * $wide + j) * $channels + c;"
                            : "return (c * $high + i) * $wide + j;");
    clconv_emit_close(e);
    clconv_emit_blank(e);
}
