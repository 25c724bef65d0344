"""A snapshot is the whole join in bytes; what is no whole snapshot is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

pytestmark = pytest.mark.jit_off

STREAMS = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts", lateness="2 us")]
QUERY = ps.WindowJoin(STREAMS, on="k", within="10 us")


def rows(*pairs: tuple[int, int]) -> pa.Table:
    columns = {"ts": [ts for ts, _ in pairs], "k": [k for _, k in pairs]}
    notes = pa.array([f"note {ts}" for ts, _ in pairs])
    return pa.table({name: pa.array(c, pa.int64()) for name, c in columns.items()} | {"v": notes})


def started(**given: Any) -> ps.Join:
    join = QUERY.start(**given)
    join.push(a=rows((10, 1), (11, 2)), b=rows((12, 1)))
    join.push(a=rows((10, 2), (9, 2)), b=rows((11, 2)))
    return join


def bag(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def late_bags(join: ps.Join) -> dict[str, list[str]]:
    return {name: bag(late) for name, late in join.late().items()}


def test_a_restored_join_goes_on_exactly_from_there() -> None:
    one = started()
    two = QUERY.restore(one.snapshot())
    assert two.metrics == one.metrics
    more = {"a": rows((13, 1), (10, 1)), "b": rows((13, 2), (8, 1), (12, 2))}
    assert bag(one.push(more)) == bag(two.push(more))
    assert late_bags(one) == late_bags(two)
    assert one.metrics == two.metrics
    assert one.finish() == two.finish()


def test_the_join_that_was_saved_goes_on_too() -> None:
    """A snapshot copies: what happens afterwards to one does not show in the other."""
    one = started()
    data = one.snapshot()
    one.push(a=rows((90, 1)), b=rows((90, 1)))
    two = QUERY.restore(data)
    assert two.metrics.watermark == 10
    assert two.push(b=rows((12, 1))).num_rows == started().push(b=rows((12, 1))).num_rows
    assert QUERY.restore(data).metrics == started().metrics


def test_late_tuples_that_were_not_fetched_are_in_it() -> None:
    join = started()
    two = QUERY.restore(join.snapshot())
    assert late_bags(two) == late_bags(join)
    assert two.metrics.late == 1


def test_a_snapshot_before_the_first_batch() -> None:
    join = QUERY.restore(QUERY.start().snapshot())
    assert join.metrics == QUERY.start().metrics
    assert join.push(a=rows((1, 1)), b=rows((1, 1))).num_rows == 1


def test_a_snapshot_when_one_stream_has_not_spoken() -> None:
    one = QUERY.start()
    one.push(a=rows((1, 1)))
    two = QUERY.restore(one.snapshot())
    with pytest.raises(ps.SchemaError, match="'v'"):
        two.push(a=rows((2, 1)).drop_columns(["v"]))
    assert two.push(b=rows((2, 1))).num_rows == 1


def test_a_finished_join_stays_finished() -> None:
    """Or it cannot be saved; but it never takes rows again and calls them late."""
    join = started()
    join.finish()
    with pytest.raises(ps.StateError):
        QUERY.restore(join.snapshot()).push(a=rows((50, 1)))


def test_equal_joins_give_equal_bytes() -> None:
    """So that a snapshot can be compared, and stored once."""
    assert started().snapshot() == started().snapshot()
    data = started().snapshot()
    assert QUERY.restore(data).snapshot() == data
    assert isinstance(data, bytes)


def test_a_snapshot_does_not_hold_what_has_left() -> None:
    join = QUERY.start()
    for start in range(0, 2000, 50):
        batch = rows(*((start + i, i) for i in range(50)))
        join.push(a=batch, b=batch)
    fresh = QUERY.start()
    fresh.push(a=batch, b=batch)
    assert len(join.snapshot()) < 2 * len(fresh.snapshot())


@pytest.mark.parametrize("index", ["hash", "buckets(3)", "scan"])
def test_restored_with_another_plan(index: str) -> None:
    one = started(indexes={"a": "scan", "b": "hash"})
    two = QUERY.restore(one.snapshot(), indexes=index)
    more = {"a": rows((13, 1), (10, 1)), "b": rows((13, 2))}
    assert bag(one.push(more)) == bag(two.push(more))


def test_another_process_can_restore_it(tmp_path: Path) -> None:
    """Keys are words that depend on no process: the strings below are hashed."""
    query = ps.WindowJoin(STREAMS, on="v", within="10 us")
    join = query.start()
    join.push(a=rows((10, 1), (11, 2)))
    path = tmp_path / "join.snapshot"
    path.write_bytes(join.snapshot())
    code = f"""
