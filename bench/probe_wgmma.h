/*
 * The text of probe_wgmma's kernel, which a test assembles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_BENCH_PROBE_WGMMA_H
#define CLCONV_BENCH_PROBE_WGMMA_H

/* PTX for sm_90a, yours to free(); NULL: no memory. */
char *probe_wgmma_text(void);

#endif
