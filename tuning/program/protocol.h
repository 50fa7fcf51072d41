/*
 * What the program says to a worker, its own process, and back: a command is
 * one line, and the worker answers each plan of it, in order, by one line.
 *
 *     do="time" problem="n2c4h8w8k8r3s3p1" ops=7 seconds=0.05
 *         plan="bwd_data_tile" plan=""                          (one line)
 *     outcome="ok" seconds=0.0012 lower=... upper=... error=nan why=""
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLCONV_TUNE_PROTOCOL_H
#define CLCONV_TUNE_PROTOCOL_H

#include "trial_fields.h"

typedef enum command_verb {
    COMMAND_PREPARE,
    COMMAND_TIME,
    COMMAND_JUDGE,
    COMMAND_KEEP, /* prepare, and leave nothing out of the caches */
    COMMAND_VERBS
} command_verb;

/* Of one command; the tuner's batches are smaller. */
#define COMMAND_MAX_PLANS 64

typedef struct command {
    command_verb verb;
    const char *problem; /* a problem string */
    unsigned ops;        /* clconv_op mask */
    double seconds;      /* COMMAND_TIME: for each plan, about */
    int count;           /* of plans, 1 to COMMAND_MAX_PLANS */
    const char *plans[COMMAND_MAX_PLANS];
} command;

/* The line with its newline. */
void command_format(const command *c, clconv_text *out);

/* What a command that was read points to. */
typedef struct command_strings {
    char problem[256];
    char plans[COMMAND_MAX_PLANS][CLCONV_RECORD_PLAN];
} command_strings;

/* A line without its newline. False: it is no command. */
bool command_parse(const char *line, size_t length, command_strings *strings,
                   command *out);

void answer_format(const clconv_trial *trial, clconv_text *out);
bool answer_parse(const char *line, size_t length, clconv_trial *out);

#endif
