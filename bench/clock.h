/*
 * Seconds, and quiet.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_CLOCK_H
#define CLCONV_BENCH_CLOCK_H

/* From some moment on; never goes back. */
double clock_seconds(void);

/*
 * Waits until no thread of this process uses processor time, for a tenth of a
 * second at most. OpenMP's threads spin for milliseconds after their work,
 * which the next contender would pay for.
 */
void clock_wait_for_quiet(void);

#endif
