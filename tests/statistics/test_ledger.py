"""The ledger: what a join under a limit says it has lost.

Exact while all ghosts are remembered, and from then on a sample: an estimate that is right on
average, and an interval that holds the truth in at least 90 of 100 runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.samples import SampleStreams, uniform, zipf
from support.limited import check_books
from support.thoroughness import scaled

# Of that many runs the interval holds the truth in at least that many.
RUNS, HELD = scaled(quick=(10, 8), all=(100, 90), ci=(25, 22))
ROWS = 3000  # of each of two streams
BATCH_ROWS = 500
QUERY = ps.WindowJoin(
    [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")],
    on="k",
    within="500 ms",  # 500 tuples of each stream
    select=["a.v", "b.v"],
)
MEMORY = "300 rows"
GHOSTS = 150
POLICIES = ("random", "prob", "oldest")
LAWS = ("Zipf 1", "Zipf 0.5", "uniform")


def workload(law: str, seed: int, rows: int = ROWS) -> SampleStreams:
    if law == "uniform":
        return uniform(keys=500, seed=seed, rows=rows, streams="ab")
    return zipf(keys=500, skew=float(law.split()[1]), seed=seed, rows=rows, streams="ab")


@dataclass(frozen=True)
class Loss:
    """What a run says of itself at its end."""

    produced: int
    lost: int
    interval: tuple[int, int] | None
    ghosts: int
    answer: int  # a fingerprint of all results in their order


def loss(law: str, seed: int, limits: ps.Limits) -> Loss:
    join = QUERY.start(limits=limits)
    answer = []
    for batch in workload(law, seed).batches(BATCH_ROWS):
        answer.append(join.push(batch).combine_chunks())
        assert limits.ghosts is None or join.metrics.ghosts <= limits.ghosts
    metrics = join.metrics
    check_books(metrics, "so far")
    whole = pa.concat_tables(answer)
    fingerprint = hash(tuple(whole[name].to_numpy().tobytes() for name in whole.schema.names))
    return Loss(metrics.produced, metrics.lost, metrics.lost_interval, metrics.ghosts, fingerprint)


@cache
def exact(law: str, shed: str, seed: int) -> Loss:
    return loss(law, seed, ps.Limits(MEMORY, shed=shed, seed=seed))


@cache
def due(law: str, seed: int) -> int:
    join = QUERY.start()
    return sum(join.push(batch).num_rows for batch in workload(law, seed).batches(BATCH_ROWS))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("shed", POLICIES)
def test_an_exact_ledger_counts_every_result(law: str, shed: str) -> None:
    for seed in range(scaled(quick=3, all=10)):
        truth = exact(law, shed, seed)
        assert truth.interval is None
        assert truth.lost > 0
        assert truth.produced + truth.lost == due(law, seed)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("shed", POLICIES)
@pytest.mark.parametrize("how", ["sampled", "exact"])
def test_the_interval_holds_the_truth(law: str, shed: str, how: str) -> None:
    """Sampled from the start, and exact until there were too many ghosts."""
    held, errors, widths = 0, [], []
    for seed in range(RUNS):
        truth = exact(law, shed, seed)
        told = loss(law, seed, ps.Limits(MEMORY, shed=shed, seed=seed, loss=how, ghosts=GHOSTS))
        # How it is counted does not decide what goes.
        assert (told.produced, told.answer) == (truth.produced, truth.answer)
        assert told.interval is not None
        low, high = told.interval
        assert 0 <= low <= told.lost <= high
        held += low <= truth.lost <= high
        errors.append((told.lost - truth.lost) / truth.lost)
        widths.append((high - low) / truth.lost)
    assert held >= HELD
    # Right on average, as far as so many runs can tell.
    assert abs(np.mean(errors)) <= 4 * np.std(errors) / np.sqrt(RUNS) + 1e-9
    # And of some use: an interval that holds everything says nothing.
    assert np.median(widths) <= 1.0


def steps(limits: ps.Limits, law: str = "Zipf 1") -> Iterator[ps.Metrics]:
    join = QUERY.start(limits=limits)
    for batch in workload(law, 1).batches(50):
        join.push(batch)
        yield join.metrics


def test_the_ledger_turns_to_a_sample_when_there_are_too_many_ghosts() -> None:
    """Not before, for good, and what was counted until then stays counted."""
    unlimited = [metrics.ghosts for metrics in steps(ps.Limits(MEMORY, shed="random"))]
    assert max(unlimited) > GHOSTS
    exactly = [metrics.lost for metrics in steps(ps.Limits(MEMORY, shed="random"))]
    few = list(steps(ps.Limits(MEMORY, shed="random", ghosts=GHOSTS)))
    turned = [metrics.lost_interval is not None for metrics in few]
    first = turned.index(True)
    assert turned == sorted(turned)
    assert all(ghosts <= GHOSTS for ghosts in unlimited[:first])
    assert max(unlimited[: first + 1]) > GHOSTS or first > 0
    assert [metrics.lost for metrics in few[:first]] == exactly[:first]
    assert all(metrics.ghosts <= GHOSTS for metrics in few)
    assert all(metrics.lost_interval[0] >= exactly[first - 1] for metrics in few[first:])


def test_as_many_ghosts_as_are_needed_are_exact() -> None:
    most = max(metrics.ghosts for metrics in steps(ps.Limits(MEMORY, shed="prob")))
    *_, last = steps(ps.Limits(MEMORY, shed="prob", ghosts=2 * most))
    *_, truth = steps(ps.Limits(MEMORY, shed="prob"))
    assert last.lost_interval is None
    assert last.lost == truth.lost


@pytest.mark.parametrize("how", ["sampled", "exact"])
def test_with_one_ghost_little_is_known_and_that_is_said(how: str) -> None:
    """An interval cannot be narrow where next to nothing is remembered."""
    *_, last = steps(ps.Limits(MEMORY, shed="random", loss=how, ghosts=1))
    check_books(last, "at the end")
    assert last.ghosts <= 1
    assert last.lost_interval is not None


def test_without_a_ledger_nothing_is_remembered() -> None:
    *_, last = steps(ps.Limits(MEMORY, shed="random", loss="off"))
    assert (last.ghosts, last.lost, last.recall, last.lost_interval) == (0, None, None, None)
    assert last.shed > 0


@pytest.mark.parametrize("how", ["exact", "sampled"])
def test_nothing_is_due(how: str) -> None:
    """Of nothing, all has come out."""
    join = QUERY.start(limits=ps.Limits("5 rows", shed="random", loss=how))
    assert join.metrics.recall == 1.0
    left = pa.table({"ts": range(100), "k": range(100), "v": range(100)})
    right = pa.table({"ts": range(100), "k": range(1000, 1100), "v": range(100)})
    join.push(a=left, b=right)
    assert join.metrics.shed == 195
    assert (join.metrics.lost, join.metrics.recall) == (0, 1.0)
    check_books(join.metrics, "so far")


@pytest.mark.parametrize("shed", POLICIES)
def test_three_streams(shed: str) -> None:
    """A result of which two tuples were shed is lost once."""
    streams = [ps.Stream(name, time="ts") for name in "abc"]
    query = ps.WindowJoin(streams, on="k", within="50 ms", select=["a.v", "b.v", "c.v"])
    everything = zipf(keys=30, skew=1.0, seed=3, rows=1000, streams="abc")
    join = query.start(limits=ps.Limits("60 rows", shed=shed))
    whole = query.start()
    for batch in everything.batches(100):
        join.push(batch)
        whole.push(batch)
        assert join.metrics.produced + join.metrics.lost == whole.metrics.produced
        check_books(join.metrics, "so far")
    assert join.metrics.lost > 0


OTHERS = {
    "three streams": ("abc", {"on": "k"}),
    "different attributes": ("abc", {"where": "a.k = b.k AND b.m = c.m"}),
    "a band": ("ab", {"where": "abs(a.k - b.k) <= 1"}),
    "a key and a band": ("ab", {"on": "k", "where": "abs(a.m - b.m) <= 3"}),
    "order": ("ab", {"where": "a.k < b.k AND b.m < 2"}),
}


def few_rows(seed: int, names: str) -> Iterator[dict[str, pa.Table]]:
    """400 of each stream, one a millisecond, in batches of 50; keys are skewed."""
    rng = np.random.default_rng(seed)
    for start in range(0, 400, 50):
        yield {
            name: pa.table(
                {
                    "ts": np.arange(start, start + 50) * 1000 + rng.integers(0, 1000, 50),
                    "k": np.minimum(rng.zipf(1.5, 50), 60),
                    "m": rng.integers(0, 20, 50),
                }
            )
            for name in names
        }


def few_lost(query: ps.WindowJoin, seed: int, limits: ps.Limits) -> ps.Metrics:
    join = query.start(limits=limits)
    for batch in few_rows(seed, "".join(query.names)):
        join.push(batch)
    check_books(join.metrics, "so far")
    return join.metrics


@pytest.mark.parametrize("kind", OTHERS)
def test_the_interval_of_other_joins(kind: str) -> None:
    """Of more streams, and of predicates that no key stands for."""
    names, predicates = OTHERS[kind]
    streams = [ps.Stream(name, time="ts") for name in names]
    query = ps.WindowJoin(streams, within="60 ms", **predicates)
    held = 0
    for seed in range(RUNS):
        truth = few_lost(query, seed, ps.Limits("50 rows", shed="random", seed=seed))
        sampled = ps.Limits("50 rows", shed="random", seed=seed, loss="sampled", ghosts=40)
        told = few_lost(query, seed, sampled)
        assert truth.lost_interval is None
        assert told.produced == truth.produced
        # Without more ghosts than are remembered nothing has to be estimated.
        low, high = told.lost_interval or (told.lost, told.lost)
        assert 0 <= low <= told.lost <= high
        held += low <= truth.lost <= high
    assert held >= HELD
