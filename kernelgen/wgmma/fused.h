/*
 * The parts of bwd_fused: dX, dW and dbias by Hopper's warpgroup products from
 * one reading of dY and X.
 *
 * All images lie on one line of positions, row after row and image after image,
 * with so much room between that what is read past an edge is zero: a row of X
 * is followed by the wider of its two paddings, an image by the taller. On this
 * line a tap is a distance, the same for every position,
 *
 *     dX[v]  = sum over taps of dY[v + distance(tap)] * W[tap]
 *     dW[tap] = sum over v of  X[v] * dY[v + distance(tap)]
 *
 * with dY at its own place on the line, so that distances are 0 or more: a tile
 * is any rows of the line, and every matrix of both products is a range of
 * lines in local memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_WGMMA_FUSED_H
#define CLCONV_WGMMA_FUSED_H

#include "kernel.h"
#include "products.h"

/* Warpgroups: each computes dX of its share of a tile's positions, and dW of its
 * share of the taps. */
#define CLCONV_FUSED_GROUPS 3
#define CLCONV_FUSED_ITEMS (CLCONV_FUSED_GROUPS * CLCONV_WARPGROUP)

/* Positions of a tile: a multiple of what one product each takes. */
#define CLCONV_FUSED_ROWS (CLCONV_FUSED_GROUPS * CLCONV_WGMMA_M)

typedef struct clconv_fused {
    int rows;           /* positions of a tile */
    int at_once;        /* octets that a work-item reads at a time, at most */
    int k_line, c_line; /* halves of a position of dY and X, in local memory */
    int taps;
    int wide;    /* taps of a product of dW, neighbours of a filter row */
    int slots;   /* products of dW of a warpgroup */
    int blocks;  /* of 64 positions, a warpgroup's */
    int halo;    /* positions of dY past a tile, rounded */
    int buffers; /* of X; dY's ring holds as many tiles beside its halo */
    int ring;    /* positions of dY in local memory */
    int mirror;  /* positions that stand past its end, too */
    int parts;   /* work-groups that share a group's positions */
    int ahead;   /* turns that the copy unit brings; 0: work-items read */
    int64_t weight_bytes, dy_bytes, x_bytes;
    int64_t slot_bytes, ahead_bytes; /* of a turn ahead, of all of them */
    clconv_products dx, dw;
} clconv_fused;

clconv_fused clconv_fused_of(const clconv_task *t, int rows, int at_once,
                             bool ahead);

/* Positions that all work-items read together, of lines of so many halves. */
int clconv_fused_lanes(int line);

/* Bytes of local memory. */
int64_t clconv_fused_local(const clconv_fused *f);

/* Positions of the batch. */
int64_t clconv_fused_length(const clconv_problem *p, int64_t batch);

/* Floats that a work-group leaves in scratch: sums of dW, then of dbias. */
int64_t clconv_fused_dw_sums(const clconv_fused *f);
int64_t clconv_fused_sums(const clconv_fused *f);

/* Holes for all of the following. */
void clconv_fused_set_holes(clconv_emit *e, const clconv_task *t,
                            const clconv_fused *f);

/* line_t, line_of(&sizes), halo_of(&line), place_t, place_at(&line, v),
 * place_move(&place, &by, &line); the index of a position's first channel of a
 * group, -1 for none: dy_at(&sizes, &place, group), x_at(...). */
void clconv_fused_emit_line(clconv_emit *e);

/* How often all work-items read, for a tile or the halo, and what each reads at a
 * time. */
typedef struct clconv_fused_turns {
    int x, x_deep;
    int dy, dy_deep;
    int halo;
} clconv_fused_turns;

clconv_fused_turns clconv_fused_turns_of(const clconv_task *t,
                                         const clconv_fused *f);

/* stream_t; begin_dy(&stream, &line, v, item), read_dy(...), write_dy(...), and
 * the same of X; load_w(...): see fused_load.c. */
void clconv_fused_emit_loads(clconv_emit *e, const clconv_task *t,
                             const clconv_fused *f);

/* Can the copy unit bring dY and X ahead of their use? Sets how many turns, 0
 * where too few fit. */
bool clconv_fused_ahead_suits(const clconv_problem *p);
void clconv_fused_ahead_set(const clconv_task *t, clconv_fused *f);

/* Ranges of turns that are kept. */
int64_t clconv_fused_ranges(const clconv_fused_turns *turns);

/* read_dy(...) or read_x(...) from what was brought; find_ranges(...),
 * ask_turn(...): see fused_ahead.c. */
void clconv_fused_emit_ahead_read(clconv_emit *e, const clconv_task *t,
                                  const clconv_fused *f, clconv_tensor tensor);
void clconv_fused_emit_ask(clconv_emit *e, const clconv_task *t,
                           const clconv_fused *f);

/* In the kernel, see fused_turns.c: before a barrier, slots of turns ahead; then
 * weights, halo and first tile; ranges of the tile after the next; the next
 * tile; and the two halves of a turn that is not ahead, with const int turn
 * declared, the first perhaps on a condition. */
void clconv_fused_emit_slots(clconv_emit *e, const clconv_task *t,
                             const clconv_fused *f);
void clconv_fused_emit_find(clconv_emit *e);
void clconv_fused_emit_first(clconv_emit *e, const clconv_task *t,
                             const clconv_fused *f);
void clconv_fused_emit_tile(clconv_emit *e, const clconv_task *t,
                            const clconv_fused *f, int64_t before);
void clconv_fused_emit_turn_read(clconv_emit *e, const clconv_task *t,
                                 const clconv_fused *f, bool of_x,
                                 const char *condition);
void clconv_fused_emit_turn_write(clconv_emit *e, const clconv_task *t,
                                  const clconv_fused *f, bool of_x,
                                  int64_t before);

/* add_bias(sums, item, &sum), leave_bias(sums, item, out): the latter after a
 * barrier. */
void clconv_fused_emit_bias(clconv_emit *e, const clconv_task *t,
                            const clconv_fused *f);

/* The pass that adds what work-groups left, and its text. */
clconv_pass clconv_fused_sum_pass(const clconv_task *t, const clconv_fused *f);
void clconv_fused_emit_sum(clconv_emit *e, const clconv_task *t,
                           const clconv_fused *f);

#endif
