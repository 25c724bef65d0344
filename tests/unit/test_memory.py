"""What is kept: as much as lives, nothing of the caller's, and right however long it runs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from penstock.windows import footprint, invariants
from penstock.windows.allocator import Heap
from penstock.windows.payload.arrow_runs import ArrowRuns
from penstock.windows.payload.byte_strings import ByteStrings

QUERY = ps.WindowJoin(
    [ps.Stream("a", time="ts", lateness="1 hour"), ps.Stream("b", time="ts")],
    on="k",
    within="10 us",
)


def rows(ts: list[int], keys: list[int], payload: pa.Array) -> pa.Table:
    return pa.table({"ts": pa.array(ts, pa.int64()), "k": keys, "p": payload})


def test_text_beyond_two_gigabytes_of_all_time() -> None:
    """Starts count every byte ever written: 32 bits would not do."""
    column = ByteStrings(pa.string(), 63, Heap())
    column._base = column._first = column._end = 2**31 - 100
    texts = [f"{number:03d}" * 30 for number in range(40)]
    for number, text in enumerate(texts):
        column.write(pa.array([text]), number)
        column.release(max(number - 2, 0), number + 1)
    last = np.arange(38, 40)
    assert column.take(last, last).to_pylist() == texts[38:]


@pytest.mark.parametrize(
    "payload",
    [
        pa.array(["x" * 1000] * 8),
        pa.array([["y" * 1000]] * 8),
        pa.array(["z" * 1000] * 8).dictionary_encode(),
    ],
    ids=["text", "nested", "dictionary"],
)
def test_an_early_tuple_does_not_pin_what_came_after_it(payload: pa.Array) -> None:
    join = QUERY.start()
    join.push(a=rows([10**8], [0], payload[:1]))
    sizes = []
    for step in range(600):
        ts = [step * 100 + i for i in range(8)]
        batch = rows(ts, list(range(8)), payload)
        join.push(a=batch, b=batch)
        join.advance("a", step * 100)
        sizes.append(join.metrics.bytes)
    assert join.metrics.streams["a"].live < 600
    assert max(sizes[300:]) <= 1.1 * max(sizes[:300])


def test_values_that_left_leave_the_dictionary() -> None:
    join = QUERY.start()
    for step in range(50):
        texts = pa.array([f"value {step} {number}" for number in range(100)]).dictionary_encode()
        batch = rows([step * 100] * 100, list(range(100)), texts)
        result = join.push(a=batch, b=batch)
        join.advance("a", step * 100)
    (chunk,) = result["a_p"].chunks
    assert len(chunk.dictionary) == 100
    assert join.metrics.bytes < 500_000


def test_nothing_of_the_caller_is_kept() -> None:
    """Neither his memory nor what he writes into it afterwards."""
    values = np.arange(4, dtype=np.int64)
    nested = pa.FixedSizeListArray.from_arrays(pa.array(values), 1)
    join = QUERY.start()
    join.push(a=rows([1, 1, 1, 1], [0, 1, 2, 3], nested))
    values[:] = 99
    result = join.push(b=rows([1], [2], nested[:1]))
    assert result["a_p"].to_pylist() == [[2]]


def test_a_burst_is_given_back() -> None:
    join = QUERY.start()
    keys = np.arange(400_000)
    burst = pa.table({"ts": np.full(400_000, 1), "k": keys, "p": keys})
    join.push(a=burst, b=burst[:1])
    during = join.metrics.bytes
    join.advance("a", 1000)
    join.advance("b", 1000)
    assert join.metrics.live == 0
    assert join.metrics.bytes < during / 2
    invariants.check(join.driver.windows)
    again = rows([2000], [5], pa.array([1]))
    assert join.push(a=again, b=again).num_rows == 1


def test_room_that_cannot_be_made_leaves_the_windows_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    join = QUERY.start()
    ones = pa.array([1] * 60)
    join.push(a=rows([1] * 60, list(range(60)), ones))
    monkeypatch.setattr(footprint, "_LARGEST_RING", 64)
    with pytest.raises(ps.StateError, match="shorten the window"):
        join.push(a=rows([1] * 60, list(range(60)), ones), b=rows([1] * 60, [0] * 60, ones))
    invariants.check(join.driver.windows)
    with pytest.raises(ps.StateError, match="restore the last snapshot"):
        join.push(b=rows([1], [0], ones[:1]))


def test_a_call_that_was_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    join = QUERY.start()
    one = rows([1], [1], pa.array([1]))
    join.push(a=one)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(join.driver, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        join.push(b=one)
    for call in (join.snapshot, join.finish, lambda: join.push(b=one)):
        with pytest.raises(ps.StateError, match="half-way"):
            call()
    assert join.metrics.streams["a"].arrived == 1


def test_results_that_fit_no_single_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow refuses more than 2 GiB in an array of lists; here, more than three rows."""
    plain = ArrowRuns.take

    def small(self: ArrowRuns, sequences: np.ndarray, positions: np.ndarray) -> pa.Array:
        if len(sequences) > 3:
            raise pa.ArrowInvalid("overflow")
        return plain(self, sequences, positions)

    monkeypatch.setattr(ArrowRuns, "take", small)
    join = QUERY.start()
    lists = pa.array([[number] for number in range(20)])
    join.push(a=rows([1] * 20, [7] * 20, lists))
    result = join.push(b=rows([1], [7], lists[:1]))
    assert sorted(result["a_p"].to_pylist()) == lists.to_pylist()
    assert QUERY.restore(join.snapshot()).metrics.live == 21


