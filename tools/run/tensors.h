/*
 * The three arrays that clconv-run reads and the three that it writes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_RUN_TENSORS_H
#define CLCONV_RUN_TENSORS_H

#include "npy.h"
#include "options.h"

typedef struct run_inputs {
    npy_array dy, x, w;
} run_inputs;

typedef struct run_outputs {
    npy_array dw, db, dx;
} run_outputs;

/* All or none, with a line on stderr for the first that cannot be read. */
bool inputs_read(const run_options *options, run_inputs *out);
void inputs_free(run_inputs *inputs);

/* The problem: the options' desc with the sizes and types of the inputs.
 * false, with a line on stderr, if the shapes do not fit each other. */
bool inputs_describe(const run_options *options, const run_inputs *inputs,
                     clconv_desc *out);

/* Arrays of the shapes that desc, which is valid, gives, all bits 0. */
bool outputs_new(const clconv_desc *desc, run_outputs *out);
void outputs_free(run_outputs *outputs);

/* Makes out_dir and its missing parents, and finds out whether results can be
 * put there, before the long work begins. */
bool outputs_prepare(const run_options *options);

/* The path of "dw", "db" or "dx" in directory; returns text. */
const char *output_path(const char *directory, const char *name, char *text,
                        size_t size);

/* dw.npy, db.npy and dx.npy: written first, then renamed one by one. */
bool outputs_write(const char *directory, const run_outputs *outputs);

#endif
