"""On tens of thousands of rows: every way to run a join agrees with every other, and with SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import penstock as ps
from penstock.samples import uniform, zipf
from support.numbered import numbered

Batch = Mapping[str, pa.Table]

ROWS = 20_000
WORK = uniform(seed=11, rows=ROWS, keys=2000, streams=("a", "b"), payload=5, disorder="300 ms")
WINDOWS = {"a": "2 seconds", "b": "3 seconds"}
SECONDS = {"a": 2, "b": 3, "c": 1}


def query_of(
    names: Sequence[str] = ("a", "b"),
    windows: Mapping[str, str] = WINDOWS,
    lateness: str = "300 ms",
    **given: Any,
) -> ps.WindowJoin:
    streams = [ps.Stream(n, time="ts", window=windows[n], lateness=lateness) for n in names]
    return ps.WindowJoin(streams, on="k", **given)


def ordered(table: pa.Table) -> pa.Table:
    """A result in an order that only its content decides."""
    return table.sort_by([(name, "ascending") for name in sorted(table.column_names)])


def run(join: ps.Join, batches: Iterator[Batch]) -> pa.Table:
    results = [*(join.push(batch) for batch in batches), join.finish()]
    # Before the first batch of a stream its columns are not known.
    result = pa.concat_tables([table for table in results[:-1] if table.num_rows] + results[-1:])
    assert join.metrics.late == 0
    assert join.metrics.produced == result.num_rows
    return result


@pytest.fixture(scope="module")
def reference() -> pa.Table:
    """The plain way: hash indexes, batches of 5,000."""
    return ordered(run(query_of().start(), WORK.batches(5000)))


INDEXES: list[Any] = [
    "buckets",
    "buckets(1)",
    "buckets(7)",
    "scan",
    {"a": "hash", "b": "scan"},
    {"a": "buckets(64)", "b": "hash"},
    {"a": "scan", "b": "buckets(100000)"},
]


@pytest.mark.parametrize("indexes", INDEXES, ids=str)
def test_index_against_index(indexes: Any, reference: pa.Table) -> None:
    result = run(query_of().start(indexes=indexes), WORK.batches(5000))
    assert ordered(result).equals(reference)


def in_batches_of(count: int) -> Callable[[], Iterator[Batch]]:
    return lambda: WORK.batches(count)


def uneven() -> Iterator[Batch]:
    """The streams drift apart by up to the lateness, and meet again; empty batches too."""
    rng = np.random.default_rng(5)
    at = {"a": 0, "b": 0}
    while any(start < ROWS for start in at.values()):
        batch = {}
        for name, start in at.items():
            behind = min(at.values())
            stop = min(start + int(rng.integers(0, 900)), behind + 900)
            batch[name] = WORK.table(name, start, max(stop, start))
            at[name] = max(stop, start)
        yield batch


def one_stream_a_push() -> Iterator[Batch]:
    for batch in WORK.batches(300):
        for name, table in batch.items():
            yield {name: table}


def one_stream_after_the_other() -> Iterator[Batch]:
    yield {"b": WORK.table("b")}
    yield {"a": WORK.table("a")}


SPLITS: dict[str, Callable[[], Iterator[Batch]]] = {
    "rows of 7": in_batches_of(7),
    "rows of 1,000": in_batches_of(1000),
    "all in one": in_batches_of(ROWS),
    "uneven": uneven,
    "one stream a push": one_stream_a_push,
    "one stream after the other": one_stream_after_the_other,
}


@pytest.mark.parametrize("split", SPLITS)
def test_split_against_split(split: str, reference: pa.Table) -> None:
    """With a lateness that covers what the split holds back, nothing is late."""
    result = run(query_of(lateness="30 seconds").start(), SPLITS[split]())
    assert ordered(result).equals(reference)


def test_one_row_a_push() -> None:
    work = uniform(seed=3, rows=1500, keys=100, streams=("a", "b"), disorder="300 ms")
    whole = run(query_of().start(), work.batches(1500))

    def rows() -> Iterator[Batch]:
        for batch in work.batches(1):
            yield {"a": batch["a"]}
            yield {"b": batch["b"]}

    assert ordered(run(query_of().start(), rows())).equals(ordered(whole))


def test_restored_against_uninterrupted(reference: pa.Table) -> None:
    """Saved after every batch, and restored with the next index each time."""
    query = query_of()
    join, results = query.start(), []
    plans = [*INDEXES, "hash"]
    for number, batch in enumerate(WORK.batches(2500)):
        results.append(join.push(batch))
        saved = join.snapshot()
        before = join.metrics
        join = query.restore(saved, indexes=plans[number % len(plans)])
        after = join.metrics
        assert (after.produced, after.live, after.watermark) == (
            before.produced,
            before.live,
            before.watermark,
        )
        assert after.streams == before.streams
    assert ordered(pa.concat_tables(results)).equals(reference)
    assert join.metrics.produced == reference.num_rows


def test_sides_swapped(reference: pa.Table) -> None:
    result = run(query_of(("b", "a")).start(), WORK.batches(5000))
    assert ordered(result.select(reference.column_names)).equals(reference)


def test_probe_orders_of_three_streams() -> None:
    work = uniform(seed=4, rows=6000, keys=700, streams=("a", "b", "c"))
    query = query_of(("a", "b", "c"), {**WINDOWS, "c": "1 second"})
    one = run(query.start(), work.batches(1000))
    orders = {"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]}
    other = run(query.start(probe_orders=orders, indexes={"b": "scan"}), work.batches(900))
    assert one.num_rows > 1000
    assert ordered(one).equals(ordered(other))


def nested(batch: Batch) -> Batch:
    """With a column of text and one of lists."""
    more = {}
    for name, table in batch.items():
        texts = pa.compute.cast(table["v"], pa.string())
        lists = pa.FixedSizeListArray.from_arrays(table["v"].combine_chunks(), 1)
        more[name] = table.append_column("t", texts).append_column(
            "l", lists.cast(pa.list_(pa.int64()))
        )
    return more


@pytest.mark.parametrize("disorder", ["0 ms", "400 ms"])
def test_memory_stays_flat(disorder: str) -> None:
    """Over a hundred windows' worth of input, after the first ten."""
    work = uniform(seed=6, rows=50_000, keys=10**9, streams=("a", "b"), disorder=disorder)
    windows = {"a": "500 ms", "b": "500 ms"}
    join = query_of(windows=windows, lateness=disorder).start()
    sizes = []
    for batch in work.batches(250):
        join.push(nested(batch))
        sizes.append(join.metrics.bytes)
        assert join.metrics.live < 4000
    assert max(sizes) <= 1.1 * max(sizes[:20])


