"""Limits that make no sense are refused, with words that say what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.kernels.budget.kinds import KINDS
from penstock.model.limits import POLICIES, parse_memory

TWO = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
TABLE = pa.table({"ts": [1, 2], "k": [1, 1], "v": [3, 5], "t": ["x", "y"]})


def of(within: str = "10 us", **more: Any) -> ps.WindowJoin:
    return ps.WindowJoin(TWO, on="k", within=within, **more)


def refused(make: Callable[[], Any], *told: str) -> None:
    """Whatever the error is called, it says these words."""
    with pytest.raises(ps.PenstockError) as raised:
        make()
    message = str(raised.value)
    missing = [words for words in told if words not in message]
    assert not missing, f"{missing} not in {message!r}"


def test_every_policy_has_a_victim_and_a_reason() -> None:
    assert list(KINDS) == list(POLICIES)
    assert all(policy.reason.format(worth="much") for policy in POLICIES.values())


MEMORIES = (
    "", " ", "rows", "5", "-5 rows", "1.5 rows", "5 parsecs", "5 rows or so", "five rows",
    "1e3 rows", ", rows", "_ MiB", "5 MiB 3 rows", "nan MiB", "inf rows", "1..5 MiB", 5, 5.0,
    True, ["5 rows"], b"5 rows", float("inf"), "9" * 400 + " GiB",
)  # fmt: skip


@pytest.mark.parametrize("memory", MEMORIES, ids=repr)
def test_memory_that_is_none(memory: Any) -> None:
    with pytest.raises(ps.PlanError) as raised:
        ps.Limits(memory=memory)
    message = str(raised.value)
    assert "memory" in message
    assert repr(memory)[:50] in message
    assert "rows" in message
    assert "MiB" in message


@pytest.mark.parametrize("memory", ["0 rows", "0 tuples", "00 row"])
def test_a_memory_that_holds_nothing(memory: str) -> None:
    with pytest.raises(ps.PlanError, match=f"memory='{memory}' holds no tuple.*1 row or more"):
        ps.Limits(memory)
    join = of().start(limits=ps.Limits("1 row"))
    with pytest.raises(ps.PlanError, match="holds no tuple"):
        join.limit(memory=memory)


@pytest.mark.parametrize(
    ("text", "rows", "size"),
    [
        ("1 row", 1, None),
        (" 100_000 tuples ", 100_000, None),
        ("1,000,000 ROWS", 1_000_000, None),
        ("5rows", 5, None),
        ("512 B", None, 512),
        ("2 kB", None, 2000),
        ("1.5 KiB", None, 1536),
        ("3 mib", None, 3 << 20),
        ("2 GB", None, 2 * 10**9),
        ("1 GiB", None, 1 << 30),
    ],
)
def test_memory_that_is_some(text: str, rows: int | None, size: int | None) -> None:
    memory = ps.Limits(text).memory
    assert (memory.rows, memory.bytes) == (rows, size)
    assert parse_memory(str(memory), "memory") == memory


@pytest.mark.parametrize(
    ("what", "got", "choices"),
    [
        ("shed", "lru", tuple(POLICIES)),
        ("shed", "PROB", tuple(POLICIES)),
        ("shed", None, tuple(POLICIES)),
        ("pool", "common", ("shared", "fixed")),
        ("pool", 2, ("shared", "fixed")),
        ("loss", "estimated", ("exact", "sampled", "off")),
        ("loss", False, ("exact", "sampled", "off")),
    ],
)
def test_a_choice_that_is_none(what: str, got: Any, choices: tuple[str, ...]) -> None:
    with pytest.raises(ps.PlanError) as raised:
        ps.Limits("5 rows", **{what: got})
    for words in (what, repr(got), *choices):
        assert words in str(raised.value)


@pytest.mark.parametrize("what", ["seed", "ghosts"])
@pytest.mark.parametrize("got", [-1, 1.5, "3", True, [1]])
def test_a_number_that_is_none(what: str, got: Any) -> None:
    with pytest.raises(ps.PlanError) as raised:
        ps.Limits("5 rows", **{what: got})
    for words in (what, repr(got), "whole number"):
        assert words in str(raised.value)


def test_no_ghosts() -> None:
    """Nothing could be counted by them."""
    with pytest.raises(ps.PlanError, match=r"ghosts=0 .*loss='off'"):
        ps.Limits("5 rows", ghosts=0)


@pytest.mark.parametrize("got", ["5 rows", "4 B", "lots", 0, None])
def test_statistics_that_are_too_few(got: Any) -> None:
    with pytest.raises(ps.PlanError, match="statistics") as raised:
        ps.Limits("5 rows", statistics=got)
    assert repr(got) in str(raised.value)


@pytest.mark.parametrize("limits", ["5 rows", 5, {"memory": "5 rows"}, ps.Limits])
def test_what_is_no_limits(limits: Any) -> None:
    refused(lambda: of().start(limits=limits), "limits", "Limits(memory=")


@pytest.mark.parametrize("shed", [name for name, each in POLICIES.items() if each.needs_end])
@pytest.mark.parametrize("within", ["unbounded", "since 1970-01-01T00:00:00Z"])
def test_windows_without_an_end(shed: str, within: str) -> None:
    """The time left to a tuple is what it is worth; one stream without an end is enough."""
    one = [ps.Stream("a", time="ts", window=within), ps.Stream("b", time="ts")]
    for query in (of(within), ps.WindowJoin(one, on="k", within="1 s")):
        with pytest.raises(ps.PlanError) as raised:
            query.start(limits=ps.Limits("5 rows", shed=shed))
        for words in (repr(shed), "'a'", "prob"):
            assert words in str(raised.value)


@pytest.mark.jit_off
@pytest.mark.parametrize("shed", ["random", "oldest", "prob"])
@pytest.mark.parametrize("within", ["unbounded", "since 1970-01-01T00:00:00Z", "0 seconds"])
def test_policies_that_need_no_end(shed: str, within: str) -> None:
    join = of(within).start(limits=ps.Limits("1 rows", shed=shed))
    join.push(a=TABLE, b=TABLE)
    assert join.metrics.live <= 1


@pytest.mark.parametrize("how", ["left", "right", "full", "anti"])
def test_joins_that_give_out_what_matches_nothing(how: str) -> None:
    """A tuple that is gone has not been proved to match nothing."""
    with pytest.raises(ps.PlanError) as raised:
        of(how=how).start(limits=ps.Limits("5 rows"))
    for words in (how, "no limit", "inner", "semi"):
        assert words in str(raised.value)


@pytest.mark.parametrize("window", ["5 rows", "5 rows per key", "5 arrivals"])
def test_windows_that_count(window: str) -> None:
    streams = [ps.Stream("a", time="ts", window=window), ps.Stream("b", time="ts", window=window)]
    with pytest.raises(ps.PlanError) as raised:
        ps.WindowJoin(streams, on="k").start(limits=ps.Limits("5 rows"))
    for words in (window, "limits", "time"):
        assert words in str(raised.value)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("a.v + b.v", ("one stream", "a.v + b.v")),
        ("c.v", ("'c.v'", "the streams are")),
        ("v", ("stream.column", "v")),
        ("", ("value",)),
        ("a.v +", ("value", "a.v +")),
        ("upper(a.t)", ("value", "upper")),
        ("3", ("value", "3")),
        (3, ("value", "3")),
        ("a.v; DROP", ("value",)),
        ("a.v < 3", ("value", "a.v < 3")),
    ],
)
def test_values_that_are_none(value: Any, told: tuple[str, ...]) -> None:
    refused(lambda: of().start(limits=ps.Limits("5 rows", shed="prob", value=value)), *told)


@pytest.mark.jit_off
@pytest.mark.parametrize(("value", "told"), [("a.nope", "'nope'"), ("a.t * 2", "t")])
def test_values_of_columns_that_will_not_do(value: str, told: str) -> None:
    """Said when the columns are known: at the start, or with the first batch, of which then
    nothing is taken."""
    limits = ps.Limits("5 rows", shed="prob", value=value)
    refused(lambda: of().start(limits=limits, schemas={"a": TABLE.schema}), told, "'a'")
    join = of().start(limits=limits)
    refused(lambda: join.push(a=TABLE), told, "'a'")
    assert join.metrics.streams["a"].arrived == 0
    numbers = TABLE.append_column("nope", pa.array([1, 2]))
    assert join.push(a=numbers.set_column(3, "t", pa.array([1, 2])), b=TABLE).num_rows == 4


@pytest.mark.parametrize(
    ("frequencies", "told"),
    [
        ({"c": {1: 2.0}}, ("'c'", "the streams are")),
        ({"a": [1, 2]}, ("frequencies", "'a'", "[1, 2]")),
        ({"a": {1: -2.0}}, ("frequencies", "'a'", "-2.0")),
        ({"a": {1: float("nan")}}, ("frequencies", "'a'", "nan")),
        ({"a": {1: float("inf")}}, ("frequencies", "'a'", "inf")),
        ({"a": {1: "often"}}, ("frequencies", "'a'", "'often'")),
        ([("a", {1: 2.0})], ("frequencies",)),
    ],
)
def test_frequencies_that_are_none(frequencies: Any, told: tuple[str, ...]) -> None:
    refused(lambda: of().start(limits=ps.Limits("5 rows", frequencies=frequencies)), *told)


@pytest.mark.jit_off
@pytest.mark.parametrize("key", ["x", (1, 2)], ids=repr)
def test_frequencies_of_keys_of_another_type(key: Any) -> None:
    """Said when the type of the key is known, and before anything is taken in."""
    limits = ps.Limits("5 rows", frequencies={"a": {key: 2.0}})
    join = of().start(limits=limits)
    refused(lambda: join.push(a=TABLE), "frequencies", "'a'")
    assert join.metrics.streams["a"].arrived == 0


@pytest.mark.jit_off
@pytest.mark.parametrize("memory", ["-1 rows", "lots", 5, None])
def test_another_limit_that_is_none(memory: Any) -> None:
    """The join goes on as it was."""
    join = of().start(limits=ps.Limits("2 rows"))
    join.push(a=TABLE)
    refused(lambda: join.limit(memory=memory), "memory", repr(memory), "rows")
    assert join.metrics.live == 2
    join.push(b=TABLE)
    assert join.metrics.produced + join.metrics.lost == 4


@pytest.mark.jit_off
def test_another_limit_where_there_was_none() -> None:
    join = of().start()
    refused(lambda: join.limit(memory="5 rows"), "limits=")
    assert join.push(a=TABLE, b=TABLE).num_rows == 4


@pytest.mark.jit_off
def test_another_limit_after_the_end() -> None:
    for end, words in ((ps.Join.finish, "finished"), (ps.Join.close, "closed")):
        join = of().start(limits=ps.Limits("2 rows"))
        end(join)
        with pytest.raises(ps.StateError, match=words):
            join.limit(memory="5 rows")


@pytest.mark.jit_off
def test_too_few_bytes_for_an_empty_join() -> None:
    """It says how many are needed."""
    refused(lambda: of().start(limits=ps.Limits("1 B")), "memory=1 bytes", "without any tuple")


@pytest.mark.jit_off
def test_too_few_bytes_for_the_columns() -> None:
    """Which are known with the first batch: nothing of it is taken."""
    with pytest.raises(ps.PlanError) as raised:
        of().start(limits=ps.Limits("1 B"))
    least = next(word for word in str(raised.value).split() if word[0].isdigit())
    join = of().start(limits=ps.Limits(f"{least} B"))
    refused(lambda: join.push(a=TABLE), "memory=", "without any tuple")
    assert join.metrics.streams["a"].arrived == 0
    join.limit(memory="1 MiB")
    assert join.push(a=TABLE, b=TABLE).num_rows == 4
    refused(lambda: join.limit(memory=f"{least} B"), "memory=", "without any tuple")
    assert join.push(a=TABLE[1:]).num_rows == 2


@pytest.mark.jit_off
@pytest.mark.parametrize("shed", POLICIES)
def test_frequencies_that_nothing_asks_for(shed: str) -> None:
    """No memory is set aside for them, and none is written over."""
    many = dict.fromkeys(range(1000), 1.0)
    limits = ps.Limits("1 rows", shed=shed, loss="off", frequencies={"a": many, "b": many})
    join = of().start(limits=limits)
    join.push(a=TABLE, b=TABLE)
    join.driver.check()
    assert join.metrics.live == 1


@pytest.mark.jit_off
def test_a_window_that_is_resized_under_a_limit() -> None:
    join = of().start(limits=ps.Limits("2 rows", shed="life"))
    join.push(a=TABLE)
    join.resize("a", "1 us")
    assert join.metrics.live <= 2


@pytest.mark.jit_off
def test_other_joins_are_as_they_were() -> None:
    """Without limits nothing is shed, and the words of the ledger say so."""
    join = of().start()
    join.push(a=TABLE, b=TABLE)
    metrics = join.metrics
    assert (metrics.lost, metrics.recall, metrics.shed, metrics.ghosts) == (0, 1.0, 0, 0)
    assert metrics.lost_interval is None
    assert sum(metrics.lost_by.values()) == 0
