"""What bench/compare_torch.py gets from clconv-bench on a device. Needs
bench/ in PYTHONPATH and clconv-bench in CLCONV_BENCH. No test of a time.

SPDX-License-Identifier: Apache-2.0
"""

import os
import sys
import unittest

from compare import clconv

EXIT_SKIP = 77


class Clconv(unittest.TestCase):
    bench = clconv.Bench(os.environ["CLCONV_BENCH"], "", 0.001)

    def test_every_column_has_a_time(self):
        wanted = {name for _, run in clconv.RUNS for name in run.values()}
        (shape,) = self.bench.list_shapes(["n1c8h6w5k16r3s3p1"])
        cells = self.bench.measure(shape, wanted)
        self.assertEqual(set(cells), wanted)
        for name, cell in cells.items():
            self.assertGreater(cell.get("us", 0), 0, f"{name}: {cell}")
            self.assertIn("bwd_data", cell["plan"])
        x, w, dy, db = 8 * 6 * 5, 16 * 8 * 9, 16 * 6 * 5, 16
        self.assertEqual(
            cells["clconv_fp16_nhwc"]["bytes"], 2 * (2 * x + w + dy) + 4 * w
        )
        self.assertEqual(
            cells["clconv_job_nchw"]["bytes"], 4 * (2 * x + 2 * w + dy + db)
        )

    def test_facts_have_peaks(self):
        facts = self.bench.measure_facts()
        self.assertEqual(set(facts), set(clconv.FACTS))
        self.assertGreater(facts["peak_copy_bytes"], 0)

    def test_a_shape_that_does_not_fit_is_an_error_in_its_cell(self):
        (shape,) = self.bench.list_shapes(["n1c8h6w5k16r3s3p1"])
        faulty = type(shape)(**{**vars(shape), "groups": 3})
        cells = self.bench.measure(faulty, {"clconv_job_nhwc"})
        self.assertIn("groups", cells["clconv_job_nhwc"]["error"])


def has_device():
    """Any at all: clconv-bench ends with 77 where there is none."""
    try:
        Clconv.bench.measure_facts()
    except clconv.BenchError as error:
        return "no OpenCL device" not in str(error)
    return True


if __name__ == "__main__":
    if not has_device():
        sys.exit(EXIT_SKIP)
    unittest.main()
