"""Bad input is refused with an error that names it, and a refused batch changes nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import penstock as ps

pytestmark = pytest.mark.jit_off

STREAMS = (ps.Stream("a", time="ts"), ps.Stream("b", time="ts", lateness="3 us"))
QUERY = ps.WindowJoin(STREAMS, on="k", within="10 us")
INT = pa.int64()


def rows(*pairs: tuple[int, int], **more: Any) -> pa.Table:
    """Rows of (ts, k), with further columns as given."""
    columns = {
        "ts": pa.array([ts for ts, _ in pairs], INT),
        "k": pa.array([k for _, k in pairs], INT),
        "v": pa.array([f"v{ts}" for ts, _ in pairs]),
    }
    return pa.table({**columns, **more})


GOOD = rows((20, 1), (21, 2))


def without(column: str) -> pa.Table:
    return GOOD.drop_columns([column])


def with_column(name: str, values: pa.Array) -> pa.Table:
    return GOOD.set_column(GOOD.schema.get_field_index(name), name, values)


def twice(column: str) -> pa.Table:
    return pa.table(
        [*GOOD.columns, GOOD[column]], schema=GOOD.schema.append(GOOD.schema.field(column))
    )


@dataclass(frozen=True)
class Bad:
    """A table that a stream must refuse: with which error, and what the message names."""

    table: Callable[[], Any]
    error: type[ps.PenstockError]
    names: tuple[str, ...]


# What is refused on its own, whether or not the stream's schema is known already.
ALONE = {
    "no time column": Bad(lambda: without("ts"), ps.SchemaError, ("'ts'",)),
    "no key column": Bad(lambda: without("k"), ps.SchemaError, ("'k'",)),
    "a column twice": Bad(lambda: twice("v"), ps.SchemaError, ("'v'",)),
    "the key twice": Bad(lambda: twice("k"), ps.SchemaError, ("'k'",)),
    "null time": Bad(
        lambda: with_column("ts", pa.array([20, None], INT)), ps.TimestampError, ("'ts'", "null")
    ),
    "time beyond year 9999": Bad(
        lambda: with_column("ts", pa.array([20, 1 << 62], INT)), ps.TimestampError, ("'ts'",)
    ),
    "time far before any calendar": Bad(
        lambda: with_column("ts", pa.array([-(1 << 62), 20], INT)), ps.TimestampError, ("'ts'",)
    ),
    "the greatest integer as time": Bad(
        lambda: with_column("ts", pa.array([(1 << 63) - 1, 20], INT)),
        ps.TimestampError,
        ("'ts'", str((1 << 63) - 1)),
    ),
    "text as time": Bad(
        lambda: with_column("ts", pa.array(["now", "then"])), ps.SchemaError, ("'ts'", "string")
    ),
    "float as time": Bad(
        lambda: with_column("ts", pa.array([20.0, 21.0])), ps.SchemaError, ("'ts'", "double")
    ),
    "date as time": Bad(
        lambda: with_column("ts", pa.array([0, 1], pa.date32())), ps.SchemaError, ("'ts'", "date32")
    ),
    "a list as key": Bad(
        lambda: with_column("k", pa.array([[1], [2]])), ps.SchemaError, ("k", "list")
    ),
    "not Arrow": Bad(lambda: [{"ts": 1, "k": 1}], ps.InputError, ("list",)),
    "text": Bad(lambda: "batch", ps.InputError, ("str",)),
    "None": Bad(lambda: None, ps.InputError, ("NoneType",)),
    "an array of no columns": Bad(lambda: pa.array([1, 2]), ps.InputError, ()),
}

# What is refused because the stream has shown another schema before.
CHANGED = {
    "key of another type": Bad(
        lambda: with_column("k", pa.array(["1", "2"])), ps.SchemaError, ("'k'", "int64", "string")
    ),
    "payload of another type": Bad(
        lambda: with_column("v", pa.array([1, 2])), ps.SchemaError, ("'v'", "string", "int64")
    ),
    "time of another type": Bad(
        lambda: with_column("ts", pa.array([20, 21], pa.timestamp("us"))),
        ps.SchemaError,
        ("'ts'", "int64", "timestamp"),
    ),
    "a column more": Bad(
        lambda: GOOD.append_column("extra", pa.array([1, 2])), ps.SchemaError, ("'extra'",)
    ),
    "a column less": Bad(lambda: without("v"), ps.SchemaError, ("'v'",)),
}


def outcome(bad: Any = None, error: type[Exception] = Exception, names: tuple[str, ...] = (),
            *, stream: str = "a", beside: bool = False, first: bool = False) -> Any:  # fmt: skip
    """All that a run shows, with a bad table pushed and refused in the middle of it, or at
    its start (`first`), alone or `beside` a good one of the other stream."""
    join = QUERY.start(clock=lambda: 0.0)
    shown: list[Any] = []

    def refused() -> None:
        if bad is None:
            return
        other = "b" if stream == "a" else "a"
        before = join.metrics
        batch = {other: rows((30, 1), (5, 1))} if beside else {}
        with pytest.raises(error) as caught:
            join.push({**batch, stream: bad()})
        message = str(caught.value).replace(",", "")
        for name in names:
            assert name in message
        assert f"{stream!r}" in message or f"{stream}." in message
        assert join.metrics == before

    if first:
        refused()
    shown.append(join.push(a=rows((10, 1), (12, 2)), b=rows((11, 1))))
    if not first:
        refused()
    shown.append(join.push(a=rows((11, 1), (3, 1)), b=rows((13, 1), (9, 2), (4, 2))))
    shown.append(join.push(b=rows((14, 2))))
    shown.append(join.late())
    shown.append(join.metrics)
    shown.append(join.finish())
    return shown


@pytest.mark.parametrize("stream", ["a", "b"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a good one"])
@pytest.mark.parametrize("case", [*ALONE, *CHANGED])
def test_a_refused_batch_changes_nothing(case: str, beside: bool, stream: str) -> None:
    bad = {**ALONE, **CHANGED}[case]
    after = outcome(bad.table, bad.error, bad.names, stream=stream, beside=beside)
    assert after == outcome()


@pytest.mark.parametrize("stream", ["a", "b"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a good one"])
@pytest.mark.parametrize("case", ALONE)
def test_a_first_batch_that_is_refused_leaves_no_schema(
    case: str, beside: bool, stream: str
) -> None:
    bad = ALONE[case]
    after = outcome(bad.table, bad.error, bad.names, stream=stream, beside=beside, first=True)
    assert after == outcome()


def test_the_example_run_does_something() -> None:
    """Otherwise the tests above would show nothing."""
    first, second, third, late, metrics, rest = outcome()
    assert [first.num_rows, second.num_rows, third.num_rows, rest.num_rows] == [1, 4, 1, 0]
    assert late["a"].num_rows + late["b"].num_rows > 0
    assert metrics.produced == 6


def test_key_types_of_two_streams_that_do_not_fit() -> None:
    join = QUERY.start()
    join.push(a=GOOD)
    before = join.metrics
    with pytest.raises(ps.SchemaError, match=r"a\.k.*int64.*b\.k.*string"):
        join.push(b=with_column("k", pa.array(["1", "2"])))
    assert join.metrics == before
    assert join.push(b=GOOD).num_rows == 2


def test_key_types_that_do_not_fit_within_one_call() -> None:
    join = QUERY.start()
    before = join.metrics
    with pytest.raises(ps.SchemaError, match=r"a\.k.*int64.*b\.k.*bool"):
        join.push(a=GOOD, b=with_column("k", pa.array([True, False])))
    assert join.metrics == before
    # Neither of the two schemas was taken.
    texts = with_column("k", pa.array(["1", "2"]))
    assert join.push(a=texts, b=texts).num_rows == 2


def test_time_types_of_two_streams_that_do_not_fit() -> None:
    join = QUERY.start()
    join.push(a=GOOD)
    with pytest.raises(ps.SchemaError, match=r"a\.ts.*int64.*b\.ts.*timestamp"):
        join.push(b=with_column("ts", pa.array([20, 21], pa.timestamp("us"))))
    assert join.push(b=GOOD).num_rows == 2


def stamps(unit: str, *values: int | None) -> pa.Table:
    table = rows(*((0, 1) for _ in values))
    return table.set_column(0, "ts", pa.array(values, pa.timestamp(unit)))


def test_nanoseconds_that_are_not_whole_microseconds() -> None:
    join = QUERY.start()
    join.push(a=stamps("ns", 1000, 2000), b=stamps("ns", 1000))
    before = join.metrics
    with pytest.raises(ps.TimestampError, match=r"'ts'.*'a'|'a'.*'ts'") as caught:
        join.push(a=stamps("ns", 3000, 3001))
    assert "microsecond" in str(caught.value)
    assert join.metrics == before
    assert join.push(a=stamps("ns", 3000)).num_rows == 1


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_null_timestamps(unit: str) -> None:
    with pytest.raises(ps.TimestampError, match="null"):
        QUERY.start().push(a=stamps(unit, 0, None))


@pytest.mark.parametrize("value", [1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_timestamps_beyond_the_calendar(unit: str, value: int) -> None:
    """Also those that overflow 64 bits once they are counted in microseconds."""
    join = QUERY.start()
    with pytest.raises(ps.TimestampError, match=r"'ts'"):
        join.push(a=stamps(unit, 0, value))
    assert join.push(a=stamps(unit, 0), b=stamps(unit, 0)).num_rows == 1


def test_the_ends_of_the_calendar_are_legal() -> None:
    first, last = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    table = rows((0, 1), (0, 1)).set_column(0, "ts", pa.array([first, last], pa.timestamp("us")))
    query = ps.WindowJoin(STREAMS, on="k", within="10000 weeks")
    assert query.start().push(a=table, b=table).num_rows == 2


def test_unknown_streams() -> None:
    join = QUERY.start()
    join.push(a=GOOD)
    before = join.metrics
    attempts: list[Callable[[], object]] = [
        lambda: join.push(nowhere=GOOD),
        lambda: join.push({"b": GOOD, "nowhere": GOOD}),
        lambda: join.advance("nowhere", 5),
    ]
    for attempt in attempts:
        with pytest.raises(ps.PenstockError, match=r"'nowhere'.*'a'.*'b'"):
            attempt()
    assert join.metrics == before


def test_a_stream_given_twice_in_one_call() -> None:
    join = QUERY.start()
    with pytest.raises((ps.PenstockError, TypeError), match="a"):
        join.push({"a": GOOD}, a=GOOD)
    assert join.metrics.streams["a"].arrived == 0


@pytest.mark.parametrize("ts", [None, "now", 1.5, 1 << 62, True])
def test_advance_to_what_is_no_time(ts: Any) -> None:
    join = QUERY.start()
    join.push(a=GOOD, b=GOOD)
    before = join.metrics
    with pytest.raises(ps.PenstockError) as caught:
        join.advance("a", ts)
    assert repr(ts) in str(caught.value).replace(",", "")
    assert join.metrics == before


def test_nothing_comes_after_the_end() -> None:
    join = QUERY.start()
    join.push(a=GOOD, b=GOOD)
    join.finish()
    before = join.metrics
    attempts: list[Callable[[], object]] = [
        lambda: join.push(a=GOOD),
        lambda: join.advance("a", 50),
        join.finish,
    ]
    for attempt in attempts:
        with pytest.raises(ps.StateError, match="finish"):
            attempt()
    assert join.metrics == before
    assert join.metrics.produced == 2
    assert set(join.late()) == {"a", "b"}


def test_nothing_comes_after_the_with_block() -> None:
    with QUERY.start() as join:
        join.push(a=GOOD, b=GOOD)
    attempts: list[Callable[[], object]] = [
        lambda: join.push(a=GOOD),
        lambda: join.advance("a", 50),
    ]
    for attempt in attempts:
        with pytest.raises(ps.StateError):
            attempt()
    assert join.metrics.produced == 2


def test_output_names_that_collide() -> None:
    streams = [ps.Stream("a", time="ts"), ps.Stream("a_b", time="ts")]
    join = ps.WindowJoin(streams, on="k", within="1 s").start()
    left = rows((1, 1)).append_column("b_v", pa.array(["x"]))
    join.push(a=left)
    before = join.metrics
    with pytest.raises(ps.SchemaError, match=r"'a_b_v'.*select="):
        join.push(a_b=rows((1, 1)))
    assert join.metrics == before
    selected = ps.WindowJoin(
        streams, on="k", within="1 s", select={"x": "a.b_v", "y": "a_b.v"}
    ).start()
    assert selected.push(a=left, a_b=rows((1, 1))).to_pylist() == [
        {"x": "x", "y": "v1", "event_time": 1}
    ]


def test_a_column_that_collides_with_event_time() -> None:
    streams = [ps.Stream("event", time="time"), ps.Stream("b", time="ts")]
    join = ps.WindowJoin(streams, on="k", within="1 s").start()
    with pytest.raises(ps.SchemaError, match=r"'event_time'.*select="):
        join.push(event=rows((1, 1)).rename_columns(["time", "k", "v"]))


def join_of(**given: Any) -> ps.WindowJoin:
    arguments = {"streams": list(STREAMS), "on": "k", "within": "10 us", **given}
    return ps.WindowJoin(arguments.pop("streams"), **arguments)


BAD_QUERIES: dict[str, tuple[Callable[[], Any], str]] = {
    "negative window": (lambda: ps.Stream("a", time="ts", window="-5 seconds"), "-5 seconds"),
    "negative timedelta": (lambda: join_of(within=dt.timedelta(seconds=-5)), "within"),
    "negative lateness": (lambda: ps.Stream("a", time="ts", lateness="-1 s"), "lateness.*'a'"),
    "negative idle timeout": (lambda: ps.Stream("a", time="ts", idle_timeout="-1 s"), "idle"),
    "window text": (lambda: join_of(within="ten minutes"), "ten minutes"),
    "window unit": (lambda: join_of(within="10 fortnights"), "fortnights"),
    "window without unit": (lambda: join_of(within="10"), "'10'"),
    "empty window": (lambda: join_of(within=""), "within"),
    "window of a number": (lambda: join_of(within=10), "10"),
    "window too fine": (lambda: join_of(within="0.5 us"), "0.5 us"),
    "window too long": (lambda: join_of(within="1000000000 weeks"), "1000000000 weeks"),
    "no window": (lambda: join_of(within=None), "'a'"),
    "one stream": (lambda: join_of(streams=[STREAMS[0]]), "2"),
    "no streams": (lambda: join_of(streams=[]), "2"),
    "names alike": (lambda: join_of(streams=[STREAMS[0]] * 2), "'a'"),
    "streams of text": (lambda: join_of(streams=["a", "b"]), "Stream"),
    "no name": (lambda: ps.Stream("", time="ts"), "name"),
    "no time": (lambda: ps.Stream("a", time=""), "time"),
    "no key": (lambda: join_of(on=[]), "on"),
    "key named twice": (lambda: join_of(on=["k", "k"]), "k"),
    "key of an unknown stream": (lambda: join_of(on={"a": "k", "c": "k"}), "'c'"),
    "key of a stream left out": (lambda: join_of(on={"a": "k"}), "'b'"),
    "keys of other lengths": (lambda: join_of(on={"a": "k", "b": ["k", "v"]}), "'b'"),
    "select from nowhere": (lambda: join_of(select=["c.v"]), r"'c\.v'"),
    "select of a number": (lambda: join_of(select=[5]), "5"),
}


@pytest.mark.parametrize("case", BAD_QUERIES)
def test_a_query_that_makes_no_sense(case: str) -> None:
    make, names = BAD_QUERIES[case]
    with pytest.raises(ps.QueryError, match=names):
        make()


def test_select_of_a_column_that_is_not_there() -> None:
    join = join_of(select=["a.v", "b.missing"]).start()
    join.push(a=GOOD)
    with pytest.raises(ps.SchemaError, match="'missing'"):
        join.push(b=GOOD)


BAD_PLANS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown index": ({"indexes": "btree"}, "'btree'"),
    "unknown index of one stream": ({"indexes": {"a": "hash", "b": "btree"}}, "'btree'"),
    "index of an unknown stream": ({"indexes": {"c": "hash"}}, "'c'"),
    "no buckets": ({"indexes": "buckets(0)"}, "0"),
    "negative buckets": ({"indexes": "buckets(-1)"}, r"buckets\(-1\)"),
    "buckets of a hash": ({"indexes": "hash(8)"}, "8"),
    "index of a number": ({"indexes": {"a": 8}}, "8"),
    "order of an unknown stream": ({"probe_orders": {"c": ["a"]}}, "'c'"),
    "order that leaves one out": ({"probe_orders": {"a": []}}, "'a'"),
    "order with itself": ({"probe_orders": {"a": ["a", "b"]}}, "'a'"),
    "order with a stranger": ({"probe_orders": {"a": ["x"]}}, "'a'"),
}


@pytest.mark.parametrize("case", BAD_PLANS)
def test_a_plan_that_does_not_exist(case: str) -> None:
    given, names = BAD_PLANS[case]
    with pytest.raises(ps.PlanError, match=names):
        QUERY.start(**given)


BAD_SCHEMAS: dict[str, tuple[dict[str, pa.Schema], str]] = {
    "of an unknown stream": ({"c": GOOD.schema}, "'c'"),
    "without the key": ({"a": without("k").schema}, "'k'"),
    "without the time": ({"b": without("ts").schema}, "'ts'"),
}


@pytest.mark.parametrize("case", BAD_SCHEMAS)
def test_a_given_schema_is_checked_at_the_start(case: str) -> None:
    schemas, names = BAD_SCHEMAS[case]
    with pytest.raises(ps.PenstockError, match=names):
        QUERY.start(schemas=schemas)


def test_a_batch_that_does_not_fit_the_given_schema() -> None:
    join = QUERY.start(schemas={"a": GOOD.schema})
    with pytest.raises(ps.SchemaError, match=r"'v'"):
        join.push(a=with_column("v", pa.array([1, 2])))
    assert join.push(a=GOOD, b=GOOD).num_rows == 2


def test_all_errors_are_one_family() -> None:
    """A user can catch what penstock raises on purpose without catching his own bugs."""
    for error in (ps.QueryError, ps.PlanError, ps.InputError, ps.StateError, ps.SnapshotError):
        assert issubclass(error, ps.PenstockError)
    assert issubclass(ps.SchemaError, ps.InputError)
    assert issubclass(ps.TimestampError, ps.InputError)


@pytest.mark.parametrize("text", ["1 hour -30 minutes", "10 M", "1 fortnight", "-1 s", "", "5"])
def test_lengths_that_could_be_misread(text: str) -> None:
    with pytest.raises(ps.QueryError):
        ps.Stream("a", time="ts", window=text)


def test_a_length_finer_than_microseconds() -> None:
    with pytest.raises(ps.QueryError, match="whole number of microseconds"):
        ps.Stream("a", time="ts", window=pd.Timedelta("10ns"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"within": "0 rows"}, "1 to 33,554,432 rows, got 0"),
        ({"within": "tumbling 0 s"}, "a tumbling window needs a length"),
        ({"within": "tumbling soon"}, "cannot read within"),
        ({"within": "since last week"}, "write a date and time"),
        (
            {"between": ("1 second", "2 seconds"), "within": "1 second"},
            "between= is for two streams",
        ),
        ({"between": ("2 seconds", "1 second")}, "leaves nothing"),
        ({"between": ("0 s", "1 us"), "closed": "neither"}, "leaves nothing"),
        ({"between": "1 second"}, "between needs two lengths"),
        ({"between": ("0 s", "1 s"), "closed": "maybe"}, "closed must be one of"),
        ({"within": "1 second", "closed": "left"}, "closed='left' is for between="),
    ],
)
def test_windows_that_cannot_be(given: dict[str, Any], told: str) -> None:
    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    with pytest.raises(ps.QueryError, match=told):
        ps.WindowJoin(streams, on="k", **given)


def test_windows_that_do_not_mix() -> None:
    for window in ("tumbling 1 second", "10 arrivals"):
        streams = [ps.Stream("a", time="ts", window=window), ps.Stream("b", time="ts")]
        with pytest.raises(ps.QueryError, match="is one for all streams"):
            ps.WindowJoin(streams, on="k", within="1 second")


def test_keys_of_a_refused_batch_are_not_registered() -> None:
    """Their types were those of no stream: those of the next batch are."""

    def fail(keys: pa.Array) -> pa.Array:
        if pa.types.is_integer(keys.type) and len(keys):
            raise ValueError("no such thing")
        return pa.array([True] * len(keys), pa.bool_())

    streams = [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")]
    query = ps.WindowJoin(
        streams, on=["k", "m"], within="2 rows per key", where=ps.udf(fail, ["b.k"])
    )
    join = query.start()
    numbers = pa.table({"ts": [1], "k": [1], "m": [1]})
    texts = pa.table({"ts": [1], "k": ["one"], "m": [1]})
    with pytest.raises(ps.UdfError):
        join.push(a=numbers, b=numbers)
    join.push(a=texts, b=texts)
    assert join.finish().num_rows + join.metrics.produced > 0
