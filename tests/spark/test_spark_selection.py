"""A selection of joins on Spark: windows, predicates, join types and numbers of streams, drawn by
a seed, give the answer that the oracle defines.

Times are whole milliseconds, as Spark's watermarks are, and no two tuples share one: ties are
broken by order of arrival in the oracle, and on Spark there is none.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import testing
from support.clauses import TERMS, keyed
from support.oracle import OracleStream, Row, Step, answer
from support.scenario import Scenario, bag, combinations, table
from support.thoroughness import scaled

MS = 1000
START = 1_700_000_000_000 * MS
FAR = START + 3_600_000 * MS  # the last batch: lets go of all that came before it
DISORDER_MS = 5
HOWS = ("inner", "left", "right", "full", "semi", "anti")
EQUAL = {2: ["a.x = b.x"], 3: ["a.x = b.x", "c.x = a.x"]}


class Drawn:
    """A scenario in which nothing is late, and its rows in batches."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        names = "abc"[: int(self._choice([2, 2, 3]))]
        how = str(self._choice(HOWS)) if len(names) == 2 else "inner"
        fitting = [text for text, (over, _) in TERMS.items() if set(over) <= set(names)]
        texts = EQUAL[len(names)] if self._choice([True, False]) else []
        more = self._random.choice(fitting, int(self._choice([1, 2])), replace=False).tolist()
        where = {text: TERMS[text] for text in dict.fromkeys([*texts, *more])}
        streams, between = self._windows(names)
        steps = [Step(batch) for batch in self._batches(names)]
        time_type = pa.timestamp("us", tz="UTC")
        scenario = Scenario(
            streams, steps, (pa.int64(), pa.int64()), time_type, where=where, how=how
        )
        self.scenario = keyed(replace(scenario, between=between))

    def _choice(self, values: Any) -> Any:
        return values[int(self._random.integers(len(values)))]

    def _windows(self, names: str) -> tuple[list[OracleStream], tuple[int, int] | None]:
        streams = [
            OracleStream(name, int(self._choice([2, 20, 60])) * MS, lateness_us=DISORDER_MS * MS)
            for name in names
        ]
        kind = self._choice(["time", "mixed", "mixed", "tumbling", "arrivals", "between"])
        if kind == "between" and len(names) == 2:
            low, high = sorted(int(each) * MS for each in self._random.integers(-20, 20, 2))
            lengths = (high, -low)
            pairs = zip(streams, lengths, strict=True)
            return [replace(stream, window_us=length) for stream, length in pairs], (low, high)
        others: list[dict[str, Any]] = [
            {},
            {"window_us": inf},
            {"window_us": inf, "since": START + 10 * MS},
            {"window_us": inf, "rows": 3},
            {"window_us": inf, "rows": 2, "per_key": True},
        ]
        if kind == "mixed":
            return [replace(stream, **self._choice(others)) for stream in streams], None
        for_all: dict[str, dict[str, Any]] = {
            "tumbling": {"window_us": inf, "slot_us": 7 * MS},
            "arrivals": {"window_us": inf, "arrivals": 5},
        }
        return [replace(stream, **for_all.get(kind, {})) for stream in streams], None

    def _batches(self, names: str) -> list[dict[str, list[Row]]]:
        count = 60
        times = np.arange(count) * 2  # in order, then a little out of it; odd ones are free
        places = np.argsort(times + self._random.integers(0, DISORDER_MS - 1, count))
        rows: list[tuple[str, Row]] = []
        for number, place in enumerate(places.tolist()):
            x, y = (self._choice([-1, 0, 1, 1, 2, 2, 3, None]) for _ in range(2))
            row = {"ts": START + int(times[place]) * MS, "x": x, "y": y, "id": number}
            rows.append((self._choice(names), {**row, "note": f"note {number}"}))
        halves = [rows[: count // 2], rows[count // 2 :]]
        batches = [
            {name: [row for owner, row in half if owner == name] for name in names}
            for half in halves
        ]
        last = {"x": None, "y": None, "note": None}
        ends = {
            name: [{"ts": FAR + place * MS, "id": 1000 + place, **last}]
            for place, name in enumerate(names)
        }
        return [*batches, ends]

    @property
    def tables(self) -> list[dict[str, pa.Table]]:
        streams = self.scenario.streams
        return [
            {each.name: table(self.scenario.schema(each), step.rows[each.name]) for each in streams}
            for step in self.scenario.steps
        ]

    def expected(self, *, ended: bool = True) -> list[str]:
        """All results but those of the last batch; streams that have not ended hold some back."""
        scenario = self.scenario
        terms = list(scenario.where.values())
        outcomes = answer(scenario.streams, scenario.steps, scenario.between, terms, scenario.how)
        outcomes = outcomes if ended else outcomes[: len(scenario.steps)]
        assert not any(late for outcome in outcomes for late in outcome.late.values())
        return self.early([scenario.given(each) for one in outcomes for each in one.results])

    def found(self, results: pa.Table) -> list[str]:
        return self.early(combinations(results, self.scenario.given_out))

    @staticmethod
    def early(results: list[Any]) -> list[str]:
        return bag(
            [rows for rows, _ in results if not any(row and row["id"] >= 1000 for row in rows)]
        )


BATCH_SEEDS, STREAM_SEEDS = range(24), range(100, 103)


@pytest.mark.parametrize("seed", scaled(quick=BATCH_SEEDS[::4], all=BATCH_SEEDS, ci=BATCH_SEEDS))
def test_batch_frames(spark: SparkSession, seed: int) -> None:
    drawn = Drawn(seed)
    frames = {
        name: spark.createDataFrame(pa.concat_tables([each[name] for each in drawn.tables]))
        for name in drawn.tables[0]
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PlanWarning)  # that a join takes one bucket
        results = drawn.scenario.query.on_spark(frames).toArrow()
    assert drawn.found(results) == drawn.expected()


@pytest.mark.parametrize("seed", scaled(quick=STREAM_SEEDS[:1], all=STREAM_SEEDS, ci=STREAM_SEEDS))
def test_streams_restarted_after_every_batch(spark: SparkSession, seed: int) -> None:
    drawn = Drawn(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PlanWarning)
        results = testing.joined(drawn.scenario.query, drawn.tables, spark=spark)
    assert drawn.found(results) == drawn.expected(ended=False)


def test_what_is_drawn() -> None:
    """Every kind of window and of join, with and without a key; and most have results."""
    drawn = [Drawn(seed) for seed in (*BATCH_SEEDS, *STREAM_SEEDS)]
    queries = [each.scenario.query for each in drawn]
    assert {query.how for query in queries} == set(HOWS)
    assert {bool(query.keys[0]) for query in queries} == {True, False}
    kinds = {type(window).__name__ for query in queries for window in query.windows}
    assert len(kinds) >= 6, kinds
    assert sum(len(each.expected()) > 5 for each in drawn) > len(drawn) // 2
