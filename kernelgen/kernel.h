/*
 * The contract of a kernel. One kernel is one .c file and one row of
 * kernel_table.c; the file holds, in this order: a comment with the loop nest
 * and the movement of data, params, covers, legal and cost, passes and
 * scratch, emit helpers in the order of execution, the const struct.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_KERNEL_H
#define CLCONV_KERNEL_H

#include "device.h"
#include "emit.h"
#include "param.h"
#include "problem.h"
#include "tensor_map.h"

/* What a kernel is for. A cast reads each element of some operands once. */
typedef enum clconv_role {
    CLCONV_ROLE_CAST,
    CLCONV_ROLE_BWD_DATA,   /* computes dX */
    CLCONV_ROLE_BWD_WEIGHT, /* computes dW */
    CLCONV_ROLE_BACKWARD,   /* all of it: dX, dW, dbias, without a cast */
    CLCONV_ROLE_FORWARD     /* computes Y */
} clconv_role;

/* Beside CLCONV_BIT(operand), in the bits of copies: its packed copy. */
#define CLCONV_PACKED(tensor) (CLCONV_BIT(tensor) << 3)

/*
 * One use of a kernel: what all its callbacks are given.
 *
 * copies: the operands (bits of DY, X, W) that are read as dense fp16 copies
 * which a cast wrote before, in the tensor's own layout (CLCONV_BIT) or packed
 * (CLCONV_PACKED, see pack.h), never both; for a cast, those of which it writes
 * the copy, perhaps in both forms. An operand without a bit is read as the
 * caller gave it.
 *
 * counts: the operands (bits) that bwd_data or bwd_weight counts for the report
 * as it reads them, of those that its callback offers; for a cast, those that
 * another step counts whenever its output is wanted.
 *
 * finishes_bias: a bwd_weight adds up the partial sums of dbias that the cast
 * left, if its callback offers that; for a cast, another step does.
 */
typedef struct clconv_task {
    const clconv_problem *problem;
    const clconv_device *device;
    const int *values; /* one a row of the kernel's params */
    unsigned copies;
    unsigned counts;
    unsigned reads; /* a cast's: bits of DY, X, W */
    bool bias;      /* a cast's or a backward's: also sums dbias */
    bool finishes_bias;
    bool baked; /* sizes are numbers in the text, but for the batch */
} clconv_task;

/* An argument of an entry point; what OpenCL C declares for it. */
typedef enum clconv_arg_kind {
    /* "__global T *name, long name_offset" in elements of T: */
    CLCONV_ARG_TENSOR,    /* the caller's tensor */
    CLCONV_ARG_COPY,      /* the fp16 copy of an operand; T is half */
    CLCONV_ARG_PACKED,    /* the same, packed */
    CLCONV_ARG_OPERAND,   /* PACKED or COPY if the task's copies has it, else
                           TENSOR */
    CLCONV_ARG_SCRATCH,   /* this task's workspace; T is float (4 bytes) */
    CLCONV_ARG_BIAS_SUMS, /* what a cast left in its own, then how it lies, "int
                             bias_count, int bias_run", see clconv_bias_sums */
    /* "__global uint *name, long name_offset" in uints, the pointer NULL if
     * there is no report: clconv_counts of a tensor, each count two uints,
     * low first. */
    CLCONV_ARG_COUNTS,
    CLCONV_ARG_BETA,     /* "float beta" of an output; of several in a pass,
                            "float beta_<tensor>" */
    CLCONV_ARG_BATCH,    /* "int": images of this call */
    CLCONV_ARG_ELEMENTS, /* "long": elements of a tensor in this call */
    CLCONV_ARG_SIZES,    /* "sizes_t", see sizes.h; "int batch" if baked */
    CLCONV_ARG_SHAPE,    /* "shape_t", the pass's shape, see kernel_shape.h */
    CLCONV_ARG_CALL,     /* "call_t", what of the shape is no constant */
    CLCONV_ARG_MAP       /* "map_t <tensor>_map", see tensor_map.h; that of the
                            pass for that operand */
} clconv_arg_kind;

typedef struct clconv_arg {
    clconv_arg_kind kind;
    clconv_tensor tensor; /* where the kind asks for one */
} clconv_arg;

#define CLCONV_MAX_ARGS 16
#define CLCONV_MAX_PASSES 6
#define CLCONV_MAX_SHAPE 48
#define CLCONV_OPERANDS 3

