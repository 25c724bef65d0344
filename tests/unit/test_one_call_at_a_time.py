"""A join takes one call at a time, is neither copied nor pickled, and its metrics are both."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import asdict
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps

ROWS = pa.table({"ts": [1, 2], "k": [1, 2]})

CALLS: dict[str, Callable[[ps.Join], Any]] = {
    "push": lambda join: join.push(a=ROWS),
    "advance": lambda join: join.advance("a", 5),
    "punctuate": lambda join: join.punctuate("a", k=1),
    "punctuations": lambda join: join.punctuations(),
    "broken": lambda join: join.broken(),
    "resize": lambda join: join.resize("a", "3 s"),
    "limit": lambda join: join.limit("10 rows"),
    "finish": lambda join: join.finish(),
    "late": lambda join: join.late(),
    "metrics": lambda join: join.metrics,
    "workload": lambda join: join.workload(),
    "footprint": lambda join: join.footprint(),
    "why": lambda join: join.why(a={"ts": 1, "k": 1}, b={"ts": 1, "k": 1}),
    "snapshot": lambda join: join.snapshot(),
}


def started(**more: Any) -> ps.Join:
    streams = [ps.Stream(name, time="ts") for name in "ab"]
    return ps.WindowJoin(streams, on="k", within="1 s", **more).start()


def test_every_public_method_is_among_the_calls() -> None:
    public = {name for name in vars(ps.Join) if not name.startswith("_")}
    # Any thread may close a join; rows are kept within a push, or before a restore is over.
    assert public == {*CALLS, "close", "keep_broken", "keep_late"}


@pytest.mark.parametrize("verb", CALLS)
def test_a_second_thread_is_refused_and_changes_nothing(verb: str) -> None:
    begun, over = Event(), Event()

    def waits(x: pa.Array, y: pa.Array) -> pa.Array:
        begun.set()
        assert over.wait(60)
        return pa.array([True] * len(x))

    join = started(where=ps.udf(waits, ["a.k", "b.k"]))
    results: list[pa.Table] = []
    first = Thread(target=lambda: results.append(join.push(a=ROWS, b=ROWS)))
    first.start()
    try:
        assert begun.wait(60)
        with pytest.raises(
            ps.StateError, match=f"{verb} was called while another call is in this join"
        ):
            CALLS[verb](join)
    finally:
        over.set()
        first.join()
    assert results[0].num_rows == 2
    assert join.metrics.produced == 2
    assert join.metrics.streams["a"].arrived == 2


def test_a_predicate_cannot_call_into_its_join() -> None:
    def asks(x: pa.Array, y: pa.Array) -> pa.Array:
        join.push(a=ROWS)
        return pa.array([True] * len(x))

    join = started(where=ps.udf(asks, ["a.k", "b.k"]))
    with pytest.raises(ps.UdfError, match="push was called while another call is in this join"):
        join.push(a=ROWS, b=ROWS)


def test_a_refused_call_leaves_the_join_free() -> None:
    join = started()
    with pytest.raises(ps.InputError):
        join.push(c=ROWS)
    assert join.push(a=ROWS, b=ROWS).num_rows == 2


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_join_is_not_copied(way: Callable[[Any], Any]) -> None:
    join = started()
    join.push(a=ROWS)
    with pytest.raises(ps.StateError, match=r"neither copied nor pickled; .* snapshot\(\)"):
        way(join)
    assert join.push(b=ROWS).num_rows == 2


@pytest.mark.parametrize("limits", [None, ps.Limits("1 rows")])
def test_metrics_are_copied_and_pickled(limits: ps.Limits | None) -> None:
    streams = [ps.Stream(name, time="ts") for name in "ab"]
    join = ps.WindowJoin(streams, on="k", within="1 s").start(limits=limits)
    join.push(a=ROWS, b=ROWS)
    metrics = join.metrics
    for same in (copy.copy(metrics), copy.deepcopy(metrics), pickle.loads(pickle.dumps(metrics))):  # noqa: S301
        assert same == metrics
        assert str(same) == str(metrics)
    assert asdict(metrics)["streams"]["a"].arrived == 2
    with pytest.raises(TypeError):
        metrics.streams["a"] = None  # type: ignore[index]
