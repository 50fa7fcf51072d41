"""bench/compare_torch.py without a device: its options, what it makes of
clconv-bench's output, ratios and tables. Needs bench/ in PYTHONPATH and
clconv-bench in CLCONV_BENCH.

SPDX-License-Identifier: Apache-2.0
"""

import csv
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from compare import clconv, output, plot, result, shapes, summary

SCRIPT = pathlib.Path(__file__).parents[2] / "bench" / "compare_torch.py"
KERNELS = summary.COMPARISONS[0]

FACTS = {
    "version": "0.1.0",
    "platform": "NVIDIA CUDA",
    "device": "GPU",
    "driver": "1.2",
    "peak_fma_flops": 60e12,
    "peak_matrix_flops": 600e12,
    "matrix_instruction": "wgmma",
    "peak_copy_bytes": 4e12,
    "gpu": "GPU",
    "pytorch": "2.0",
    "cuda": "13",
    "cudnn": 9,
    "eager_because": "",
}


def shape(name="dense", **changes):
    """8 images of 16 channels, 10 x 9, with a 3x3 filter and padding 1."""
    sizes = {
        "N": 8,
        "C": 16,
        "H": 10,
        "W": 9,
        "K": 32,
        "R": 3,
        "S": 3,
        "stride_h": 1,
        "stride_w": 1,
        "pad_top": 1,
        "pad_bottom": 1,
        "pad_left": 1,
        "pad_right": 1,
        "dilation_h": 1,
        "dilation_w": 1,
        "groups": 1,
    }
    return shapes.Shape(name=name, **{**sizes, **changes})


def kernel_row(name, theirs, ours):
    """A row of the first comparison: microseconds, or an error, a round."""

    def cell(value):
        return (
            {"error": value} if isinstance(value, str) else {"us": value, "bytes": 4e6}
        )

    return result.Row(
        shape(name),
        [
            {"cudnn_fp16_nhwc": cell(their), "clconv_fp16_nhwc": cell(our)}
            for their, our in zip(theirs, ours, strict=True)
        ],
    )


def recorded(rows):
    """A result with these rows."""
    return result.Result(["compare_torch.py"], "2026-01-01", dict(FACTS), rows)


class Shapes(unittest.TestCase):
    def test_sizes_of_dy_and_operations(self):
        strided = shape(H=11, stride_h=2, dilation_w=2, groups=4)
        self.assertEqual((strided.P, strided.Q), (6, 7))
        self.assertEqual(strided.flop, 4 * 8 * 32 * 6 * 7 * 4 * 9)

    def test_kinds(self):
        self.assertEqual(shape().kind, shapes.DENSE_3X3)
        for other in ({"R": 1}, {"stride_w": 2}, {"dilation_h": 2}):
            self.assertEqual(shape(**other).kind, shapes.OTHER_DENSE, other)
        self.assertEqual(shape(groups=2).kind, shapes.GROUPED)

    def test_csv_is_read_as_it_is_written(self):
        self.assertEqual(shapes.parse_csv(shape().as_csv()), [shape()])

    def test_clconv_bench_lists_them(self):
        bench = clconv.Bench(os.environ["CLCONV_BENCH"], "none", 1)
        listed = bench.list_shapes(["--set=gpu"])
        self.assertEqual(listed[0].name, "seed1_32")
        self.assertEqual(listed[0].flop, 905969664)
        with self.assertRaisesRegex(clconv.BenchError, "no such set"):
            bench.list_shapes(["--set=none"])


