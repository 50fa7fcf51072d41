/*
 * What became of a plan that was tried.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TRIAL_H
#define CLCONV_TRIAL_H

/* X(name, word): the word is what journals and tables say. */
#define CLCONV_OUTCOME_LIST(X)                                                 \
    X(CLCONV_TRIAL_OK, "ok")                                                   \
    X(CLCONV_TRIAL_REFUSED, "refused")           /* planner or workspace */    \
    X(CLCONV_TRIAL_BUILD_FAILED, "build failed") /* the device's compiler */   \
    X(CLCONV_TRIAL_WRONG, "wrong")               /* its results */             \
    X(CLCONV_TRIAL_FAILED, "failed")             /* an OpenCL call */          \
    X(CLCONV_TRIAL_CRASHED, "crashed")           /* took its process along */  \
    X(CLCONV_TRIAL_HUNG, "hung")                 /* ran into a time limit */

#define CLCONV_OUTCOME_ENUM(name, word) name,
typedef enum clconv_outcome {
    CLCONV_OUTCOME_LIST(CLCONV_OUTCOME_ENUM) CLCONV_OUTCOMES
} clconv_outcome;
#undef CLCONV_OUTCOME_ENUM

typedef struct clconv_trial {
    clconv_outcome outcome;
    double seconds;      /* of one call, median; if OK */
    double lower, upper; /* its quartiles */
    double error;        /* relative, Frobenius norm; NAN: not looked at */
    char why[256];       /* if not OK: one line */
} clconv_trial;

/* Never NULL. */
const char *clconv_outcome_word(clconv_outcome outcome);

#endif
