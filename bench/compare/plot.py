"""The ratios as a picture, drawn by gnuplot, which reads its script from a pipe.

SPDX-License-Identifier: Apache-2.0
"""

import shutil
import subprocess

from compare import summary

# Pixels.
WIDTH, LINE_HEIGHT, FRAME_HEIGHT = 900, 22, 110

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


class PlotError(Exception):
    """Ends the run with a sentence."""


def require_gnuplot():
    """Before anything is measured."""
    if shutil.which("gnuplot") is None:
        raise PlotError(
            "--plot needs gnuplot, which is not installed: Debian package gnuplot-nox"
        )


def quoted(text):
    """In gnuplot's single quotes only the quote itself is special."""
    return "'" + text.replace("'", "''") + "'"


def drawn(result):
    """The comparisons with a ratio."""
    return [
        comparison
        for comparison in summary.COMPARISONS
        if any(comparison.ratio(row) for row in result.rows)
    ]


def data(result, comparisons):
    """Place of the line, the first at the top, then a ratio each comparison."""
    for place, row in enumerate(reversed(result.rows)):
        ratios = [comparison.ratio(row) for comparison in comparisons]
        yield " ".join([str(place), *(f"{r:.6g}" if r else "NaN" for r in ratios)])


def names(result):
    """The ticks of the lines."""
    return ", ".join(
        f"{quoted(row.shape.name)} {place}"
        for place, row in enumerate(reversed(result.rows))
    )


def script(result, path):
    """What gnuplot is told."""
    comparisons = drawn(result)
    rows = len(result.rows)
    points = ", ".join(
        f"$data using {column}:1 with points pt 7 ps 0.9 lc rgb '{colour}' "
        f"title {quoted(comparison.name)} noenhanced"
        for column, (comparison, colour) in enumerate(
            zip(comparisons, COLOURS, strict=False), 2
        )
    )
    return "\n".join(
        [
            f"set terminal svg size {WIDTH},{FRAME_HEIGHT + LINE_HEIGHT * rows} "
            "font 'sans,13' background rgb 'white'",
            f"set output {quoted(path)}",
            f"set title {quoted(result.facts['device'])} noenhanced",
            "set grid x y lc rgb '#cccccc'",
            "set arrow from 1, graph 0 to 1, graph 1 nohead lw 2 lc rgb '#555555'",
            "set key outside right top",
            "$data << END",
            *data(result, comparisons),
            "END",
            f"set yrange [-0.7:{rows - 1}.7]",
            f"set ytics noenhanced ({names(result)})",
            "set logscale x",
            "set xrange [0.4:*]",
            "set xtics (0.1, 0.2, 0.5, 0.8, 1, 1.2, 1.5, 2, 3, 4, 6, 10, 20)",
            "set xlabel 'time of cuDNN / time of libclconv (above 1: libclconv is "
            "faster)' noenhanced",
            f"plot {points}",
            "",
        ]
    )


def draw(result, path):
    """Writes the picture."""
    if not drawn(result):
        raise PlotError("--plot: there is no ratio to draw")
    told = script(result, path)
    if subprocess.run(["gnuplot"], input=told, text=True, check=False).returncode:
        raise PlotError(f"--plot {path}: gnuplot failed")
