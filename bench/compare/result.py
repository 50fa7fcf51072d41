"""What a run measured, as it stands in its JSON file.

    {"command": [...], "date": "...", "facts": {...},
     "shapes": [{"sizes": {"name": "seed1_32", "N": 256, ...},
                 "rounds": [{COLUMN: CELL, ...}, ...]}, ...]}

A cell has "us", microseconds of a call, the median of one round, or "error".

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses

from compare import shapes


@dataclasses.dataclass
class Row:
    """A shape and its cells, one dictionary by column a round."""

    shape: shapes.Shape
    rounds: list

    def _cells(self, column):
        return [cells[column] for cells in self.rounds if column in cells]

    def best(self, columns):
        """The time of the fastest of some columns: the least of its rounds'
        medians, in microseconds. None if none has a time."""
        times = [
            cell["us"]
            for column in columns
            for cell in self._cells(column)
            if "us" in cell
        ]
        return min(times, default=None)

    def moved_bytes(self, column):
        """Bytes of the tensors of a call; None if not known."""
        known = [cell["bytes"] for cell in self._cells(column) if "bytes" in cell]
        return known[0] if known else None

    def error(self, column):
        """Why no round has a time; None if one has."""
        cells = self._cells(column)
        if not cells or self.best([column]) is not None:
            return None
        return cells[0]["error"]

    def was_tried(self, columns):
        """Is there a time of one of them, or an error?"""
        return any(self._cells(column) for column in columns)


@dataclasses.dataclass
class Result:
    """A whole run."""

    command: list
    date: str
    facts: dict
    rows: list

    def row_of(self, shape):
        """The row of a shape, a new one if there is none."""
        for row in self.rows:
            if row.shape == shape:
                return row
        self.rows.append(Row(shape, []))
        return self.rows[-1]

    def as_json(self):
        """What from_json() takes."""
        listed = [
            {"sizes": dataclasses.asdict(row.shape), "rounds": row.rounds}
            for row in self.rows
        ]
        return {
            "command": self.command,
            "date": self.date,
            "facts": self.facts,
            "shapes": listed,
        }


def from_json(data):
    """A recorded result."""
    rows = [
        Row(shapes.from_fields(entry["sizes"]), entry["rounds"])
        for entry in data["shapes"]
    ]
    return Result(data["command"], data["date"], data["facts"], rows)


def joined(results):
    """Several runs as one with the facts of the first; rounds of the same
    shape come together."""
    whole, *others = results
    for other in others:
        for row in other.rows:
            whole.row_of(row.shape).rounds.extend(row.rounds)
    return whole
