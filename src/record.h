/*
 * A tuned record: the plan that was found fastest for a problem on a device.
 * One readable line of named fields,
 *
 *     problem=n32c64h16w16k64r3s3p1 ops=dw,db,dx plan="cast:...;bwd_..."
 *     us=812.400 default_us=1043.000 error=3.1e-4 kind=cpu unit=none
 *     registers=32 device="AMD EPYC ..." cus=2 vendor="..." platform="..." driver="..."
 *     revisions=cast:1,bwd_data_panel:2 date=2026-11-30 check=0123456789abcdef
 *
 * in any order but for check, which is the last and a hash of the line before
 * it. NVIDIA's devices have sm=90 in place of registers and units such as
 * unit=mma_m16n8k16+wgmma, emulated units emulated=yes; default_us, error and
 * date may be missing. Pure text: no file, no OpenCL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_RECORD_H
#define CLCONV_RECORD_H

#include "plan.h"

/* Longer lines are damaged. */
#define CLCONV_RECORD_LINE 4096
#define CLCONV_RECORD_PLAN 1024

typedef struct clconv_record {
    clconv_problem problem;
    unsigned ops;                  /* clconv_op mask that plan was timed for */
    char plan[CLCONV_RECORD_PLAN]; /* whole: every step, every value */
    double microseconds;           /* a call takes, median */
    double default_microseconds; /* the default plan takes, same run; 0: unknown */
    double error;         /* relative, Frobenius norm, to fp64; NAN: unknown */
    char date[16];        /* 2026-11-30 */
    clconv_device device; /* the facts that a line holds; others 0 */
} clconv_record;

/* The line, sealed, without a newline: with the device's facts, and for each
 * kernel of the plan string its revision as it is now. */
void clconv_record_format(const clconv_record *r, clconv_text *out);

typedef enum clconv_record_result {
    CLCONV_RECORD_OK,
    CLCONV_RECORD_BLANK,   /* an empty line, or a comment: # ... */
    CLCONV_RECORD_STALE,   /* of another revision, or a kernel that is gone */
    CLCONV_RECORD_UNKNOWN, /* a field or value this version does not know */
    CLCONV_RECORD_DAMAGED  /* not a record, cut off, or its check is wrong */
} clconv_record_result;

/* One line, without its newline. A line of a file that people edit may lack
 * check=; sealed says that it must not. *why gets a sentence if not OK. */
clconv_record_result clconv_record_parse(const char *line, size_t length,
                                         bool sealed, clconv_record *out,
                                         clconv_text *why);

/* What a record is of, as text: problem, ops, and all of the device that a line
 * holds. Of two with the same key the newer replaces the other. */
void clconv_record_key(const clconv_record *r, clconv_text *out);
bool clconv_record_same_key(const clconv_record *a, const clconv_record *b);

/* How near a record is to what is asked for. */
typedef enum clconv_nearness {
    CLCONV_NEAR_DRIVER, /* same device, units, platform and driver */
    CLCONV_NEAR_DEVICE, /* another driver */
    CLCONV_NEAR_FAMILY, /* another device that takes the same kernels well */
    CLCONV_NEAR_VENDOR,
    CLCONV_NEAR_NOT /* also: its plan may need units that the device lacks */
} clconv_nearness;

clconv_nearness clconv_record_nearness(const clconv_record *r,
                                       const clconv_device *device);

/* 0: the same problem; INFINITY: of another kind (layout, math, types, filter,
 * stride, dilation, kind of groups); else the larger, the less alike in size. */
double clconv_record_distance(const clconv_record *r,
                              const clconv_problem *problem);

#endif
