"""An exact and an approximate answer, counted once: the measures that need no distance.

Everything here follows from three numbers: the rows of each answer, and those they have in common,
each row as often as it is in both. Rows are equal when all their values are; null equals null, NaN
equals NaN, and 0.0 equals -0.0. Counting is one grouping of all rows: O(rows) in time and memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.errors import SchemaError
from penstock.lab.measures.answers import AnswerTables, paired

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """Two answers, E and A, as bags of rows.

    exact, approximate: the rows of each, |E| and |A|. matching: those in common, |E ∩ A|.
    columns: those that were compared; None for sequences of rows.
    """

    exact: int
    approximate: int
    matching: int
    columns: tuple[str, ...] | None = None

    @property
    def missing(self) -> int:
        """Rows of the exact answer that did not come out: |E - A|."""
        return self.exact - self.matching

    @property
    def extra(self) -> int:
        """Rows that came out and are not in the exact answer: |A - E|."""
        return self.approximate - self.matching

    @property
    def symmetric_difference(self) -> int:
        """|E - A| + |A - E|."""
        return self.missing + self.extra

    @property
    def max_subset(self) -> float | None:
        """The recall, where the approximate answer is a part of the exact one; else None."""
        return None if self.extra else self.recall

    @property
    def recall(self) -> float:
        """|E ∩ A| / |E|; 1 when nothing was due."""
        return self.matching / self.exact if self.exact else 1.0

    @property
    def precision(self) -> float:
        """|E ∩ A| / |A|; 1 when nothing came out."""
        return self.matching / self.approximate if self.approximate else 1.0

    @property
    def dice(self) -> float:
        """2 |E ∩ A| / (|E| + |A|); 1 when both are empty."""
        rows = self.exact + self.approximate
        return 2 * self.matching / rows if rows else 1.0

    @property
    def jaccard(self) -> float:
        """|E ∩ A| / (|E| + |A| - |E ∩ A|); 1 when both are empty."""
        rows = self.exact + self.approximate - self.matching
        return self.matching / rows if rows else 1.0

    @property
    def cosine(self) -> float:
        """|E ∩ A| / √(|E| |A|); 1 when both are empty, 0 when one is."""
        if not self.exact or not self.approximate:
            return 1.0 if self.exact == self.approximate else 0.0
        return self.matching / sqrt(self.exact * self.approximate)

    @property
    def overlap(self) -> float:
        """|E ∩ A| / min(|E|, |A|); 1 when one is empty, for it is then a part of the other."""
        rows = min(self.exact, self.approximate)
        return self.matching / rows if rows else 1.0

    def __str__(self) -> str:
        part = "no subset" if self.max_subset is None else f"{self.max_subset:.4f}"
        lines = [
            ("exact rows", f"{self.exact:,}"),
            ("approximate rows", f"{self.approximate:,}"),
            ("matching", f"{self.matching:,}"),
            ("missing", f"{self.missing:,}"),
            ("extra", f"{self.extra:,}"),
            ("MAX-subset", part),
            ("recall", f"{self.recall:.4f}"),
            ("precision", f"{self.precision:.4f}"),
            ("Dice", f"{self.dice:.4f}"),
            ("Jaccard", f"{self.jaccard:.4f}"),
            ("cosine", f"{self.cosine:.4f}"),
            ("overlap", f"{self.overlap:.4f}"),
        ]
        wide = max(len(value) for _, value in lines)
        by = [] if self.columns is None else [f"compared by {', '.join(self.columns)}"]
        return "\n".join(by + [f"{name:<16}  {value:>{wide}}" for name, value in lines])


def compare(exact: Any, approximate: Any, *, columns: Sequence[str] | None = None) -> Comparison:
    """All measures of an approximate answer that need no distance between rows.

    exact, approximate: pyarrow tables, anything else with `__arrow_c_stream__`, or sequences of
        rows that can be hashed; both of the same form.
    columns: of tables, those that make up a row; as it is, all that both have.
    """
    answers = paired(exact, approximate, columns)
    if isinstance(answers, AnswerTables):
        shared = _shared_of_tables(answers)
        names = tuple(answers.exact.column_names)
        return Comparison(len(answers.exact), len(answers.approximate), shared, names)
    counts = [Counter(map(_comparable_row, rows)) for rows in answers]
    shared = (counts[0] & counts[1]).total()
    return Comparison(len(answers.exact), len(answers.approximate), shared)


def _shared_of_tables(answers: AnswerTables) -> int:
    """|E ∩ A|: of each distinct row, as many as there are in both."""
    for field in answers.exact.schema:
        if pt.is_nested(field.type):
            raise SchemaError(
                f"column {field.name!r} is {field.type}, and nested values cannot be grouped; "
                "name the other columns in columns="
            )
    keys = [str(number) for number in range(answers.exact.num_columns)]
    sides = []
    for side, table in enumerate(answers):
        columns = [_comparable(column) for column in table.columns]
        counts = [pa.array(np.full(len(table), side == each, np.int64)) for each in (0, 1)]
        sides.append(pa.table([*columns, *counts], [*keys, "exact", "approximate"]))
    grouped = (
        pa.concat_tables(sides).group_by(keys).aggregate([("exact", "sum"), ("approximate", "sum")])
    )
    return int(
        np.minimum(grouped["exact_sum"].to_numpy(), grouped["approximate_sum"].to_numpy()).sum()
    )


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """With one zero and one NaN, for Arrow groups floats by their bits."""
    if not pt.is_floating(column.type):
        return column
    if column.type.bit_width == 16:  # Arrow does not calculate with these
        column = column.cast(pa.float32())
    one_nan, zero = (pa.scalar(each, column.type) for each in (nan, 0.0))
    return pc.if_else(pc.is_nan(column), one_nan, pc.add(column, zero))


def _comparable_row(row: Hashable) -> Hashable:
    """With one NaN object, which a dictionary takes for equal to itself."""
    if isinstance(row, tuple):
        return tuple(map(_comparable_row, row))
    return nan if isinstance(row, float) and isnan(row) else row
