"""What a bucket under limits keeps in Spark's state store, and what may change at a restart."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

import penstock as ps
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.limits import LEAST_STATISTICS, Limits
from penstock.model.plan import Plan
from penstock.spark.state.bucket import Bucket, BucketStep
from penstock.spark.state.hot import ProcessMemory
from penstock.spark.state.manifest import Manifest
from penstock.spark.state.segments import FEW_ROWS, MANY_SEGMENTS
from support.simulator import AttemptStore, Committed

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.string())])
STREAMS = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
INNER = ps.WindowJoin(STREAMS, on="k", within="1 s")
SEMI = ps.WindowJoin(STREAMS, on="k", within="10 us", how="semi")


def bucket_of(limits: Limits | None, query: ps.WindowJoin = INNER) -> Bucket:
    """One in a worker that has just been started, and so has no hot state."""
    binding = Binding.of(query).bound_with({0: SCHEMA, 1: SCHEMA})
    return Bucket(binding, Plan.of(query, limits=limits), ProcessMemory())


def rows(times: Sequence[int], key: int = 1) -> pa.RecordBatch:
    each = [{"ts": ts, "k": key, "v": f"at {ts}"} for ts in times]
    return pa.RecordBatch.from_pylist(each, schema=SCHEMA)


def stepped(
    state: Committed, bucket: Bucket, watermark: int = BEGINNING, **batches: pa.RecordBatch
) -> tuple[Committed, BucketStep]:
    store = AttemptStore(state, crash_at=0)
    parts = {"ab".index(name): [batch] for name, batch in batches.items()}
    step = bucket.step("0", store, parts, watermark)
    return store.committed(), step


@pytest.mark.parametrize("memory", ["1000 rows", "1_000_003 bytes"])
def test_shares_add_up_to_the_whole(memory: str) -> None:
    whole = Limits(memory.replace("bytes", "B"), ghosts=100, seed=7)
    shares = [whole.share(place, 7) for place in range(7)]
    for name in ("rows", "bytes"):
        amounts = [getattr(each.memory, name) for each in shares]
        if getattr(whole.memory, name) is None:
            assert set(amounts) == {None}
        else:
            assert sum(amounts) == getattr(whole.memory, name)
            assert max(amounts) - min(amounts) <= 1
    assert sum(each.ghosts or 0 for each in shares) == 100
    assert whole.share(6, 200).ghosts == 1
    assert whole.share(0, 10_000).statistics.bytes == LEAST_STATISTICS
    assert len({each.seed for each in shares}) == 7


@pytest.mark.parametrize("shed", ["oldest", "random"])
def test_the_store_holds_little_more_than_what_is_left(shed: str) -> None:
    """Of tuples and of ghosts; and a worker without hot state goes on from it."""
    limits = Limits("50 rows", shed=shed, ghosts=200)
    state = Committed()
    for number in range(4 * MANY_SEGMENTS):
        state, step = stepped(
            state, bucket_of(limits), a=rows(range(50 * number, 50 * number + 50))
        )
        assert step.rebuilt == (number > 0)
        assert (step.live, step.shed) == (50, 50 if number else 0)
        manifest = step.manifest
        for stored, left in ((manifest.segments[0], 50), (manifest.segments[2], step.ghosts)):
            assert len(stored) <= MANY_SEGMENTS
            assert sum(each.rows for each in stored) <= 2 * left + FEW_ROWS
        assert step.ghosts <= 200
        named = sum(map(len, manifest.segments))
        assert len(state.segments) == named + 1  # and the record
    state, step = stepped(state, bucket_of(limits), b=rows([10_000]))
    assert step.results.num_rows == 50
    assert step.lost is not None
    assert step.lost > 0
    state, step = stepped(state, bucket_of(limits), watermark=3_000_000)
    assert (step.live, step.ghosts) == (0, 0)
    assert list(state.segments) == [(-1, 0)]


def test_other_limits_at_a_restart() -> None:
    """Less memory drops tuples, more holds more; from no limits to some, but not back."""
    state, step = stepped(Committed(), bucket_of(None), a=rows(range(100)))
    state, step = stepped(state, bucket_of(Limits("60 rows")), b=rows([200]))
    assert step.results.num_rows + step.lost == 100
    assert (step.live, step.shed) == (60, 41)
    state, step = stepped(state, bucket_of(Limits("10 rows")), b=rows([300]))
    assert step.results.num_rows + step.lost == 100
    assert (step.live, step.shed, step.rebuilt) == (10, 51, True)
    state, step = stepped(state, bucket_of(Limits("1 MiB")), a=rows(range(400, 430)))
    assert step.live >= 40 - 10
    assert (step.shed, step.ghosts) == (0, 92)
    with pytest.raises(ps.SnapshotError, match="go on with limits="):
        stepped(state, bucket_of(None), b=rows([500]))
    with pytest.raises(ps.SnapshotError, match="use loss='exact', or a new checkpoint"):
        stepped(state, bucket_of(Limits("10 rows", loss="off")), b=rows([500]))


def test_memory_may_be_limited_after_a_service_rate_alone() -> None:
    """Which remembers no tuples that were shed, because it sheds none."""
    served = Limits(service_rate=1e6)
    state, step = stepped(Committed(), bucket_of(served), a=rows(range(20)))
    limits = Limits("10 rows", service_rate=1e6)
    state, step = stepped(state, bucket_of(limits), b=rows([30]))
    assert (step.live, step.rebuilt) == (10, True)
    state, step = stepped(state, bucket_of(limits), b=rows([40]))
    assert (step.live, step.rebuilt, step.ghosts > 0) == (10, True, True)
    with pytest.raises(ps.SnapshotError, match="tuples that were shed are remembered"):
        stepped(state, bucket_of(served), b=rows([50]))


def test_a_semi_join_that_gets_limits_keeps_what_has_not_matched() -> None:
    state, step = stepped(Committed(), bucket_of(None, SEMI), a=rows([1, 2]), b=rows([2]))
    assert step.results.num_rows == 2
    state, _ = stepped(state, bucket_of(None, SEMI), a=rows([3], key=2))
    state, step = stepped(state, bucket_of(Limits("9 rows"), SEMI), b=rows([3]))
    assert (step.results.num_rows, step.live) == (0, 3)


def test_a_timer_counts_what_is_lost() -> None:
    """A left row that has met only what was dropped may meet more until its window ends."""
    limits = Limits("1 row", shed="oldest")
    state, step = stepped(Committed(), bucket_of(limits, SEMI), b=rows([1]))
    state, step = stepped(state, bucket_of(limits, SEMI), b=rows([2], key=2))
    state, step = stepped(state, bucket_of(limits, SEMI), a=rows([3]))
    assert (step.lost, step.shed, step.live) == (0.0, 1, 1)
    lost = []
    while step.live:
        store = AttemptStore(state, crash_at=0)
        woken = bucket_of(limits, SEMI).wake("0", store, max(state.timers))
        assert woken is not None
        step, state = woken, store.committed()
        lost.append(step.lost)
    assert lost == [0.0, 1.0]  # the first timer was for the rows that came first


def test_a_record_that_is_damaged_or_missing_is_noticed() -> None:
    state, _ = stepped(Committed(), bucket_of(Limits("5 rows")), a=rows(range(9)))
    places = dict(state.segments)
    record = places[-1, 0]
    for damaged in (record[:-5], bytes([*record[:-9], record[-9] ^ 1, *record[-8:]]), b""):
        broken = Committed(state.manifest, {**places, (-1, 0): damaged})
        with pytest.raises(ps.SnapshotError, match="bucket"):
            stepped(broken, bucket_of(Limits("5 rows")), b=rows([20]))
    del places[-1, 0]
    with pytest.raises(ps.SnapshotError, match="missing"):
        stepped(Committed(state.manifest, places), bucket_of(Limits("5 rows")), b=rows([20]))
    other, _ = stepped(Committed(), bucket_of(Limits("3 rows")), a=rows(range(9)))
    mixed = Committed(state.manifest, {**state.segments, (-1, 0): other.segments[-1, 0]})
    with pytest.raises(ps.SnapshotError, match="in its segments, and should have"):
        stepped(mixed, bucket_of(Limits("5 rows")), b=rows([20]))
    assert state.manifest is not None
    binding = Binding.of(INNER).bound_with({0: SCHEMA, 1: SCHEMA})
    assert Manifest.unpack(state.manifest, binding, (1, 1)).loss == "exact"
