/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "polish.h"

#include <stdlib.h>

/* Of speeds, then levels. */
#define TIMES 4

typedef struct polish {
    const clconv_laps *racers;
    int count, rounds;
    double *speeds; /* of each racer */
    double *levels; /* of each round */
    double *values; /* room for those of one racer, or of one round */
} polish;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double clconv_share_of(double *values, int count, double share)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    double place = share * (count - 1);
    int below = (int)place;
    if (below + 1 == count)
        return values[below];
    return values[below] + (place - below) * (values[below + 1] - values[below]);
}

/* ---- Speeds and levels ------------------------------------------------- */

static void find_speed(polish *p, int racer)
{
    const clconv_laps *r = &p->racers[racer];
    for (int i = 0; i < r->count; ++i)
        p->values[i] = r->laps[i].seconds / p->levels[r->laps[i].round];
    if (r->count)
        p->speeds[racer] = clconv_share_of(p->values, r->count, 0.5);
}

/* next: each racer's first lap that is not of an earlier round; moved on. */
static void find_level(polish *p, int round, int *next)
{
    int laps = 0, racers = 0;
    for (int i = 0; i < p->count; ++i) {
        const clconv_laps *r = &p->racers[i];
        int before = laps;
        for (; next[i] < r->count && r->laps[next[i]].round == round; ++next[i])
            p->values[laps++] = r->laps[next[i]].seconds / p->speeds[i];
        racers += laps > before;
    }
    p->levels[round] =
        racers > 1 ? clconv_share_of(p->values, laps, 0.5) : 1;
}

static void find_levels(polish *p, int *next)
{
    for (int i = 0; i < p->count; ++i)
        next[i] = 0;
    for (int round = 0; round < p->rounds; ++round)
        find_level(p, round, next);
}

static void level_out(polish *p)
{
    for (int i = 0; i < p->rounds; ++i)
        p->values[i] = p->levels[i];
    double typical =
        p->rounds ? clconv_share_of(p->values, p->rounds, 0.5) : 1;
    for (int i = 0; i < p->count; ++i)
        for (int j = 0; j < p->racers[i].count; ++j) {
            clconv_lap *lap = &p->racers[i].laps[j];
            lap->seconds *= typical / p->levels[lap->round];
        }
}

/* ---- The whole --------------------------------------------------------- */

static void run(polish *p, int *next)
{
    for (int i = 0; i < p->rounds; ++i)
        p->levels[i] = 1;
    for (int times = 0; times < TIMES; ++times) {
        for (int i = 0; i < p->count; ++i)
            find_speed(p, i);
        find_levels(p, next);
    }
    level_out(p);
}

static int all_laps(const clconv_laps *racers, int count)
{
    int laps = 0;
    for (int i = 0; i < count; ++i)
        laps += racers[i].count;
    return laps;
}

bool clconv_polish(const clconv_laps *racers, int count, int rounds)
{
    size_t most = (size_t)all_laps(racers, count) + (size_t)rounds + 1;
    polish p = {
        .racers = racers,
        .count = count,
        .rounds = rounds,
        .speeds = calloc((size_t)count + 1, sizeof *p.speeds),
        .levels = calloc((size_t)rounds + 1, sizeof *p.levels),
        .values = calloc(most, sizeof *p.values),
    };
    int *next = calloc((size_t)count + 1, sizeof *next);
    bool room = p.speeds && p.levels && p.values && next;
    if (room)
        run(&p, next);
    free(next);
    free(p.values);
    free(p.levels);
    free(p.speeds);
    return room;
}
