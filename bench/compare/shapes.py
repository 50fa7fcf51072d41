"""Convolutions, as `clconv-bench --list` prints them.

SPDX-License-Identifier: Apache-2.0
"""

import csv
import dataclasses

DENSE_3X3 = "dense 3x3 stride 1"
OTHER_DENSE = "other dense"
GROUPED = "grouped and depthwise"
KINDS = (DENSE_3X3, OTHER_DENSE, GROUPED)


@dataclasses.dataclass(frozen=True)
class Shape:
    """A convolution's name and sizes, the letters as clconv.h has them."""

    name: str
    N: int
    C: int
    H: int
    W: int
    K: int
    R: int
    S: int
    stride_h: int
    stride_w: int
    pad_top: int
    pad_bottom: int
    pad_left: int
    pad_right: int
    dilation_h: int
    dilation_w: int
    groups: int

    @property
    def P(self):
        """Height of dY."""
        padded = self.H + self.pad_top + self.pad_bottom
        return (padded - self.dilation_h * (self.R - 1) - 1) // self.stride_h + 1

    @property
    def Q(self):
        """Width of dY."""
        padded = self.W + self.pad_left + self.pad_right
        return (padded - self.dilation_w * (self.S - 1) - 1) // self.stride_w + 1

    @property
    def flop(self):
        """Operations of dW and dX together, two for each product."""
        products = self.N * self.K * self.P * self.Q
        return 4 * products * (self.C // self.groups) * self.R * self.S

    @property
    def kind(self):
        """The class whose geometric mean its ratios enter. A dilated filter
        is another dense one: few kernels are written for it."""
        if self.groups > 1:
            return GROUPED
        filter_and_steps = (
            self.R,
            self.S,
            self.stride_h,
            self.stride_w,
            self.dilation_h,
            self.dilation_w,
        )
        return DENSE_3X3 if filter_and_steps == (3, 3, 1, 1, 1, 1) else OTHER_DENSE

    @property
    def is_seed(self):
        """Is it a layer of the small network that the project began with?"""
        return self.name.startswith("seed")

    def as_csv(self):
        """A text for `clconv-bench --file`."""
        fields = dataclasses.asdict(self)
        return ",".join(fields) + "\n" + ",".join(map(str, fields.values())) + "\n"


def from_fields(fields):
    """A shape from texts or numbers by the names of its fields."""
    sizes = {key: int(value) for key, value in fields.items() if key != "name"}
    return Shape(name=fields["name"], **sizes)


def parse_csv(text):
    """The shapes of a listing, in its order."""
    return [from_fields(row) for row in csv.DictReader(text.splitlines())]
