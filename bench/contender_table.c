/*
 * A new contender is one row here and one file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contender.h"

extern const contender contender_mixed, contender_fp16;
extern const contender contender_fp32, contender_report;
extern const contender contender_onednn, contender_onednn_bf16;
extern const contender contender_clblast, contender_clblast16;

const contender *const contenders[] = {
    &contender_mixed,     &contender_fp32,   &contender_clblast,
    &contender_clblast16, &contender_onednn, &contender_onednn_bf16,
    &contender_fp16,      &contender_report,
};

const int contender_count = (int)(sizeof(contenders) / sizeof(contenders[0]));
