"""What a bucket keeps in Spark's state store: read again, refused, or taken on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import penstock as ps
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.runtime import envelope
from penstock.spark.bucket_count import BucketCount, partition_of
from penstock.spark.state.bucket import Bucket
from penstock.spark.state.hot import ProcessMemory
from penstock.spark.state.manifest import Manifest
from penstock.spark.state.mapped import MappedFiles
from penstock.spark.state.segments import FEW_ROWS, MANY_SEGMENTS
from support.simulator import AttemptStore, Committed

STREAMS = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
QUERY = ps.WindowJoin(STREAMS, on="k", within="10 us")
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.string())])


def bucket_of(query: ps.WindowJoin = QUERY, schema: pa.Schema = SCHEMA) -> Bucket:
    """One in a worker that has just been started, and so has no hot state."""
    binding = Binding.of(query).bound_with({0: schema, 1: schema})
    return Bucket(binding, Plan.of(query), ProcessMemory())


def rows(ts: int, schema: pa.Schema = SCHEMA, **values: object) -> pa.RecordBatch:
    row = {"ts": ts, "k": 1, "v": f"at {ts}", **values}
    return pa.RecordBatch.from_pylist([row], schema=schema)


def stepped(
    state: Committed, bucket: Bucket, watermark: int = BEGINNING, **batches: pa.RecordBatch
) -> tuple[Committed, pa.Table]:
    store = AttemptStore(state, crash_at=0)
    numbers = {"a": 0, "b": 1}
    parts = {numbers[name]: [batch] for name, batch in batches.items()}
    step = bucket.step("0", store, parts, watermark)
    return store.committed(), step.results


def test_columns_that_were_added_are_null_in_what_came_before() -> None:
    state, _ = stepped(Committed(), bucket_of(), a=rows(1))
    wider = SCHEMA.append(pa.field("w", pa.int32()))
    _, results = stepped(state, bucket_of(schema=wider), b=rows(2, wider, w=7))
    (row,) = results.to_pylist()
    assert (row["a_v"], row["a_w"], row["b_w"]) == ("at 1", None, 7)


def test_segments_from_before_and_after_a_column_was_added_are_merged() -> None:
    long = ps.WindowJoin(STREAMS, on="k", within="1 s")
    wider = SCHEMA.append(pa.field("w", pa.int32()))
    state = Committed()
    for ts in range(2 * MANY_SEGMENTS):
        schema = SCHEMA if ts < MANY_SEGMENTS else wider
        state, _ = stepped(state, bucket_of(long, schema), a=rows(ts, schema, w=ts))
    assert len(state.segments) <= MANY_SEGMENTS
    _, results = stepped(state, bucket_of(long, wider), b=rows(100, wider))
    added = sorted(results.to_pylist(), key=lambda row: row["a_ts"])
    expected = [None] * MANY_SEGMENTS + list(range(MANY_SEGMENTS, 2 * MANY_SEGMENTS))
    assert [row["a_w"] for row in added] == expected


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (SCHEMA.remove(2), "column 'v' of stream 'a' is in the checkpoint"),
        (SCHEMA.set(2, pa.field("v", pa.binary())), "column 'v' of stream 'a' was string"),
    ],
)
def test_columns_that_changed_are_refused_by_name(schema: pa.Schema, told: str) -> None:
    state, _ = stepped(Committed(), bucket_of(), a=rows(1))
    batch = pa.RecordBatch.from_pylist([{"ts": 2, "k": 1, "v": b"x"}], schema=schema)
    with pytest.raises(ps.SchemaError, match=told):
        stepped(state, bucket_of(schema=schema), b=batch)


def test_another_join_is_refused() -> None:
    state, _ = stepped(Committed(), bucket_of(), a=rows(1))
    longer = ps.WindowJoin(STREAMS, on="k", within="11 us")
    told = "another join: window of stream 'a' was '10 microseconds' and is '11 microseconds' now"
    with pytest.raises(ps.SnapshotError, match=told):
        stepped(state, bucket_of(longer), b=rows(2))
    other = ps.WindowJoin(STREAMS, on="k", within="10 us", where="a.v <> b.v")
    with pytest.raises(ps.SnapshotError, match="where was None and is 'a"):
        stepped(state, bucket_of(other), b=rows(2))


def test_fewer_columns_may_be_selected_but_not_more() -> None:
    """The windows have no values of what was not selected when their tuples came."""
    narrow = ps.WindowJoin(STREAMS, on="k", within="10 us", select=["b.v"])
    state, _ = stepped(Committed(), bucket_of(), a=rows(1))
    state, results = stepped(state, bucket_of(narrow), b=rows(2))
    assert results.to_pylist() == [{"b_v": "at 2", "event_time": 2}]
    with pytest.raises(ps.SchemaError, match="column 'ts' of stream 'a' was not selected"):
        stepped(state, bucket_of(), b=rows(3))


def test_a_state_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(envelope, "VERSION", envelope.VERSION + 1)
        state, _ = stepped(Committed(), bucket_of(), a=rows(1))
    with pytest.raises(ps.SnapshotError, match=f"version {envelope.VERSION + 1}"):
        stepped(state, bucket_of(), b=rows(2))


def test_damage_is_noticed_and_nothing_is_joined() -> None:
    state, _ = stepped(Committed(), bucket_of(), a=rows(1))
    ((place, data),) = state.segments.items()
    flipped = bytes([*data[:-9], data[-9] ^ 1, *data[-8:]])
    for damaged in (data[:-5], flipped, b"", data[5:]):
        broken = Committed(state.manifest, {place: damaged})
        with pytest.raises(ps.SnapshotError, match="segment"):
            stepped(broken, bucket_of(), b=rows(2))
    with pytest.raises(ps.SnapshotError, match="missing"):
        stepped(Committed(state.manifest, {}), bucket_of(), b=rows(2))
    assert state.manifest is not None
    with pytest.raises(ps.SnapshotError, match="bucket"):
        stepped(Committed(state.manifest[:-3], state.segments), bucket_of(), b=rows(2))


def test_segments_stay_few_and_go_when_they_have_expired() -> None:
    state, bucket = Committed(), bucket_of(ps.WindowJoin(STREAMS, on="k", within="1 s"))
    for ts in range(3 * MANY_SEGMENTS):
        state, _ = stepped(state, bucket, a=rows(ts))
        assert len(state.segments) <= MANY_SEGMENTS
    fresh = bucket_of(ps.WindowJoin(STREAMS, on="k", within="1 s"))
    _, results = stepped(state, fresh, b=rows(500_000))
    assert results.num_rows == 3 * MANY_SEGMENTS
    state, _ = stepped(state, fresh, watermark=3_000_000)
    assert state.segments == {}


@pytest.mark.parametrize("window", ["10 rows", "10 rows per key", "10 arrivals"])
def test_what_is_counted_out_goes_from_the_store(window: str) -> None:
    """Also when one key of a segment is never heard again; and that one is still there."""
    query = ps.WindowJoin(STREAMS, on="k", within=window)
    state, batch_rows, most = Committed(), 300, 0
    for number in range(40):
        batch = pa.RecordBatch.from_pylist(
            [
                {"ts": number * batch_rows + row, "k": -1 if number == row == 0 else row % 3}
                for row in range(batch_rows)
            ],
            schema=SCHEMA,
        )
        bucket = bucket_of(query)
        state, _ = stepped(state, bucket, watermark=number * batch_rows, a=batch)
        assert state.manifest is not None
        manifest = Manifest.unpack(state.manifest, bucket._binding, (1, 1))
        kept = [each for segments in manifest.segments for each in segments]
        assert len(kept) == len(state.segments)
        most = max(most, sum(each.rows for each in kept))
    # What waits is the last batch; beside it the windows hold 31 tuples at most.
    assert most <= 2 * (batch_rows + 31) + FEW_ROWS
    end = 40 * batch_rows
    state, _ = stepped(state, bucket_of(query), end, b=rows(end + 1, k=-1))
    state, results = stepped(state, bucket_of(query), watermark=end + 5)
    assert results.num_rows == (window == "10 rows per key")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_ties_do_not_depend_on_who_came_first(order: tuple[int, ...]) -> None:
    """Of tuples of one time the last by contents is the last; in one batch, or in several."""
    query = ps.WindowJoin(STREAMS, on="k", within="1 row")
    tied = [rows(5, v=value) for value in ("x", "y", "z")]
    together = pa.concat_batches([tied[each] for each in order])
    one, _ = stepped(Committed(), bucket_of(query), a=together, b=rows(6))
    several, _ = stepped(Committed(), bucket_of(query), b=rows(6))
    for each in order:
        several, _ = stepped(several, bucket_of(query), a=tied[each])
    for state in (one, several):
        _, results = stepped(state, bucket_of(query), watermark=7)
        assert results["a_v"].to_pylist() == ["z"]


def test_mapped_files_are_private_few_and_found_by_another_worker(tmp_path: Path) -> None:
    binding = Binding.of(QUERY).bound_with({0: SCHEMA, 1: SCHEMA})
    state = Committed()
    for ts in range(20):
        worker = MappedFiles(tmp_path, "query")  # a new one, as if in another process
        store = AttemptStore(state, crash_at=0)
        bucket = Bucket(binding, Plan.of(QUERY), worker)
        step = bucket.step("0", store, {0: [rows(ts)]}, BEGINNING)
        state = store.committed()
        assert not step.rebuilt
    home = tmp_path / "query"
    assert [each.name.split(".")[0] for each in home.iterdir()] == ["0"]
    assert home.stat().st_mode & 0o077 == 0
    (offered,) = home.iterdir()
    assert len(list(offered.iterdir())) < 20


def test_another_number_of_buckets_is_refused() -> None:
    state, _ = stepped(Committed(), bucket_of(), a=rows(1))
    binding = Binding.of(QUERY).bound_with({0: SCHEMA, 1: SCHEMA})
    other = Bucket(binding, Plan.of(QUERY), ProcessMemory(), division=(3, 2))
    with pytest.raises(ps.SnapshotError, match="pass buckets=1 to on_spark"):
        stepped(state, other, b=rows(2))


@pytest.mark.parametrize(("count", "partitions"), [(8, 2), (1, 3), (7, 3), (800, 200)])
def test_buckets_are_spread_evenly(count: int, partitions: int) -> None:
    names = BucketCount(count, partitions).names()
    assert len(set(names)) == count
    shares = Counter(partition_of(name, partitions) for name in names)
    assert names[0] == 0
    assert max(shares.values()) <= -(-count // partitions)