# DuckDB answers the same join in SQL, over the whole of the data.


def in_sql(tables: Mapping[str, pa.Table], on: Sequence[str] = ("k",)) -> np.ndarray[Any, Any]:
    names = list(tables)
    first, *others = names
    latest = f"greatest({', '.join(f'{name}.ts' for name in names)})"
    joins = " ".join(
        f"join {name} on " + " and ".join(f"{first}.{c} = {name}.{c}" for c in on)
        for name in others
    )
    near = " and ".join(f"{latest} - {n}.ts <= interval {SECONDS[n]} second" for n in names)
    ids = ", ".join(f"{name}.id as {name}_id" for name in names)
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        found = connection.sql(f"select {ids} from {first} {joins} where {near}")
        return sorted_ids(found.to_arrow_table(), names)


def sorted_ids(result: pa.Table, names: Sequence[str]) -> np.ndarray[Any, Any]:
    """One number for each combination, sorted."""
    code = np.zeros(result.num_rows, np.int64)
    for name in names:
        code = code * 1_000_000 + result[f"{name}_id"].to_numpy()
    return np.sort(code)


def in_penstock(
    tables: Mapping[str, pa.Table], batch_rows: int, on: Any = "k", **plan: Any
) -> np.ndarray[Any, Any]:
    streams = [
        ps.Stream(name, time="ts", window=f"{SECONDS[name]} seconds", lateness="1 second")
        for name in tables
    ]
    join = ps.WindowJoin(streams, on=on, select=[f"{name}.id" for name in tables]).start(**plan)
    results = []
    for start in range(0, max(map(len, tables.values())), batch_rows):
        batch = {name: table.slice(start, batch_rows) for name, table in tables.items()}
        results.append(join.push(batch))
    assert join.metrics.late == 0
    return sorted_ids(pa.concat_tables(results), list(tables))


@pytest.mark.parametrize("batch_rows", [200_000, 30_000], ids="{:,} rows a batch".format)
@pytest.mark.parametrize("strings", [False, True], ids=["integers", "strings"])
def test_two_streams_in_sql(strings: bool, batch_rows: int) -> None:
    work = uniform(
        seed=21,
        rows=200_000,
        keys=9000,
        streams=("a", "b"),
        string_keys=strings,
        disorder="1 second",
    )
    tables = numbered(work)
    expected = in_sql(tables)
    assert len(expected) > 90_000
    assert np.array_equal(in_penstock(tables, batch_rows), expected)


def test_three_streams_in_sql() -> None:
    work = uniform(seed=22, rows=60_000, keys=3000, streams=("a", "b", "c"), disorder="1 second")
    tables = numbered(work)
    expected = in_sql(tables)
    assert len(expected) > 30_000
    assert np.array_equal(in_penstock(tables, 25_000), expected)


def test_a_few_heavy_keys_in_sql() -> None:
    """Hundreds of results for each tuple: the output fills again and again."""
    work = zipf(seed=23, rows=5000, keys=50, skew=1.2, streams=("a", "b"), disorder="1 second")
    tables = numbered(work)
    expected = in_sql(tables)
    assert len(expected) > 1_000_000
    for index in ("hash", "buckets(3)"):
        assert np.array_equal(in_penstock(tables, 5000, indexes=index), expected)


def test_keys_of_two_columns_in_sql() -> None:
    """With nulls, and zeros of both signs."""
    work = uniform(seed=24, rows=100_000, keys=800, streams=("a", "b"), disorder="1 second")
    rng = np.random.default_rng(24)
    tables = {}
    for name, table in numbered(work).items():
        texts = np.array(["", "x", "xx", None], object)[rng.integers(0, 4, work.rows)]
        floats = np.array([0.0, -0.0, 1.5])[rng.integers(0, 3, work.rows)]
        more = {"l": pa.array(texts, pa.string()), "m": pa.array(floats)}
        tables[name] = pa.table(
            {**dict(zip(table.column_names, table.columns, strict=True)), **more}
        )
    expected = in_sql(tables, on=("k", "l", "m"))
    assert len(expected) > 40_000
    assert np.array_equal(in_penstock(tables, 40_000, on=["k", "l", "m"]), expected)