def test_a_dictionary_of_more_values_than_its_index_counts_is_saved() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    join = QUERY.start()
    for part in range(3):
        texts = pa.array([f"{part} {number}" for number in range(100)])
        join.push(a=rows([1] * 100, [7] * 100, texts.dictionary_encode().cast(kind)))
    restored = QUERY.restore(join.snapshot())
    result = restored.push(b=rows([1], [7], pa.array(["x"]).dictionary_encode().cast(kind)))
    assert result.num_rows == 300
    assert result["a_p"].type == kind


def test_read_only_input_needs_no_further_compilation() -> None:
    from penstock.kernels.loop import arrive  # a look inside

    if not hasattr(arrive, "signatures"):
        pytest.skip("nothing is compiled with the JIT off")
    join = QUERY.start()
    batch = rows([1], [1], pa.array([1]))
    join.push(a=batch)
    before = len(arrive.signatures)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_table(batch)
    join.push(b=pa.ipc.open_stream(sink.getvalue()).read_all())
    assert len(arrive.signatures) == before


def test_a_type_that_cannot_be_kept_is_refused_at_once() -> None:
    encoded = pa.StructArray.from_arrays([pc.run_end_encode(pa.array(["x"]))], ["s"])
    join = QUERY.start()
    with pytest.raises(ps.SchemaError, match="'p'"):
        join.push(a=rows([1], [1], encoded))
    assert join.metrics.streams["a"].arrived == 0


def test_nothing_is_live_after_the_end() -> None:
    """Also of windows by key, where tuples that newer ones outranked still stand in the ring."""
    two = [ps.Stream("a", time="ts", window="2 rows per key"), ps.Stream("b", time="ts")]
    join = ps.WindowJoin(two, on="k", within="1 s").start()
    table = pa.table({"ts": range(10), "k": [1] * 10})
    join.push(a=table, b=table)
    join.finish()
    for stream in join.metrics.streams.values():
        assert (stream.live, stream.expired) == (0, 10)


@pytest.mark.parametrize("shed", ["oldest", "random"])
def test_long_text_under_a_limit_in_bytes(shed: str) -> None:
    """What is dropped gives its bytes back, also if nothing else has to move."""
    join = QUERY.start(limits=ps.Limits("2 MiB", shed=shed))
    for number in range(40):
        row = {"ts": [number], "k": [number], "v": ["x" * 100_000]}
        join.push(a=pa.table(row))
        assert join.metrics.bytes <= 2 << 20
    assert join.metrics.live >= 8
