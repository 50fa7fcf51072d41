"""cuDNN's gradients of a convolution through PyTorch, and the whole job around.

Times are medians of replays of a captured graph, so that Python's and
PyTorch's host code costs nothing. A graph walks through sets of tensors that
together exceed twice the L2 cache. cuDNN chooses its algorithm by measuring
(benchmark mode).

A time is a cell: {"us": microseconds of a call} or {"error": why there is
none}.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses
import math
import statistics
import typing

import torch

SCALE = 2.0**10
LIMIT = 65504.0 / SCALE

DY_SIZE = 1e-3  # as clconv-bench has it
REPLAYS = 9
CALLS_LEAST = 8  # in a graph
SETS_MOST = 64

NCHW, NHWC = torch.contiguous_format, torch.channels_last


# ---- The passes around cuDNN ------------------------------------------------


def cast_scaled(t):
    """fp32 to fp16: clipped, then scaled, so that nothing becomes infinite."""
    return (t.clamp(-LIMIT, LIMIT) * SCALE).half()


def cast(t):
    """fp32 to fp16."""
    return t.half()


def true_units(t):
    """A scaled fp16 gradient to fp32."""
    return t.float() * (1.0 / SCALE)


@dataclasses.dataclass(frozen=True)
class Passes:
    """Each reads and writes a tensor once where torch.compile works."""

    cast_scaled: typing.Callable
    cast: typing.Callable
    true_units: typing.Callable
    eager_because: str  # "": they are compiled


def allow_recompiling():
    """Each layout and size of 1 is a case; past a limit that is meant for
    accidents PyTorch would fall back to eager passes without a word."""
    config = torch._dynamo.config
    for name in ("recompile_limit", "cache_size_limit"):
        if hasattr(config, name):
            setattr(config, name, 256)


def make_passes():
    """Compiled passes, else eager ones, which take longer."""
    functions = (cast_scaled, cast, true_units)
    try:
        allow_recompiling()
        compiled = [torch.compile(f, dynamic=True) for f in functions]
        compiled[0](torch.ones(8, 8, 8, 8, device="cuda"))
    except Exception as error:  # noqa: BLE001, whatever the compiler lacks
        return Passes(*functions, eager_because=first_line(error))
    return Passes(*compiled, eager_because="")


def first_line(error):
    """An exception for a table."""
    return f"{type(error).__name__}: " + str(error).partition("\n")[0]


# ---- Calls ------------------------------------------------------------------


def gradients(shape, dy, x, w):
    """dX and dW."""
    dx, dw, _ = torch.ops.aten.convolution_backward(
        dy,
        x,
        w,
        None,
        [shape.stride_h, shape.stride_w],
        [shape.pad_top, shape.pad_left],
        [shape.dilation_h, shape.dilation_w],
        False,
        [0, 0],
        shape.groups,
        [True, True, False],
    )
    return dx, dw


def bias_gradient(dy):
    """db."""
    return dy.sum((0, 2, 3))


def kernels(_, shape, dy, x, w):
    """The two gradients alone, in the operands' type."""
    return gradients(shape, dy, x, w)


def mixed_job(passes, shape, dy, x, w):
    """From fp32 to fp32 in true units, with fp16 between."""
    operands = passes.cast_scaled(dy), passes.cast(x), passes.cast(w)
    dx, dw = gradients(shape, *operands)
    return passes.true_units(dx), passes.true_units(dw), bias_gradient(dy)


def fp32_job(_, shape, dy, x, w):
    """All in fp32."""
    return *gradients(shape, dy, x, w), bias_gradient(dy)


@dataclasses.dataclass(frozen=True)
class Column:
    """What is called, on tensors of which layout and type."""

    call: typing.Callable
    layout: torch.memory_format
    dtype: torch.dtype = torch.float32
    dy_size: float = DY_SIZE
    tf32: bool = False


COLUMNS = {
    "cudnn_fp16_nhwc": Column(kernels, NHWC, torch.float16, DY_SIZE * SCALE),
    "cudnn_bf16_nhwc": Column(kernels, NHWC, torch.bfloat16),
    "torch_job_nchw": Column(mixed_job, NCHW),
    "torch_job_nhwc": Column(mixed_job, NHWC),
    "cudnn_fp32_nchw": Column(fp32_job, NCHW),
    "cudnn_tf32_nchw": Column(fp32_job, NCHW, tf32=True),
}


# ---- Tensors ----------------------------------------------------------------


def tensor(column, size, *dims):
    """Normal random values times size."""
    values = size * torch.randn(*dims, device="cuda")
    return values.to(dtype=column.dtype, memory_format=column.layout)


def set_of_tensors(shape, column):
    """dY, X and W."""
    return (
        tensor(column, column.dy_size, shape.N, shape.K, shape.P, shape.Q),
        tensor(column, 1.0, shape.N, shape.C, shape.H, shape.W),
        tensor(column, 1.0, shape.K, shape.C // shape.groups, shape.R, shape.S),
    )


def count_sets(shape, column):
    """As many as exceed twice the L2 cache by what a call reads and writes."""
    x = shape.N * shape.C * shape.H * shape.W
    dy = shape.N * shape.K * shape.P * shape.Q
    moved = column.dtype.itemsize * (2 * x + dy)
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    return min(SETS_MOST, max(2, math.ceil(2 * cache / moved)))


# ---- Timing -----------------------------------------------------------------


def capture(calls):
    """A graph of all calls, after the first ones have chosen algorithms and
    compiled passes."""
    for call in calls[:4] * 2:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def replay_us(graph):
    """Microseconds of one replay."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return 1e3 * begin.elapsed_time(end)


def median_us(calls):
    """Microseconds of a call."""
    calls = calls * math.ceil(CALLS_LEAST / len(calls))
    graph = capture(calls)
    return statistics.median(replay_us(graph) for _ in range(REPLAYS)) / len(calls)


class Cudnn:
    """The timer. Raises RuntimeError where there is no GPU."""

    def __init__(self):
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch finds no CUDA device")
        torch.backends.cudnn.benchmark = True
        self.passes = make_passes()

    def facts(self):
        """GPU and versions."""
        return {
            "gpu": torch.cuda.get_device_name(0),
            "pytorch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "eager_because": self.passes.eager_because,
        }

    def measure(self, shape, wanted):
        """A cell for each wanted column that is PyTorch's."""
        cells = {
            name: self._measure_column(shape, column)
            for name, column in COLUMNS.items()
            if name in wanted
        }
        torch.cuda.empty_cache()  # clconv-bench needs the memory next
        return cells

    def _measure_column(self, shape, column):
        if (shape.pad_top, shape.pad_left) != (shape.pad_bottom, shape.pad_right):
            return {"error": "PyTorch's padding is the same on both sides"}
        torch.backends.cudnn.allow_tf32 = column.tf32
        try:
            return {"us": median_us(self._calls(shape, column))}
        except Exception as error:  # noqa: BLE001, it is a row, not the end
            return {"error": first_line(error)}

    def _calls(self, shape, column):
        def bind(tensors):
            return lambda: column.call(self.passes, shape, *tensors)

        return [
            bind(set_of_tensors(shape, column))
            for _ in range(count_sets(shape, column))
        ]
