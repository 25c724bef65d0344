"""The sample streams: the same rows in any batches, and the statistics they promise."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.samples import SampleStreams, uniform, zipf, zipf_pair
from penstock.samples.key_laws import ShuffledKeys, UniformKeys, ZipfKeys
from penstock.samples.payload_columns import key_strings
from penstock.stats.counter import draw, unit
from support.thoroughness import often

MAKERS = [uniform, zipf]


def times(table: pa.Table) -> Any:
    return table["ts"].to_numpy().astype(np.int64)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("batch_rows", often([1, 7, 100, 1000], 7, 1000))
@pytest.mark.parametrize(
    "options",
    [{}, {"string_keys": True, "payload": 12, "disorder": "2 seconds"}, {"payload": 0}],
    ids=["narrow", "wide", "bare"],
)
def test_rows_do_not_depend_on_the_batches(
    make: Callable[..., SampleStreams], batch_rows: int, options: dict[str, Any]
) -> None:
    work = make(seed=3, rows=203, rate=50, keys=20, streams=("a", "b", "c"), **options)
    batches = list(work.batches(batch_rows))
    for stream in work.streams:
        whole = work.table(stream)
        assert whole.schema == work.schema
        assert pa.concat_tables(batch[stream] for batch in batches).equals(whole)
        whole.validate(full=True)


@pytest.mark.parametrize("make", MAKERS)
def test_the_seed_decides(make: Callable[..., SampleStreams]) -> None:
    options = {"rows": 100, "keys": 1000, "payload": 10}
    first = make(seed=1, **options)
    assert first.table("left").equals(make(seed=1, **options).table("left"))
    other = make(seed=2, **options).table("left")
    for name in ("ts", "k", "v"):
        assert first.table("left")[name] != other[name]
        assert first.table("left")[name] != first.table("right")[name]


def test_rows_are_pinned() -> None:
    """A change here changes every published number that was drawn from a seed."""
    work = uniform(seed=1, rows=3, rate=10, keys=1000, payload=2, string_keys=True)
    assert [list(row.values()) for row in work.table("left").to_pylist()] == [
        [datetime(2024, 1, 1, 0, 0, 0, 53_093), "27f58fff73a868f48715", 821490205, 1085.29],
        [datetime(2024, 1, 1, 0, 0, 0, 197_538), "db8a4accecb4489d5117", 399638899, 5163.72],
        [datetime(2024, 1, 1, 0, 0, 0, 208_131), "2e37b798bb8eda670177", 256014922, 3222.61],
    ]


def test_names_do_not_matter_but_places_do() -> None:
    plain = uniform(seed=1, rows=50, keys=10)
    named = uniform(seed=1, rows=50, keys=10, streams=("orders", "payments"))
    assert named.table("payments").equals(plain.table("right"))
    assert list(next(named.batches(10))) == ["orders", "payments"]


def test_rows_from_the_middle() -> None:
    work = uniform(seed=1, rows=1_000_000_000_000, keys=10)
    late = work.table("left", 999_999_999_990)
    assert late.num_rows == 10
    assert np.all(np.diff(times(late)) >= 0)
    assert work.table("left", 5, 8).equals(work.table("left", 0, 10).slice(5, 3))
    assert work.table("left", 8, 5).num_rows == 0


def test_no_rows_are_still_typed() -> None:
    work = uniform(rows=0, keys=10, payload=10, string_keys=True)
    assert list(work.batches(10)) == []
    assert work.table("left").schema == work.schema
    assert work.table("left").num_rows == 0


@pytest.mark.parametrize("rate", [0.5, 3, 1000, 1_000_000])
def test_times_rise_at_the_rate(rate: float) -> None:
    work = uniform(seed=5, rows=2000, rate=rate, keys=10)
    ts = times(work.table("right"))
    assert np.all(np.diff(ts) >= 0)
    slot_us = 1e6 / rate
    assert np.all(np.abs(ts - work.start_us - np.arange(2000) * slot_us - slot_us / 2) <= slot_us)


def test_disorder_is_there_and_bounded() -> None:
    work = uniform(seed=5, rows=20_000, rate=1000, keys=10, disorder="3 seconds")
    ts = times(work.table("left"))
    behind_us = np.maximum.accumulate(ts) - ts
    assert 2_500_000 < behind_us.max() <= 3_000_000
    assert np.mean(behind_us > 0) > 0.9


def test_uniform_keys() -> None:
    work = uniform(seed=7, rows=100_000, keys=100)
    counts = np.bincount(work.table("left")["k"].to_numpy(), minlength=100)
    assert len(counts) == 100
    # Chi-squared with 99 degrees of freedom: mean 99, deviation 14.
    assert ((counts - 1000) ** 2 / 1000).sum() < 99 + 5 * 14
    left, right = (work.table(name)["k"].to_numpy() for name in work.streams)
    assert abs(np.corrcoef(left, right)[0, 1]) < 0.02
    assert abs(np.corrcoef(left[1:], left[:-1])[0, 1]) < 0.02


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0, 2.0])
def test_zipf_keys(skew: float) -> None:
    counts = np.bincount(
        zipf(seed=7, rows=100_000, keys=50, skew=skew).table("left")["k"].to_numpy(), minlength=50
    )
    expected = np.arange(1, 51) ** -skew
    expected *= 100_000 / expected.sum()
    assert len(counts) == 50
    assert ((counts - expected) ** 2 / expected).sum() < 49 + 5 * 10


def test_a_pair_in_step() -> None:
    """One row of each at every second; the skews are their own, the ranks are shared."""
    work = zipf_pair(seed=7, rows=20_000, keys=50, skews=(1.0, 2.0))
    seconds = np.arange(20_000) * 1_000_000 + work.start_us
    counts = {}
    for stream in work.streams:
        table = work.table(stream)
        assert np.array_equal(times(table), seconds)
        counts[stream] = np.bincount(table["k"].to_numpy(), minlength=50)
    assert counts["left"][0] / 20_000 == pytest.approx(0.222, abs=0.01)
    assert counts["right"][0] / 20_000 == pytest.approx(0.615, abs=0.01)
    assert work.table("left", 100, 200).equals(work.table("left").slice(100, 100))


def test_a_pair_that_is_shuffled() -> None:
    """Only the second stream's keys change their names, and the seed says to which."""
    options = {"seed": 7, "rows": 20_000, "keys": 50}
    plain = zipf_pair(**options)
    shuffled, other = (zipf_pair(shuffle=seed, **options) for seed in (1, 2))
    assert shuffled.table("left").equals(plain.table("left"))
    names = [work.table("right")["k"].to_numpy() for work in (plain, shuffled, other)]
    assert not np.array_equal(names[1], names[2])
    # One to one: as many pairs of an old and a new name as names.
    assert len(set(zip(names[0], names[1], strict=True))) == len(set(names[0]))
    fractions = (np.arange(50) + 0.5) / 50
    assert sorted(ShuffledKeys(UniformKeys(50), 3).pick(fractions)) == list(range(50))