class Cells(unittest.TestCase):
    def test_of_a_json_result(self):
        times = [
            {
                "contender": "mixed",
                "status": "timed",
                "why": None,
                "variant": "a;b",
                "microseconds": 5.5,
                "bytes": 100,
            },
            {
                "contender": "fp32",
                "status": "FAILED",
                "why": "no memory",
                "variant": None,
                "microseconds": None,
                "bytes": 100,
            },
        ]
        cells = clconv.cells_of(
            {"problems": [{"times": times}]}, {"mixed": "a", "fp32": "b"}
        )
        self.assertEqual(
            cells,
            {
                "a": {"us": 5.5, "bytes": 100, "plan": "a;b"},
                "b": {"error": "FAILED: no memory"},
            },
        )

    def test_a_program_that_is_not_there_is_an_error_in_each_cell(self):
        bench = clconv.Bench("/nonexistent/clconv-bench", "none", 1)
        cells = bench.measure(shape(), {"clconv_fp16_nhwc", "clconv_fp32_nchw"})
        self.assertEqual(set(cells), {"clconv_fp16_nhwc", "clconv_fp32_nchw"})
        for cell in cells.values():
            self.assertIn("No such file", cell["error"])


class Verdicts(unittest.TestCase):
    BAR = summary.Bar("all", lambda _: True, mean=1.2, least=0.8)

    def judge(self, *rows):
        return summary.verdict(KERNELS, self.BAR, rows)

    def test_the_least_of_the_rounds_counts(self):
        row = kernel_row("a", [8.0, 6.0], ["failed", 3.0])
        self.assertEqual(KERNELS.ratio(row), 2.0)
        self.assertIsNone(row.error("clconv_fp16_nhwc"))

    def test_means_are_geometric(self):
        verdict = self.judge(
            kernel_row("a", [8.0], [2.0]), kernel_row("b", [1.0], [1.0])
        )
        self.assertTrue(math.isclose(verdict.mean, 2.0))
        self.assertEqual(verdict.least, "b")
        self.assertIs(verdict.is_met, True)

    def test_a_low_mean_or_a_low_ratio_is_not_met(self):
        low_mean = self.judge(kernel_row("a", [1.1], [1.0]))
        low_ratio = self.judge(
            kernel_row("a", [9.0], [1.0]), kernel_row("b", [0.7], [1.0])
        )
        self.assertIs(low_mean.is_met, False)
        self.assertIs(low_ratio.is_met, False)

    def test_a_failure_of_ours_is_not_met_and_one_of_theirs_is_left_out(self):
        good = kernel_row("a", [9.0], [1.0])
        ours = self.judge(good, kernel_row("b", [9.0], ["broken"]))
        theirs = self.judge(good, kernel_row("b", ["broken"], [1.0]))
        self.assertIs(ours.is_met, False)
        self.assertEqual(ours.missing, ["b"])
        self.assertIs(theirs.is_met, True)
        self.assertEqual(theirs.unjudged, ["b"])
        self.assertIsNone(self.judge().is_met)

    def test_the_job_is_held_against_the_faster_layout(self):
        cells = {
            "torch_job_nchw": {"us": 30.0},
            "torch_job_nhwc": {"us": 20.0},
            "clconv_job_nchw": {"us": 10.0, "bytes": 1},
        }
        row = result.Row(shape(), [cells])
        self.assertEqual(summary.COMPARISONS[1].ratio(row), 2.0)

    def test_the_floor_is_the_slower_of_operations_and_bytes(self):
        row = kernel_row("a", [8.0], [2.0])
        self.assertAlmostEqual(summary.floor_us(KERNELS, row, FACTS), 1.0)
        slow = {**FACTS, "peak_matrix_flops": 1e12}
        self.assertAlmostEqual(
            summary.floor_us(KERNELS, row, slow), row.shape.flop / 1e6
        )
        self.assertIsNone(summary.floor_us(KERNELS, row, {}))