import pathlib, penstock as ps, pyarrow as pa
streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts", lateness="2 us")]
query = ps.WindowJoin(streams, on="v", within="10 us")
join = query.restore(pathlib.Path({str(path)!r}).read_bytes())
batch = pa.table({{"ts": [12, 12], "k": [7, 8], "v": ["note 11", "note 12"]}})
print(join.push(b=batch)["a_ts"].to_pylist())
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=250
    )
    assert run.stdout.strip() == "[11]"


@pytest.mark.parametrize("data", [b"", b"x", b"PAR1" * 100, bytes(1000)])
def test_foreign_bytes(data: bytes) -> None:
    with pytest.raises(ps.SnapshotError):
        QUERY.restore(data)


@pytest.mark.parametrize("data", [None, "text", 5])
def test_what_is_no_bytes(data: Any) -> None:
    with pytest.raises(ps.SnapshotError):
        QUERY.restore(data)


def test_every_truncation_is_noticed() -> None:
    data = started().snapshot()
    for length in range(0, len(data), max(1, len(data) // 150)):
        with pytest.raises(ps.SnapshotError):
            QUERY.restore(data[:length])
    with pytest.raises(ps.SnapshotError):
        QUERY.restore(data + b"\0")


def test_every_flipped_bit_is_noticed() -> None:
    data = started().snapshot()
    for place in range(0, len(data), max(1, len(data) // 300)):
        broken = bytearray(data)
        broken[place] ^= 1 << place % 8
        with pytest.raises(ps.SnapshotError):
            QUERY.restore(bytes(broken))


A, B = STREAMS
OTHER_QUERIES: dict[str, dict[str, Any]] = {
    "streams": {"streams": [A, ps.Stream("c", time="ts", lateness="2 us")]},
    "order of streams": {"streams": [B, A]},
    "one more stream": {"streams": [A, B, ps.Stream("c", time="ts")]},
    "key": {"on": "v"},
    "window": {"within": "9 us"},
    "time": {"streams": [A, ps.Stream("b", time="k", lateness="2 us")]},
    "lateness": {"streams": [A, ps.Stream("b", time="ts")]},
    "select": {"select": ["a.v"]},
}


@pytest.mark.parametrize("what", OTHER_QUERIES)
def test_a_snapshot_of_another_query(what: str) -> None:
    given = {"streams": STREAMS, "on": "k", "within": "10 us", **OTHER_QUERIES[what]}
    with pytest.raises(ps.SnapshotError):
        ps.WindowJoin(given.pop("streams"), **given).restore(started().snapshot())


def test_an_equal_query_written_differently_may_restore() -> None:
    same = ps.WindowJoin(
        [
            ps.Stream("a", time="ts", window="0.01 ms"),
            ps.Stream("b", time="ts", window="10 us", lateness="2 us"),
        ],
        on={"a": "k", "b": ["k"]},
    )
    assert same.restore(started().snapshot()).metrics == started().metrics


def test_no_pickle_is_in_it() -> None:
    """Arrow IPC only: reading a snapshot never runs code."""
    data = started().snapshot()
    assert b"penstock" in data[:16].lower()
    assert b"cpickle" not in data
    assert b"copyreg" not in data
