/*
 * The swizzle of kernels/swizzle.cl, which is C as well: pieces of 16 bytes keep
 * apart, and what a matrix load or a copy touches at a time lies in all banks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <criterion/criterion.h>
#include <stdbool.h>

typedef unsigned int uint;
#include "../../kernels/swizzle.cl"

/* Bytes; the pattern repeats after 8 lines of 128. */
enum { PIECE = 16, BANKS = 128, PATTERN = 1024 };

static const uint lengths[] = {32, 64, 128};

Test(swizzle, each_place_is_taken_once)
{
    for (int i = 0; i < 3; ++i) {
        bool taken[PATTERN / PIECE] = {false};
        for (uint at = 0; at < PATTERN; at += PIECE) {
            uint to = swizzled(at, lengths[i]);
            cr_assert_lt(to, PATTERN);
            cr_assert_eq(to % PIECE, 0);
            cr_assert_not(taken[to / PIECE], "lines of %u, %u", lengths[i], at);
            taken[to / PIECE] = true;
        }
    }
}

/* The banks of so many pieces, step bytes apart, are different ones. */
static void check_banks(uint line, uint at, uint step)
{
    bool taken[BANKS / PIECE] = {false};
    for (uint i = 0; i < BANKS / PIECE; ++i) {
        uint bank = swizzled(at + i * step, line) % BANKS / PIECE;
        cr_assert_not(taken[bank], "lines of %u, from %u in steps of %u", line,
                      at, step);
        taken[bank] = true;
    }
}

Test(swizzle, a_piece_of_eight_lines_lies_in_all_banks)
{
    for (int i = 0; i < 3; ++i)
        for (uint row = 0; row < 64; row += 8)
            for (uint piece = 0; piece < lengths[i]; piece += PIECE)
                check_banks(lengths[i], row * lengths[i] + piece, lengths[i]);
}

Test(swizzle, eight_pieces_side_by_side_lie_in_all_banks)
{
    for (int i = 0; i < 3; ++i)
        for (uint at = 0; at < PATTERN; at += BANKS)
            check_banks(lengths[i], at, PIECE);
}
