"""Tuples that stay in one bucket and are guests in all others: each result comes out once.

That is how a join without a key is divided. Which bucket a tuple stays in is drawn here, so no
property of the function that decides it on Spark is relied on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.engine.arrivals import Arrivals
from penstock.engine.driver import Driver
from penstock.engine.words import tuple_words
from penstock.kernels.sentinels import BEGINNING
from penstock.model.binding import Binding
from penstock.model.plan import Plan
from penstock.spark.bucket_count import BucketCount
from penstock.spark.rows.blobs import blob_schema, read_blobs
from penstock.spark.rows.packing import Packer, blob_schemas
from penstock.spark.state.bucket import Bucket
from penstock.spark.state.bucket_engine import BucketEngine
from penstock.spark.state.hot import ProcessMemory
from support.clauses import TERMS
from support.oracle import Row, Step, answer
from support.scenario import Scenario, table
from support.simulator import AttemptStore, Committed
from support.strategies import arrivals, batches, serving, streams

# Those over two streams or one that leave the join without a key.
EQUALITIES = ("a.x = b.x", "a.y = b.x")
WITHOUT_KEY = [
    text
    for text, (names, _) in TERMS.items()
    if set(names) <= {"a", "b"} and text not in EQUALITIES
]


@dataclass(frozen=True)
class Spread:
    """homes: the bucket in which the tuple of each id stays. lost: after which steps the windows
    have to be filled from segments."""

    scenario: Scenario
    buckets: int
    homes: Sequence[int]
    lost: frozenset[int]


@st.composite
def spreads(draw: st.DrawFn) -> Spread:
    joined = [replace(stream, key=()) for stream in draw(streams(()))[:2]]
    kind = draw(st.sampled_from(("time", "time", "mixed", "tumbling", "between")))
    bounds = None
    if kind == "mixed":
        others = ({}, {"window_us": inf}, {"window_us": inf, "since": 5})
        joined = [replace(stream, **draw(st.sampled_from(others))) for stream in joined]
    elif kind == "tumbling":
        slot = draw(st.sampled_from((1, 7, 20)))
        joined = [replace(stream, window_us=inf, slot_us=slot) for stream in joined]
    elif kind == "between":
        low, high = sorted(draw(st.tuples(*[st.sampled_from((-40, -8, -1, 0, 2, 9, 41))] * 2)))
        bounds = (low, high)
        lengths = zip(joined, (high, -low), strict=True)
        joined = [replace(stream, window_us=length) for stream, length in lengths]
    numbers = (-1, 0, 1, 2, 3, 5, None)
    comes = draw(arrivals("ab", ("x", "y"), (numbers, numbers)))
    chosen = draw(st.lists(st.sampled_from(WITHOUT_KEY), min_size=1, max_size=3, unique=True))
    pushes = draw(batches(comes, "ab"))
    scenario = Scenario(
        joined,
        [Step(push) for push in pushes],
        (pa.int64(), pa.int64()),
        between=bounds,
        where={text: TERMS[text] for text in chosen},
        as_udf=draw(st.sets(st.sampled_from(chosen))),
    )
    plans = {name: st.sampled_from(serving(scenario.query, name)) for name in "ab"}
    scenario = replace(scenario, indexes=draw(st.none() | st.fixed_dictionaries(plans)))
    buckets = draw(st.integers(1, 5))
    homes = st.lists(st.integers(0, buckets - 1), min_size=len(comes), max_size=len(comes))
    lost = st.frozensets(st.integers(0, max(len(pushes) - 1, 0)))
    return Spread(scenario, buckets, draw(homes), draw(lost))


class Checked(ProcessMemory):
    """Looks at every share that is kept."""

    def publish(self, bucket: str, token: str, share: BucketEngine) -> None:
        share.driver.check()
        super().publish(bucket, token, share)


@pytest.mark.jit_off
@given(spreads())
def test_buckets_together_give_the_answer(spread: Spread) -> None:
    """In every step, with what is late; and every tuple is stored once."""
    scenario = spread.scenario
    query = scenario.query
    assert query.keys == ((), ())
    schemas = {number: scenario.schema(each) for number, each in enumerate(scenario.streams)}
    binding = Binding.of(query).bound_with(schemas)
    plan = Plan.of(query, scenario.indexes)

    def parts(step: Step, bucket: int, *, at_home: bool) -> dict[int, list[pa.RecordBatch]]:
        chosen: dict[int, list[pa.RecordBatch]] = {}
        for number, stream in enumerate(scenario.streams):
            rows: Sequence[Row] = [
                row
                for row in step.rows.get(stream.name, ())
                if (spread.homes[row["id"]] == bucket) == at_home
            ]
            if rows:
                names = blob_schema(binding, number).names
                packed = table(schemas[number], rows).select(names)
                chosen[number] = packed.combine_chunks().to_batches()
        return chosen

    stores = [AttemptStore(Committed(), crash_at=0) for _ in range(spread.buckets)]
    hot = Checked()
    terms = list(scenario.where.values())
    watermark = BEGINNING
    outcomes = answer(scenario.streams, scenario.steps, scenario.between, terms)
    for number, (step, outcome) in enumerate(zip(scenario.steps, outcomes, strict=True)):
        got: Counter[tuple[int, ...]] = Counter()
        late: Counter[tuple[int, int]] = Counter()
        stored = arrived = 0
        for bucket, store in enumerate(stores):
            home, guests = (parts(step, bucket, at_home=each) for each in (True, False))
            done = Bucket(binding, plan, hot).step(str(bucket), store, home, watermark, guests)
            got.update(zip(*(done.results[f"{name}_id"].to_pylist() for name in "ab"), strict=True))
            for stream, rows in done.late.items():
                late.update((stream, each) for each in rows.column("id").to_pylist())
            arrived += sum(done.manifest.arrived)
            stored += done.live
        assert got == Counter(tuple(row["id"] for row in rows) for rows, _ in outcome.results)
        assert late == Counter(
            (stream, row["id"])
            for stream, each in enumerate(scenario.streams)
            for row in outcome.late[each.name]
        )
        so_far = [row for step in scenario.steps[: number + 1] for row in step.rows.values()]
        assert arrived == sum(len(rows) for rows in so_far)
        assert stored <= arrived
        watermark = BEGINNING if outcome.watermark == -inf else int(outcome.watermark)
        if number in spread.lost:
            hot = Checked()


QUERY = ps.WindowJoin(
    [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], where="a.v < b.v", within="1000 us"
)
SCHEMA = pa.schema([("ts", pa.int64()), ("v", pa.int64()), ("text", pa.string())])


def some(begin: int, rows: int, *, guests: int) -> Arrivals:
    """One stays of each `guests` and one; time goes on by 1 for each row."""
    ts = np.arange(begin, begin + rows)
    columns = {
        "ts": pa.array(ts),
        "v": pa.array(ts % 7),
        "text": pa.array(["x" * 500] * rows),
    }
    is_guest = ts % (guests + 1) != 0
    binding = Binding.of(QUERY).bound_with({0: SCHEMA, 1: SCHEMA})
    words = tuple_words(binding, 0, columns, rows).words
    return Arrivals(ts, words, columns, guests=is_guest)


@pytest.mark.slow
@pytest.mark.parametrize("index", ["bplus_tree", "t_tree", "scan"])
def test_guests_do_not_pile_up(index: str) -> None:
    """Neither their places in the ring nor what they carry, though tuples that stay are older."""
    binding = Binding.of(QUERY).bound_with({0: SCHEMA, 1: SCHEMA})
    driver = Driver(binding, Plan.of(QUERY, index))
    rows, sizes, held = 200, [], []
    for begin in range(0, 100 * rows, rows):
        driver.run({stream: some(begin, rows, guests=9) for stream in (0, 1)}, begin - 1)
        driver.check()
        assert driver.windows.live(0) <= (1000 + 2 * rows) // 10 + 1
        sizes.append(driver.windows.size(0))
        held.append(driver.windows.payload_bytes)
    live = driver.windows.live(0)
    assert live >= 100
    assert driver.windows.live(0) + driver.windows.expired(0) == 100 * rows // 10
    assert max(sizes) <= 4 * (live + rows)
    assert max(held) <= 2 * 2 * 600 * max(sizes)
    assert max(held[50:]) <= max(held[:50])


def test_one_that_stays_for_ever_among_guests() -> None:
    """What is behind it in the ring is closed up, again and again."""
    unbounded = replace(QUERY, within="unbounded")
    binding = Binding.of(unbounded).bound_with({0: SCHEMA, 1: SCHEMA})
    driver = Driver(binding, Plan.of(unbounded))
    produced = 0
    for begin in range(0, 20_000, 100):
        arrivals = {stream: some(begin, 100, guests=19_999) for stream in (0, 1)}
        produced += driver.run(arrivals, BEGINNING).num_rows
        driver.check()
    assert [driver.windows.live(stream) for stream in (0, 1)] == [1, 1]
    assert driver.windows.size(0) <= 512
    assert driver.windows.payload_bytes < 2 * 2 * 600 * 512
    # The first of each has v = 0: greater are six of seven of stream b, less none of a.
    assert produced == sum(ts % 7 > 0 for ts in range(20_000))


def test_where_a_row_stays_depends_on_what_is_in_it() -> None:
    """Not on its task, nor on the rows beside it; and all buckets get about as many."""
    schema = pa.schema([*SCHEMA, ("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    binding = Binding.of(QUERY).bound_with({0: schema, 1: schema})
    texts = [None, "", "some text"]
    rows = [
        {"ts": 7, "v": None, "text": texts[each % 3], "id": each, "tags": [str(each % 5), None]}
        for each in range(2_000)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    mixed = batch.take(pa.array(np.random.default_rng(0).permutation(len(rows))))

    def places(parts: Sequence[pa.RecordBatch]) -> tuple[Counter[Any], Counter[Any]]:
        home: Counter[Any] = Counter()
        guests: Counter[Any] = Counter()
        for part in parts:
            for packed in Packer(binding, 1, BucketCount(4))([part]):
                for row in packed.to_pylist():
                    schemas = blob_schemas(binding)
                    read = read_blobs(schemas, [row["stream"]], [row["data"]])
                    for into, got in zip((home, guests), read, strict=True):
                        for blob in got.get(1, []):
                            ids = blob.column("id").to_pylist()
                            into.update((row["bucket"], each) for each in ids)
        return home, guests

    home, guests = places([batch])
    assert (home, guests) == places([mixed[:700], mixed[700:701], mixed[701:]])
    assert Counter(each for _, each in home) == Counter(range(len(rows)))
    assert home + guests == Counter((bucket, each) for bucket in range(4) for each in range(2_000))
    assert all(400 < count < 600 for count in Counter(bucket for bucket, _ in home).values())
