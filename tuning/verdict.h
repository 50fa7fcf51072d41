/*
 * Whether a plan computed what it should.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_VERDICT_H
#define CLCONV_VERDICT_H

#include "expect.h"
#include "trial.h"

/* Holds one output of a plan, of p.n images, against what is expected. Raises
 * out->error to this one's; if it is too large, or if data of
 * CLCONV_SAMPLE_INTEGERS does not give exactly that, false, and out is
 * CLCONV_TRIAL_WRONG and says why. */
bool clconv_verdict_holds(const clconv_expected *e, const clconv_problem *p,
                          clconv_tensor tensor, const float *got,
                          clconv_trial *out);

#endif
