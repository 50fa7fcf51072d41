/*
 * clconv-run: the gradients of a person's own tensors, without code. Reads
 * three .npy files, runs the library once on a device, writes three.
 *
 * The flow: options -> inputs -> problem -> gradients -> files -> summary.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "args.h"
#include "extent.h"
#include "message.h"
#include "print.h"

/* Results stand on disk before anything claims it; a summary that cannot be
 * written (a full disk, a closed pipe) is a failure of its own. */
static bool finish(const run_summary *summary)
{
    if (!outputs_write(summary->options->out_dir, summary->outputs))
        return false;
    for (size_t i = 0; i < summary->warnings->count; ++i)
        message_warning("%s", summary->warnings->lines[i]);
    if (summary->options->json)
        print_json(summary);
    else
        print_table(summary);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    message_error("the summary cannot be written to stdout");
    return false;
}

static host_result run_problem(const run_options *options,
                               const clconv_desc *desc, const run_inputs *inputs)
{
    run_facts facts = {.milliseconds = 0.0};
    run_outputs outputs;
    advice warnings;
    run_summary summary = {options, &facts, inputs, &outputs, &warnings};
    host_result result;

    if (!outputs_new(desc, &outputs))
        return HOST_FAILED;
    result = compute_gradients(options, desc, inputs, &outputs, &facts);
    if (result == HOST_OK) {
        advice_collect(desc, &facts.report, extent_of(&inputs->dy).max_abs,
                       &warnings);
        result = finish(&summary) ? HOST_OK : HOST_FAILED;
    }
    outputs_free(&outputs);
    return result;
}

static host_result run(const run_options *options)
{
    run_inputs inputs;
    clconv_desc desc;
    host_result result = HOST_FAILED;

    if (!inputs_read(options, &inputs))
        return HOST_FAILED;
    if (inputs_describe(options, &inputs, &desc) && outputs_prepare(options))
        result = run_problem(options, &desc, &inputs);
    inputs_free(&inputs);
    return result;
}

int main(int argc, char **argv)
{
    run_options options;

    message_program("clconv-run");
    switch (options_parse(argc, argv, &options)) {
    case OPTIONS_DONE: return EXIT_SUCCESS;
    case OPTIONS_WRONG: return ARGS_EXIT_USAGE;
    case OPTIONS_RUN: break;
    }
    switch (run(&options)) {
    case HOST_OK: return EXIT_SUCCESS;
    case HOST_NO_DEVICE: return HOST_EXIT_SKIP;
    default: return EXIT_FAILURE;
    }
}
