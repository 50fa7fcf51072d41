#!/usr/bin/env python3
"""Times libclconv beside cuDNN, which runs through PyTorch, on one GPU.

Three comparisons on the shapes that clconv-bench lists:

  kernels   dW and dX of fp16 X, W and dY (already scaled) in NHWC, to fp32 dW
            and scaled fp16 dX, against cuDNN's two gradients in fp16
  job       fp32 X, W and dY to fp32 dW, db and dX in true units, in fp16
            between, against the better of PyTorch's jobs in NCHW and NHWC
  fp32      dW, db and dX in fp32 throughout, against cuDNN without TF32

with bf16 and TF32 beside. Shape after shape, PyTorch is timed and then
clconv-bench; --rounds repeats the whole, and the least of a time's medians
counts. A shape that fails is a row with its error. Prints ratios, theirs /
ours, their geometric means, and whether the expected ones are met.

Needs a CUDA build of PyTorch; printing a recorded result (--from) does not.
Exit status: 0, also where ratios are not as expected; 1 if nothing could be
measured or written; 2 for a wrong option; 77 without PyTorch or a GPU.

SPDX-License-Identifier: Apache-2.0
"""

import argparse
import datetime
import json
import os
import pathlib
import sys

from compare import clconv, output, plot, result, summary

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = ROOT / "build" / "release" / "bench" / "clconv-bench"

EXIT_SKIP = 77


class CompareError(Exception):
    """Ends the run with a sentence."""


# ---- Options ----------------------------------------------------------------


def comparison_names(text):
    """The value of --only."""
    known = [comparison.name for comparison in summary.COMPARISONS]
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(
                f"{name}: no such comparison; there are {', '.join(known)}"
            )
    return names


def positive(kind):
    """A number of that type above 0."""

    def read(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text}: must be above 0")
        return value

    read.__name__ = f"positive {kind.__name__}"
    return read


def add_measuring_options(parser):
    """What is measured, and how."""
    parser.add_argument(
        "problems",
        nargs="*",
        metavar="PROBLEM",
        help="sizes, such as n32c64h16w16k64r3s3p1",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        help="a named list of clconv-bench; default: gpu",
    )
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        help="problems, as clconv-bench reads them",
    )
    parser.add_argument(
        "--max-gflop", metavar="X", help="leave out problems with more a gradient"
    )
    parser.add_argument(
        "--only",
        type=comparison_names,
        metavar="LIST",
        help="comparisons, of kernels,job-nchw,job-nhwc,fp32",
    )
    parser.add_argument(
        "--rounds", type=positive(int), default=1, help="of the whole; default 1"
    )
    parser.add_argument(
        "--seconds",
        type=positive(float),
        default=0.3,
        help="for each time of clconv-bench; default 0.3",
    )
    parser.add_argument(
        "--bench",
        default=BENCH,
        metavar="PROGRAM",
        help="clconv-bench; default: build/release/bench/",
    )
    parser.add_argument(
        "--device",
        default="NVIDIA",
        metavar="TEXT",
        help="the OpenCL device whose name contains TEXT; default NVIDIA",
    )


def make_parser():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.rpartition("\nSPDX")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_measuring_options(parser)
    parser.add_argument("--csv", metavar="FILE", help="a row for each time")
    parser.add_argument(
        "--plot", metavar="FILE.svg", help="the ratios, drawn by gnuplot"
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="everything; written after each shape, so that a "
        "run that is stopped is not lost",
    )
    parser.add_argument(
        "--from",
        dest="recorded",
        action="append",
        default=[],
        metavar="FILE",
        help="measure nothing: print what --json wrote; given "
        "again, the rounds of several runs together",
    )
    return parser


def selection(options):
    """The options with which clconv-bench chooses the same problems."""
    chosen = [f"--set={name}" for name in options.set]
    chosen += [f"--file={name}" for name in options.file]
    chosen += options.problems
    if options.max_gflop is not None:
        chosen.append(f"--max-gflop={options.max_gflop}")
    return (
        chosen
        if options.set or options.file or options.problems
        else ["--set=gpu", *chosen]
    )


# ---- Files ------------------------------------------------------------------


def write_json(path, measured):
    """Replaces the file at once, so that there is always a whole one."""
    unfinished = f"{path}.part"
    with open(unfinished, "w", encoding="utf-8") as to:
        json.dump(measured.as_json(), to, indent=1)
        to.write("\n")
    os.replace(unfinished, path)


def read_recorded(paths):
    """The results of some files as one."""
    results = []
    for path in paths:
        try:
            data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
            results.append(result.from_json(data))
        except (ValueError, KeyError, TypeError) as error:
            raise CompareError(
                f"--from {path}: no result of this program "
                f"({type(error).__name__}: {error})"
            ) from error
    return result.joined(results)


# ---- Measuring --------------------------------------------------------------


def open_cudnn():
    """The timer of cuDNN; None, with a line on stderr, where it cannot be."""
    try:
        from compare import cudnn

        return cudnn.Cudnn()
    except (ImportError, RuntimeError) as error:
        print(
            f"compare_torch: a CUDA build of PyTorch and its GPU are needed "
            f"to measure ({error}); --from prints a recorded result",
            file=sys.stderr,
        )
        return None


def show_progress(round_number, shape):
    """On stderr, since stdout is the table's."""
    print(f"round {round_number}: {shape.name}", file=sys.stderr, flush=True)


def wanted_columns(names):
    """The columns that the comparisons of --only need; None: all."""
    chosen = [
        comparison
        for comparison in summary.COMPARISONS
        if names is None or comparison.name in names
    ]
    return set().union(*(comparison.columns for comparison in chosen))


def measure_rounds(options, timers, listed, measured):
    """Adds the cells of each round and shape to the rows."""
    wanted = wanted_columns(options.only)
    for round_number in range(1, options.rounds + 1):
        for shape in listed:
            show_progress(round_number, shape)
            cells = {}
            for timer in timers:
                cells.update(timer.measure(shape, wanted))
            measured.row_of(shape).rounds.append(cells)
            if options.json:
                write_json(options.json, measured)


def measure(options, cudnn):
    """The whole run."""
    bench = clconv.Bench(options.bench, options.device, options.seconds)
    listed = bench.list_shapes(selection(options))
    now = datetime.datetime.now(datetime.UTC)
    measured = result.Result(
        command=sys.argv,
        date=now.isoformat(timespec="seconds"),
        facts={**bench.measure_facts(), **cudnn.facts()},
        rows=[],
    )
    measure_rounds(options, (cudnn, bench), listed, measured)
    return measured


# ---- The whole --------------------------------------------------------------


def write_all(options, measured):
    """Table and files."""
    output.print_all(measured, sys.stdout)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as to:
            output.write_csv(measured, to)
    if options.json:
        write_json(options.json, measured)
    if options.plot:
        plot.draw(measured, options.plot)


def run(options):
    """The exit status."""
    if options.plot:
        plot.require_gnuplot()
    if options.recorded:
        write_all(options, read_recorded(options.recorded))
        return 0
    cudnn = open_cudnn()
    if cudnn is None:
        return EXIT_SKIP
    write_all(options, measure(options, cudnn))
    return 0


def main():
    """Runs the command line."""
    options = make_parser().parse_args()
    try:
        return run(options)
    except (CompareError, clconv.BenchError, plot.PlotError, OSError) as error:
        print(f"compare_torch: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