class Output(unittest.TestCase):
    ROWS = (kernel_row("fast", [8.0], [2.0]), kernel_row("gone", [9.0], ["why not"]))

    def test_the_matrix_unit_s_peak_names_its_instruction(self):
        none = {**FACTS, "matrix_instruction": None, "peak_matrix_flops": 0}
        older = {key: FACTS[key] for key in FACTS if key != "matrix_instruction"}
        self.assertEqual(output.matrix_peak(FACTS), "600.0 (by wgmma)")
        self.assertEqual(output.matrix_peak(none), "0.0")
        self.assertEqual(output.matrix_peak(older), "600.0 (by mma.sync)")
        to = io.StringIO()
        output.print_all(recorded(list(self.ROWS)), to)
        self.assertIn("matrix unit 600.0 (by wgmma) TFLOP/s,", to.getvalue())

    def test_table_has_rows_errors_and_bars(self):
        to = io.StringIO()
        output.print_all(recorded(list(self.ROWS)), to)
        table = to.getvalue()
        self.assertRegex(table, r"\nfast .* 50\.0 % +4\.00 ")
        self.assertIn("\n  gone, clconv_fp16_nhwc: why not\n", table)
        self.assertIn(
            "1 without a time of ours; expected 1.2, none below 0.8: NOT MET", table
        )
        self.assertNotIn("fp32 throughout", table)

    def test_csv_has_a_row_for_each_time(self):
        to = io.StringIO(newline="")
        output.write_csv(recorded(list(self.ROWS)), to)
        rows = list(csv.DictReader(to.getvalue().splitlines()))
        self.assertEqual(len(rows), 4)
        self.assertEqual(rows[0]["microseconds"], "2.0")
        self.assertEqual(rows[2]["error"], "why not")

    def test_results_are_read_as_they_are_written_and_joined(self):
        data = json.loads(json.dumps(recorded([self.ROWS[0]]).as_json()))
        other = recorded([kernel_row("fast", [6.0], [3.0]), self.ROWS[1]])
        whole = result.joined([result.from_json(data), other])
        self.assertEqual([row.shape.name for row in whole.rows], ["fast", "gone"])
        self.assertEqual(whole.rows[0].best(["cudnn_fp16_nhwc"]), 6.0)


class Plot(unittest.TestCase):
    def test_the_script_has_ratios_names_and_titles(self):
        script = plot.script(recorded(list(Output.ROWS)), "it's.svg")
        self.assertIn("set output 'it''s.svg'\n", script)
        self.assertIn("$data << END\n0 NaN\n1 4\nEND\n", script)
        self.assertIn("('gone' 0, 'fast' 1)", script)
        self.assertIn("title 'kernels'", script)

    def test_nothing_to_draw_is_an_error(self):
        with self.assertRaises(plot.PlotError):
            plot.draw(recorded([Output.ROWS[1]]), "none.svg")


class Program(unittest.TestCase):
    def run_script(self, *arguments, **environment):
        return subprocess.run(
            [sys.executable, SCRIPT, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environment},
        )

    def test_without_pytorch_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "torch.py").write_text("raise ImportError('none')")
            run = self.run_script(PYTHONPATH=folder)
        self.assertEqual(run.returncode, 77, run.stderr)
        self.assertIn("a CUDA build of PyTorch", run.stderr)
        self.assertIn("--from", run.stderr)

    def test_wrong_options_are_refused(self):
        for wrong, words in (
            (["--only=all"], "there are kernels, job-nchw,"),
            (["--rounds=0"], "must be above 0"),
            (["--seconds=x"], "--seconds"),
        ):
            run = self.run_script(*wrong)
            self.assertEqual(run.returncode, 2, wrong)
            self.assertIn(words, run.stderr)

    def test_a_recorded_result_is_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "a.json")
            file.write_text(json.dumps(recorded([Output.ROWS[0]]).as_json()))
            run = self.run_script(f"--from={file}")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("kernels: dW and dX", run.stdout)
            run = self.run_script(f"--from={file}", "--plot=a.svg", PATH=folder)
            self.assertEqual(run.returncode, 1)
            self.assertIn("gnuplot-nox", run.stderr)
            file.write_text('{"problems": []}')
            run = self.run_script(f"--from={file}")
            self.assertEqual(run.returncode, 1)
            self.assertIn("no result of this program", run.stderr)


if __name__ == "__main__":
    unittest.main()
