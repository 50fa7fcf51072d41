"""libclconv's times, by running clconv-bench.

A time is a cell: {"us": microseconds of a call, "bytes": of its tensors,
"plan": the kernels}, or {"error": why there is none}.

SPDX-License-Identifier: Apache-2.0
"""

import json
import pathlib
import subprocess
import tempfile

from compare import shapes

# One run of clconv-bench: its options, and which contender is which column.
RUNS = (
    (("--layout=nhwc", "--ops=dw,dx"), {"fp16": "clconv_fp16_nhwc"}),
    (("--layout=nchw",), {"mixed": "clconv_job_nchw", "fp32": "clconv_fp32_nchw"}),
    (("--layout=nhwc",), {"mixed": "clconv_job_nhwc"}),
)

FACTS = (
    "version",
    "platform",
    "device",
    "driver",
    "peak_fma_flops",
    "peak_matrix_flops",
    "matrix_instruction",
    "peak_copy_bytes",
)

# The smallest problem: the run is for the peaks.
TINY = "n1c1h1w1k1r1s1"


class BenchError(Exception):
    """clconv-bench gave no result; says why."""


def cells_of(result, columns):
    """The cells of a JSON result with one problem, by column name."""
    times = {entry["contender"]: entry for entry in result["problems"][0]["times"]}
    return {column: cell_of(times[name]) for name, column in columns.items()}


def cell_of(entry):
    """The cell of one contender."""
    if entry["status"] != "timed":
        return {"error": f"{entry['status']}: {entry['why']}"}
    return {
        "us": entry["microseconds"],
        "bytes": entry["bytes"],
        "plan": entry["variant"],
    }


class Bench:
    """The program with the options that all of its runs share."""

    def __init__(self, program, device, seconds, timeout=300):
        self.program = program
        self.options = ["--device", device, "--seconds", str(seconds)]
        self.timeout = timeout

    def list_shapes(self, selection):
        """The shapes of --set, --file and problem strings."""
        return shapes.parse_csv(self._run(["--list", *selection]).stdout)

    def measure_facts(self):
        """Device, driver, version and the device's peaks."""
        result = self._result(["--only=fp32", "--repeats=1", TINY])
        return {key: result[key] for key in FACTS}

    def measure(self, shape, wanted):
        """A cell for each wanted column that is the library's."""
        cells = {}
        for options, columns in RUNS:
            columns = {
                name: column for name, column in columns.items() if column in wanted
            }
            if columns:
                cells.update(self._measure_run(shape, options, columns))
        return cells

    def _measure_run(self, shape, options, columns):
        only = "--only=" + ",".join(columns)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "shape.csv")
            file.write_text(shape.as_csv())
            try:
                result = self._result([*options, only, "--no-peaks", f"--file={file}"])
                return cells_of(result, columns)
            except BenchError as error:
                return {column: {"error": str(error)} for column in columns.values()}

    def _result(self, arguments):
        """The JSON of a run. A contender that failed is a part of it."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "result.json")
            run = self._run(
                [*self.options, *arguments, f"--json={file}"], statuses=(0, 1)
            )
            result = json.loads(file.read_text()) if file.exists() else {}
        if not result.get("problems"):
            raise BenchError(last_line(run.stderr))
        return result

    def _run(self, arguments, statuses=(0,)):
        command = [self.program, *arguments]
        try:
            run = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=self.timeout,
                check=False,
            )
        except OSError as error:
            raise BenchError(f"{self.program}: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            message = f"clconv-bench took more than {self.timeout} s"
            raise BenchError(message) from error
        if run.returncode not in statuses:
            raise BenchError(
                last_line(run.stderr)
                or f"clconv-bench ended with status {run.returncode}"
            )
        return run


def last_line(text):
    """What a program said last."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