/* One launch. Everything is one-dimensional: some devices know no more. */
typedef struct clconv_pass {
    const char *entry; /* starts with the kernel's name */
    clconv_arg args[CLCONV_MAX_ARGS];
    int arg_count;
    size_t groups;   /* work-groups; 0: nothing to do for this batch */
    size_t local;    /* work-items of each */
    unsigned serves; /* clconv_op mask: runs if one of these is wanted */
    bool counts;     /* runs if a report is wanted, whatever it serves ... */
    unsigned unless; /* ... but not if one of these clconv_op is wanted */
    int merge;       /* groups that CLCONV_ARG_SIZES has as one; 0: each */
    int64_t shape[CLCONV_MAX_SHAPE]; /* of CLCONV_ARG_SHAPE or _CALL */
    int shape_count;
    /* Of CLCONV_ARG_MAP, by operand (DY, X, W). */
    clconv_tensor_map map[CLCONV_OPERANDS];
} clconv_pass;

/* Partial sums of dbias in a cast's scratch, fp32, count for each of K channels:
 * the i-th of channel k at (i / run * K + k) * run + i % run. */
typedef struct clconv_bias_sums {
    int64_t count, run;
} clconv_bias_sums;

typedef struct clconv_kernel {
    const char *name; /* also the file's, in records, and of entry points */
    clconv_role role;
    int revision; /* bump when the same values come to mean another program */
    const char *summary;
    const clconv_param *params;
    int param_count;

    /* Can this kernel do it at all, with some values? */
    bool (*covers)(const clconv_problem *p, const clconv_device *d);

    /* Good values without measuring; legal wherever covers() says yes. */
    void (*defaults)(const clconv_problem *p, const clconv_device *d,
                     int *values);

    /* Do these values fit registers, local memory, work-group? */
    bool (*legal)(const clconv_task *t);

    /* Might legal values be the fastest on this device? A tuner tries no
     * others. NULL: all. */
    bool (*promising)(const clconv_task *t);

    /*
     * How long it takes, all passes, as the number of multiply-adds that the
     * device would do in that time at its peak: R*S*K*C/groups*N*P*Q for a
     * perfect kernel, twice that for one at half the peak. A simple model of
     * arithmetic, packing and waste (terms in cost.h) that ranks kernels and
     * values. NULL: 0.
     */
    double (*cost)(const clconv_task *t);

    /* The operands (bits) that these values want as fp16 copies; the planner
     * grants the plain ones that the problem casts at all, and packed ones of
     * any operand under mixed math. */
    unsigned (*wants_copies)(const clconv_task *t);

    /* The operands (bits) of which its passes read each element once, whenever
     * its output is wanted, and count it if the task says so. NULL: none. */
    unsigned (*counts)(const clconv_task *t);

    /* Of a bwd_weight: do these values have a pass that can add up partial sums
     * of dbias too (bias_sum.h)? NULL: no. */
    bool (*finishes_bias)(const clconv_task *t);

    /* Of a cast: what it leaves for such a pass in a call with batch images. */
    clconv_bias_sums (*bias_sums)(const clconv_task *t, int64_t batch);

    /* Bytes of its own workspace, for the problem's n images. */
    size_t (*scratch)(const clconv_task *t);

    /* The launches for a call with batch images, in order; returns their
     * number. The number, entries and args do not depend on the batch. */
    int (*passes)(const clconv_task *t, int64_t batch, clconv_pass *out);

    /* The source of all entry points. */
    void (*emit)(clconv_emit *e, const clconv_task *t);
} clconv_kernel;

/* The planner's default is the cheapest that covers; of equals the first. */
extern const clconv_kernel *const clconv_kernels[];
extern const int clconv_kernel_count;

/* The parameter of kernels that offer both kinds of plan; sets task.baked. */
#define CLCONV_SHAPE_PARAM                                                     \
    {                                                                          \
        "shape", CLCONV_NAMES("arguments", "baked"),                           \
            "where the sizes of the problem stand"                             \
    }

enum { CLCONV_SHAPE_ARGUMENTS, CLCONV_SHAPE_BAKED };

/* Does the kernel have that parameter, and is it "baked"? */
bool clconv_kernel_bakes(const clconv_kernel *k, const int *values);

/* Sets it to "arguments" if there is one. */
void clconv_kernel_unbake(const clconv_kernel *k, int *values);

/* NULL if there is none of that name. */
const clconv_kernel *clconv_kernel_find(const char *name, size_t length);

/* The source of a task, yours to free(); NULL: no memory or a fault of the
 * kernel's emit, told by *why (a static or the emitter's text, copied). */
char *clconv_kernel_source(const clconv_kernel *k, const clconv_task *t,
                           clconv_text *why);

#endif
