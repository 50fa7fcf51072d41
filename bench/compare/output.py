"""A result as tables for people, and as CSV.

SPDX-License-Identifier: Apache-2.0
"""

import csv
import dataclasses

from compare import summary

LEGEND = """\
us: of a call; the least of the rounds' medians, theirs of graph replays, ours
of bursts of calls; both rotate tensors past the L2 cache. ratio: their time /
ours. roof: of the time that the peaks above leave, tensors moved once."""


def number(value, form, factor=1.0):
    """A cell; "-" for None."""
    return "-" if value is None else format(factor * value, form)


def microseconds(value):
    """Three digits at least."""
    if value is None:
        return "-"
    return format(value, ".2f" if value < 10 else ".1f" if value < 100 else ".0f")


# ---- Head -------------------------------------------------------------------


def matrix_peak(facts):
    """The number, and the instruction that it was measured with. Results of
    before that was recorded are mma.sync's."""
    instruction = facts.get("matrix_instruction", "mma.sync")
    peak = number(facts["peak_matrix_flops"], ".1f", 1e-12)
    return f"{peak} (by {instruction})" if instruction else peak


def print_facts(result, to):
    """Where, when and with what."""
    facts = result.facts
    print("command ", " ".join(result.command), file=to)
    print("date    ", result.date, file=to)
    print(
        f"device   {facts['platform']} / {facts['device']}, driver {facts['driver']}",
        file=to,
    )
    print(
        f"versions libclconv {facts['version']}, PyTorch {facts['pytorch']}, "
        f"CUDA {facts['cuda']}, cuDNN {facts['cudnn']}",
        file=to,
    )
    print(
        f"peaks    fp32 FMA {number(facts['peak_fma_flops'], '.1f', 1e-12)}, "
        f"matrix unit {matrix_peak(facts)} TFLOP/s, copy {number(facts['peak_copy_bytes'], '.2f', 1e-12)} TB/s "
        "(measured here)",
        file=to,
    )
    if facts["eager_because"]:
        print(
            "passes   of PyTorch's job are eager, which takes longer: "
            f"{facts['eager_because']}",
            file=to,
        )


# ---- Tables -----------------------------------------------------------------


def rate_cells(time, row, floor):
    """Time, rate and share of the roofline, in 9, 8 and 8 columns."""
    flop_us = row.shape.flop / time if time else None
    share = floor / time if floor and time else None
    roof = "-" if share is None else f"{100 * share:.1f} %"
    return f"{microseconds(time):>9}{number(flop_us, '.1f', 1e-6):>8}{roof:>8}"


def beside_cells(comparison, row):
    """Times of what is only shown, and its ratios."""
    cells = ""
    for column in comparison.beside:
        time, ours = row.best([column]), row.best([comparison.ours])
        ratio = time / ours if time and ours else None
        cells += f"{microseconds(time):>17}{number(ratio, '.2f'):>7}"
    return cells


def name_width(rows):
    """Of the column of names."""
    return max(len("problem"), *(len(row.shape.name) for row in rows))


def print_head(comparison, width, to):
    """The title and the names of the columns."""
    beside = "".join(f"{column:>17}  ratio" for column in comparison.beside)
    theirs, ours = " or ".join(comparison.theirs), comparison.ours
    print(f"\n{comparison.title}\n  theirs {theirs}, ours {ours}", file=to)
    group = f"{'us':>9}{'TFLOP/s':>8}{'roof':>8}"
    print(
        f"{'problem':<{width}}{'GFLOP':>9}{group} |{group}{'ratio':>7}{beside}", file=to
    )


def print_row(comparison, row, facts, width, to):
    """Theirs, ours, the ratio, and what is beside."""
    floor = summary.floor_us(comparison, row, facts)
    theirs, ours = row.best(comparison.theirs), row.best([comparison.ours])
    print(
        f"{row.shape.name:<{width}}{1e-9 * row.shape.flop:>9.2f}"
        f"{rate_cells(theirs, row, floor)} |{rate_cells(ours, row, floor)}"
        f"{number(comparison.ratio(row), '.2f'):>7}"
        f"{beside_cells(comparison, row)}",
        file=to,
    )


def print_errors(comparison, rows, to):
    """Why a time is missing."""
    for row in rows:
        for column in sorted(comparison.columns):
            error = row.error(column)
            if error:
                print(f"  {row.shape.name}, {column}: {error}", file=to)


# ---- Bars -------------------------------------------------------------------


def bar_text(bar):
    """What is expected."""
    if bar.mean is None:
        return ""
    least = "" if bar.least is None else f", none below {bar.least}"
    return f"; expected {bar.mean}{least}: "


def print_verdict(verdict, to):
    """A line for a class of shapes that has any."""
    words = {None: "", True: "met", False: "NOT MET"}[verdict.is_met]
    counts = ""
    if verdict.missing:
        counts += f", {len(verdict.missing)} without a time of ours"
    if verdict.unjudged:
        counts += f", {len(verdict.unjudged)} without one of theirs"
    if verdict.ratios:
        mean, least = verdict.mean, verdict.least
        measured = (
            f"geometric mean {mean:.2f} of {len(verdict.ratios)}, least "
            f"{verdict.ratios[least]:.2f} ({least})"
        )
    elif counts:
        measured = "no ratio"
    else:
        return
    expected = bar_text(verdict.bar) if words else ""
    print(f"  {verdict.bar.label:<22}{measured}{counts}{expected}{words}", file=to)


def print_comparison(comparison, result, to):
    """A table with its bars."""
    rows = [row for row in result.rows if row.was_tried([comparison.ours])]
    if not rows:
        return
    width = name_width(rows)
    print_head(comparison, width, to)
    for row in rows:
        print_row(comparison, row, result.facts, width, to)
    print_errors(comparison, rows, to)
    for bar in comparison.bars:
        print_verdict(summary.verdict(comparison, bar, rows), to)


def print_all(result, to):
    """Facts, every comparison with a row, and what the columns mean."""
    print_facts(result, to)
    for comparison in summary.COMPARISONS:
        print_comparison(comparison, result, to)
    print(f"\n{LEGEND}", file=to)


# ---- CSV --------------------------------------------------------------------


def csv_rows(result):
    """A dictionary for each shape and column of a comparison's times."""
    for row in result.rows:
        sizes = dataclasses.asdict(row.shape)
        for column in sorted({column for cells in row.rounds for column in cells}):
            time = row.best([column])
            rounds = [
                cells[column].get("us", "") for cells in row.rounds if column in cells
            ]
            yield {
                **sizes,
                "kind": row.shape.kind,
                "flop": row.shape.flop,
                "column": column,
                "microseconds": "" if time is None else time,
                "rounds": " ".join(map(str, rounds)),
                "error": row.error(column) or "",
                "device": result.facts["device"],
                "driver": result.facts["driver"],
                "date": result.date,
            }


def write_csv(result, to):
    """The times; ratios follow from them."""
    rows = list(csv_rows(result))
    writer = csv.DictWriter(to, rows[0] if rows else ["name"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