@pytest.mark.parametrize("count", [1, 3, 60_000, 1 << 40])
def test_every_fraction_has_a_key(count: int) -> None:
    ends = np.array([0.0, 1.0 - 2.0**-53])
    assert UniformKeys(count).pick(ends).tolist() == [0, count - 1]
    if count < 1 << 20:
        assert ZipfKeys(count).pick(ends).tolist() == [0, count - 1]


def test_expected_results_of_the_benchmark() -> None:
    """Keys meet as often as chance says: pairs of rows within a window, by their keys."""
    work = uniform(seed=1, rows=20_000, rate=1000, keys=600)
    left, right = (work.table(name) for name in work.streams)
    pairs = left.join(right, "k", right_suffix="_right", join_type="inner")
    distance_us = np.abs(times(pairs) - pairs["ts_right"].to_numpy().astype(np.int64))
    seconds, window = 20.0, 6.0
    expected = (seconds**2 - (seconds - window) ** 2) * 1000**2 / 600
    assert np.sum(distance_us <= window * 1e6) == pytest.approx(expected, rel=0.01)


def test_string_keys_are_distinct_and_of_one_length() -> None:
    keys = key_strings(np.arange(100_000))
    assert pc.count_distinct(keys).as_py() == 100_000
    assert pc.min_max(pc.utf8_length(keys)).as_py() == {"min": 20, "max": 20}
    assert pc.count_distinct(pc.utf8_slice_codeunits(keys, 0, 4)).as_py() > 50_000


def test_string_keys_follow_the_integer_keys() -> None:
    numbers = uniform(seed=1, rows=1000, keys=50).table("left")["k"].to_numpy()
    texts = uniform(seed=1, rows=1000, keys=50, string_keys=True).table("left")["k"]
    assert texts.to_pylist() == key_strings(numbers).to_pylist()


def test_payload_types() -> None:
    table = uniform(seed=1, rows=1000, keys=50, payload=11).table("left")
    assert table.column_names == ["ts", "k", "v", *(f"p{column}" for column in range(1, 11))]
    assert [str(table.schema.field(name).type) for name in table.column_names[2:]] == [
        *["int64", "double", "int32", "bool", "date32[day]", "timestamp[us]", "string"],
        *["double", "string", "float", "int64"],
    ]
    assert table["v"] != table["p10"]
    assert 80 < table["p7"].null_count < 170
    lengths = pc.min_max(pc.utf8_length(table["p6"])).as_py()
    assert lengths == {"min": 4, "max": 24}


def test_bits_are_even() -> None:
    bits = draw(9, (1, 2), 0, 100_000)
    for place in range(64):
        ones = int(((bits >> np.uint64(place)) & np.uint64(1)).sum())
        assert abs(ones - 50_000) < 5 * 158
    assert unit(bits).mean() == pytest.approx(0.5, abs=0.005)
    assert np.corrcoef(unit(bits), unit(draw(9, (2, 1), 0, 100_000)))[0, 1] < 0.02


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": -1}, "rows must be"),
        ({"rate": 0}, "rate must be"),
        ({"rate": 2e6}, "rate must be"),
        ({"keys": 0}, "keys, got 0"),
        ({"payload": -1}, "payload must be"),
        ({"streams": ("a", "a")}, "different names"),
        ({"streams": ()}, "different names"),
        ({"disorder": "-1 second"}, "disorder cannot be negative"),
    ],
)
@pytest.mark.parametrize("make", MAKERS)
def test_refused(make: Callable[..., SampleStreams], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**{"rows": 10, "keys": 10, **options})


def test_refused_when_asked() -> None:
    work = uniform(rows=10, keys=10)
    with pytest.raises(ValueError, match="no stream is called 'middle'"):
        work.table("middle")
    with pytest.raises(ValueError, match="at least one row"):
        next(work.batches(0))
    with pytest.raises(ValueError, match="skew must be"):
        zipf(rows=10, keys=10, skew=-1)
    with pytest.raises(ValueError, match="one for each of 2, got 1"):
        SampleStreams(law=[UniformKeys(10)], rows=10)
