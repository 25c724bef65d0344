"""The cases of conformance.py, embedded: every step, and what it brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pytest

import penstock as ps
from support.conformance import (
    CASES,
    FLINK_IN_TURN,
    SCHEMA,
    Case,
    Results,
    Rows,
    in_order,
    table,
    without_nothing,
)

pytestmark = pytest.mark.jit_off


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_embedded(case: Case) -> None:
    join = case.query.start(schemas=dict.fromkeys(case.query.names, SCHEMA))
    for run, steps in enumerate(case.runs):
        if run:
            join = case.query.restore(join.snapshot())
        pieces = case.pieces[run] if case.pieces else 1
        for step in steps:
            tables = {name: in_pieces(table(rows), pieces) for name, rows in step.rows.items()}
            got = join.push(tables).select(case.columns).to_pydict().values()
            assert in_order(zip(*got, strict=True)) == in_order([*step.new, *step.passed])
            late = {name: each["v"].to_pylist() for name, each in join.late().items()}
            assert without_nothing(late) == without_nothing(step.late)
            live = {name: stream.live for name, stream in join.metrics.streams.items()}
            if isinstance(step.live, Mapping):
                assert live == step.live
            elif step.live is not None:
                assert sum(live.values()) == step.live


def in_pieces(whole: pa.Table, count: int) -> pa.Table:
    return pa.concat_tables(slices(whole, -(-whole.num_rows // count)))


def slices(whole: pa.Table, rows: int) -> Iterator[pa.Table]:
    for begin in range(0, whole.num_rows, rows):
        yield whole.slice(begin, rows)


@pytest.mark.parametrize(("query", "steps", "expected"), FLINK_IN_TURN)
def test_flink_bounds_in_other_orders(
    query: ps.WindowJoin, steps: Sequence[Mapping[str, Rows]], expected: Results
) -> None:
    join = query.start(schemas=dict.fromkeys(query.names, SCHEMA))
    results = pa.concat_tables(
        join.push({name: table(rows) for name, rows in step.items()}) for step in steps
    )
    got = zip(results["l_v"].to_pylist(), results["r_v"].to_pylist(), strict=True)
    assert in_order(got) == in_order(expected)
