/*
 * One plan with all its buffers, called as often as family.c likes. Before
 * each call outputs, workspace and all that surrounds a tensor are NaN; after
 * it the surroundings must still be. A buffer's offset is the least aligned
 * one that the description allows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FAMILY_RUN_H
#define FAMILY_RUN_H

#include <stdbool.h>

#include "family.h"
#include "family_data.h"
#include "host.h"

typedef struct family_run {
    const family *f;
    unsigned ops;
    unsigned wanted; /* of ops, by the next call; at first all */
    char problem[192];
    host host; /* shared with other runs */
    clconv_plan *plan;
    size_t workspace_size;
    cl_mem mem[FAMILY_TENSORS]; /* of tensors that ops has a use for */
    cl_mem workspace, report_mem;
    size_t bytes[FAMILY_TENSORS], offset; /* without and of guards */
    clconv_type type[FAMILY_TENSORS];
    /* What the last call gave: outputs of desc.n images. */
    float *got[FAMILY_TENSORS];
    clconv_report report;
} family_run;

void family_run_open(const family *f, const clconv_desc *desc, family_run *out);
void family_run_close(family_run *run);

/* An output in ops, wanted or not, begins as NaN if its beta is 0, else as data->value.
 * beta[] is indexed like the tensors. */
void family_run_call(family_run *run, const family_data *data, int64_t batch,
                     const float beta[FAMILY_TENSORS]);

/* "problem, plan p, emulating u", for messages; one text. */
const char *family_run_name(const family_run *run);

#endif
