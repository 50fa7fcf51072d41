/*
 * Emits the head of an entry point from its pass, so that declaration and
 * launch cannot disagree:
 *
 *     clconv_entry_open(e, t, &pass, NULL);
 *     ... body ...
 *     clconv_emit_close(e);
 *
 * Names of the arguments: a tensor's own ("dy", "dx"), a copy beside its
 * tensor "dy_copy" or "dy_packed", "scratch", "bias_sums", "dx_counts", "beta",
 * "batch", "elements", "sizes", "shape", "call". The first lines of the body have
 * already added the offsets to the pointers. Inputs are const.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_ENTRY_H
#define CLCONV_ENTRY_H

#include "kernel.h"

/* attribute: a line before the name, such as
 * "__attribute__((reqd_work_group_size(128, 1, 1)))", or NULL. */
void clconv_entry_open(clconv_emit *e, const clconv_task *t,
                       const clconv_pass *pass, const char *attribute);

/* Appends an argument to a pass; tensor is ignored where the kind asks for
 * none. */
void clconv_entry_arg(clconv_pass *pass, clconv_arg_kind kind,
                      clconv_tensor tensor);

/*
 * The line before a function in which an entry point does all its work, in
 * work-groups of local work-items. PoCL makes three functions of an entry point
 * and inlines into each what may be: on a CPU the work stands apart, so that it
 * is compiled once. Not with several work-items, whose loop PoCL vectorizes, so
 * the function asks for no id: it is given what it needs.
 */
void clconv_entry_emit_apart(clconv_emit *e, const clconv_task *t, int local);

#endif
