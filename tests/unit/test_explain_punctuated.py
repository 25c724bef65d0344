"""What `explain` says of windows under promises: the estimate, its domain, and live tuples."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import penstock as ps
from penstock.cli import app
from penstock.planning.punctuated import PunctuatedWindow, punctuated_windows


def query(names: str = "ab", window: str = "10 seconds", **promises: Any) -> ps.WindowJoin:
    """promises: of the first stream."""
    first, *others = names
    streams = [ps.Stream(first, time="ts", **promises), *(ps.Stream(n, time="ts") for n in others)]
    return ps.WindowJoin(streams, on="k", within=window)


def windows_of(join: ps.WindowJoin, workload: ps.Workload) -> dict[str, PunctuatedWindow]:
    kept = {name: workload.live_tuples(join, name) for name in join.names}
    return punctuated_windows(join, workload, kept)


SHOWN = "what the windows keep"
GIVEN = ps.Workload({"a": 100, "b": 60}, distinct=2_000, punctuation_rates={"a": 50})


# The estimate.


def test_the_estimate_of_the_paper() -> None:
    """60 * 10 * (1 - 50 * 10 / 2000)."""
    own, other = windows_of(query(), GIVEN).values()
    assert (own.closed, own.expected, own.closing) == (0, 1_000, {})
    assert (other.tuples, other.keys, other.closing) == (600, 2_000, {"a": 50})
    assert (other.closed, other.expected, other.is_clamped) == (0.25, 450, False)


RATES = st.floats(0, 1e6, allow_subnormal=False)


@given(
    rates=st.tuples(RATES, RATES),
    punctuation_rate=RATES,
    keys=st.floats(1, 1e9),
    length=st.integers(0, 10_000),
    lateness=st.integers(0, 100),
)
def test_the_estimate_keeps_to_its_domain(
    rates: tuple[float, float], punctuation_rate: float, keys: float, length: int, lateness: int
) -> None:
    streams = [ps.Stream("a", time="ts", lateness=f"{lateness} s"), ps.Stream("b", time="ts")]
    join = ps.WindowJoin(streams, on="k", within=f"{length} seconds")
    workload = ps.Workload(
        dict(zip("ab", rates, strict=True)),
        distinct=keys,
        punctuation_rates={"a": punctuation_rate},
    )
    found = windows_of(join, workload)["b"]
    closed = punctuation_rate * length / keys if rates[1] else 0.0
    assert found.closed is not None
    assert found.expected is not None
    assert found.closed == pytest.approx(min(closed, 1.0))
    assert 0 <= found.closed <= 1
    assert not (found.is_clamped and found.closed < 1)
    if closed != pytest.approx(1):
        assert found.is_clamped == (closed > 1)
    assert found.expected == pytest.approx(
        rates[1] * length * (1 - found.closed) + rates[1] * lateness
    )
    assert found.expected <= found.tuples


def test_a_clamped_estimate_says_so() -> None:
    """6000 keys are closed in the time of a window, and 600 are in it."""
    many = ps.Workload(100, distinct=600, punctuation_rates={"a": 600})
    told = query().explain(many)
    assert told.punctuated is not None
    assert (told.punctuated["b"].expected, told.punctuated["b"].is_clamped) == (0, True)
    assert "100%*" in str(told)
    assert "* clamped, for the estimate would be below 0" in " ".join(str(told).split())
    assert json.loads(told.to_json())["punctuated"]["b"]["is_clamped"] is True
    assert "clamped" not in str(query().explain(GIVEN))


def test_of_many_streams_all_others_must_close_a_key() -> None:
    rates = {"a": 100, "b": 50}
    found = windows_of(query("abc"), ps.Workload(60, distinct=2_000, punctuation_rates=rates))
    assert found["c"].closed == pytest.approx(0.5 * 0.25)
    assert found["a"].closed == found["b"].closed == 0  # c closes none
    assert found["c"].expected == pytest.approx(600 * 0.875)


def test_limits_are_kept_to() -> None:
    told = query().explain(GIVEN, limits=ps.Limits(memory="160 rows"))
    assert told.punctuated is not None
    assert told.punctuated["b"].tuples == told.punctuated["b"].expected == pytest.approx(60)


def test_the_text_in_the_documentation_is_true() -> None:
    page = Path(__file__).parents[2] / "docs" / "punctuations.md"
    _, section = page.read_text(encoding="utf-8").split("**From numbers.**")
    code, shown = re.findall(r"```(?:python|text)\n(.*?)\n```", section, re.DOTALL)[:2]
    told: dict[str, Any] = {}
    exec(code, told)  # noqa: S102  the page's own example
    assert f"\n\n{shown}\n\n" in str(told["plan"])


# How often a stream promises.


@pytest.mark.parametrize(
    ("promises", "rate"),
    [
        ({"unique": True}, 100),
        ({"clustered": True}, 200),  # 2000 keys in 10 seconds
        ({"increasing": True}, 200),
        ({"clustered": True, "unique": True}, 100),
        ({"punctuation": "is_end"}, None),
    ],
)
def test_a_rate_follows_from_what_a_stream_promises(
    promises: dict[str, Any], rate: float | None
) -> None:
    workload = ps.Workload(100, distinct=2_000)
    assert windows_of(query(**promises), workload)["b"].closing == {"a": rate}
    told = ps.Workload(100, distinct=2_000, punctuation_rates={"a": 7})
    assert windows_of(query(**promises), told)["b"].closing == {"a": 7}


def test_what_is_not_known_is_not_estimated() -> None:
    workload = ps.Workload(100, distinct=2_000)
    expiring = windows_of(query(expires={"b": "until"}), workload)
    assert expiring["a"].closing == {"b": None}
    assert (expiring["a"].closed, expiring["a"].expected) == (None, None)
    assert expiring["b"].expected == 1_000
    text = str(query(punctuation="is_end").explain(workload))
    assert "how often a promises is not known: give punctuation_rates=" in text
    without_keys = ps.Workload(100, selectivities=0.01)
    assert windows_of(query(clustered=True), without_keys)["b"].closing == {"a": None}
    text = str(query(unique=True).explain(without_keys))
    assert "how many keys a window has is not known: give distinct=" in text


def test_nothing_is_said_without_promises() -> None:
    plain = query().explain(ps.Workload(100, distinct=2_000))
    assert plain.punctuated is None
    assert SHOWN not in str(plain)
    assert query(unique=True).explain().punctuated is None  # nothing is known of the streams


# Beside a running join.


def closed_in_order(rows: int, every: int) -> pa.Table:
    """100 tuples a second, each of a key of its own; every Nth is closed by a marked row."""
    ts = np.arange(rows) * 10_000
    ends = ts[::every]
    return pa.table(
        {
            "ts": np.concatenate([ts, ends + 1]),
            "k": np.concatenate([np.arange(rows), np.arange(rows)[::every]]),
            "is_end": np.repeat([False, True], [rows, len(ends)]),
        }
    ).sort_by("ts")


def test_live_tuples_stand_beside_those_expected() -> None:
    join = query(punctuation="is_end")
    first = closed_in_order(5_000, 4)
    second = first.filter(pc.invert(first["is_end"])).select(["ts", "k"])
    with join.start() as running:
        for begin in range(0, 50_000_000, 1_000_000):
            inside = pc.equal(pc.divide(first["ts"], 1_000_000), begin // 1_000_000)
            of_second = pc.divide(second["ts"], 1_000_000)
            own = second.filter(pc.equal(of_second, begin // 1_000_000))
            running.push(a=first.filter(inside), b=own)
        workload = running.workload()
        assert workload.rate("b") == pytest.approx(100, rel=0.01)
        assert workload.punctuation_rate("a") == pytest.approx(25, rel=0.01)
        assert workload.distinct_keys("b") == pytest.approx(1_000, rel=0.02)
        told = join.explain(running=running)
        assert told.punctuated is not None
        found = told.punctuated["b"]
        assert found.live == running.metrics.streams["b"].live
        assert found.expected == pytest.approx(found.live, rel=0.02)
        assert f"{found.live:,}" in str(told)
        assert "live now" in str(told)
        by_hand = join.explain(ps.Workload(100, distinct=1_000), running=running)
        assert by_hand.punctuated is not None
        assert by_hand.punctuated["b"].live == found.live
        with pytest.raises(ps.PlanError, match="running= is a join of the streams"):
            query("cd").explain(running=running)


def test_punctuations_by_hand_are_counted_and_useless_ones_are_not() -> None:
    schema = pa.schema({"ts": pa.int64(), "k": pa.int64()})
    with query().start(schemas={"a": schema}) as running:
        running.punctuate("a", k=99, at=0)  # before any batch: there is no time yet
        for second in range(10):
            table = pa.table({"ts": [second * 1_000_000], "k": [second]})
            running.push(a=table, b=table)
            running.punctuate("a", k=second, at=second * 1_000_000)
            running.punctuate("b", k=ps.NOTHING)
        rates = running.workload().punctuation_rates
    assert rates == {"a": pytest.approx(10 / 9)}


def test_a_join_without_promises_shows_what_is_live() -> None:
    with query().start() as running:
        table = pa.table({"ts": [0, 1_000_000], "k": [1, 2]})
        running.push(a=table, b=table)
        assert running.workload().punctuation_rates is None
        told = query().explain(running=running)
    assert told.punctuated is not None
    assert told.punctuated["a"].live == 2
    assert told.punctuated["a"].closed == 0


# The command.


def test_punctuation_rates_from_a_shell() -> None:
    streams = ("a,rate=100,punctuation_rate=50", "b,rate=60,distinct=2000")
    options = [part for each in streams for part in ("--stream", each)]
    shown = CliRunner().invoke(app, ["explain", *options, "--on", "k", "--within", "10 s"])
    assert shown.exit_code == 0, shown.output
    assert SHOWN in shown.output
    assert "a 50" in shown.output
