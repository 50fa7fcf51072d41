"""Which times are held against each other, and which ratios are expected.

A ratio is their time / ours: above 1, libclconv is faster.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses
import math
import typing

from compare import shapes


@dataclasses.dataclass(frozen=True)
class Bar:
    """A class of shapes with what its ratios should reach."""

    label: str
    covers: typing.Callable  # of a shape
    mean: float | None = None
    least: float | None = None


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One column of ours against the fastest of theirs."""

    name: str
    title: str
    theirs: tuple
    ours: str
    peak: str
    bars: tuple
    beside: tuple = ()  # theirs, shown without being judged

    @property
    def columns(self):
        """All that it needs measured."""
        return {*self.theirs, self.ours, *self.beside}

    def ratio(self, row):
        """None where a time is missing."""
        theirs, ours = row.best(self.theirs), row.best([self.ours])
        return theirs / ours if theirs and ours else None


def is_of_kind(kind):
    """Does a shape belong to that class?"""
    return lambda shape: shape.kind == kind


KERNEL_BARS = (
    Bar(shapes.DENSE_3X3, is_of_kind(shapes.DENSE_3X3), 1.2, 0.8),
    Bar(shapes.OTHER_DENSE, is_of_kind(shapes.OTHER_DENSE), 1.0, 0.8),
    Bar(shapes.GROUPED, is_of_kind(shapes.GROUPED), 1.0, 0.8),
)
JOB_BARS = (
    Bar("seed shapes", lambda shape: shape.is_seed, 2.5, 1.8),
    Bar("others", lambda shape: not shape.is_seed, 1.5, 1.1),
) + tuple(Bar(kind, is_of_kind(kind)) for kind in shapes.KINDS)
FP32_BARS = (Bar("all", lambda shape: True, 0.8),) + tuple(
    Bar(kind, is_of_kind(kind)) for kind in shapes.KINDS
)

TORCH_JOBS = ("torch_job_nchw", "torch_job_nhwc")

COMPARISONS = (
    Comparison(
        "kernels",
        "kernels: dW and dX, fp16 X, W and dY, NHWC",
        ("cudnn_fp16_nhwc",),
        "clconv_fp16_nhwc",
        "peak_matrix_flops",
        KERNEL_BARS,
        ("cudnn_bf16_nhwc",),
    ),
    Comparison(
        "job-nchw",
        "job: fp32 to fp32 by fp16, dW, db and dX; ours in "
        "NCHW, theirs in the better layout",
        TORCH_JOBS,
        "clconv_job_nchw",
        "peak_matrix_flops",
        JOB_BARS,
    ),
    Comparison(
        "job-nhwc",
        "job: fp32 to fp32 by fp16, dW, db and dX; ours in "
        "NHWC, theirs in the better layout",
        TORCH_JOBS,
        "clconv_job_nhwc",
        "peak_matrix_flops",
        JOB_BARS,
    ),
    Comparison(
        "fp32",
        "fp32: dW, db and dX, fp32 throughout, NCHW",
        ("cudnn_fp32_nchw",),
        "clconv_fp32_nchw",
        "peak_fma_flops",
        FP32_BARS,
        ("cudnn_tf32_nchw",),
    ),
)


def floor_us(comparison, row, facts):
    """Microseconds that the peaks of this run leave: of the operations, or of
    the tensors' bytes at the speed of a copy. None if not known."""
    moved = row.moved_bytes(comparison.ours)
    flops = facts.get(comparison.peak) or facts.get("peak_fma_flops")
    copy = facts.get("peak_copy_bytes")
    if not moved or not flops or not copy:
        return None
    return 1e6 * max(row.shape.flop / flops, moved / copy)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A bar and what there is to hold against it."""

    bar: Bar
    ratios: dict  # by the shape's name
    missing: list  # names of shapes that we have no time for, but they do
    unjudged: list  # names of shapes that they have no time for

    @property
    def mean(self):
        """The geometric mean."""
        logarithms = [math.log(ratio) for ratio in self.ratios.values()]
        return math.exp(sum(logarithms) / len(logarithms))

    @property
    def least(self):
        """The name of the shape with the smallest ratio."""
        return min(self.ratios, key=self.ratios.get)

    @property
    def is_met(self):
        """None if the bar expects nothing, or nothing was measured."""
        if self.bar.mean is None or not (self.ratios or self.missing):
            return None
        if self.missing or self.mean < self.bar.mean:
            return False
        return self.bar.least is None or self.ratios[self.least] >= self.bar.least


def verdict(comparison, bar, rows):
    """Holds the rows that a bar covers against it."""
    ratios, missing, unjudged = {}, [], []
    for row in rows:
        if not bar.covers(row.shape) or not row.was_tried([comparison.ours]):
            continue
        name, ratio = row.shape.name, comparison.ratio(row)
        if ratio is not None:
            ratios[name] = ratio
        elif row.best(comparison.theirs) is not None:
            missing.append(name)
        else:
            unjudged.append(name)
    return Verdict(bar, ratios, missing, unjudged)
