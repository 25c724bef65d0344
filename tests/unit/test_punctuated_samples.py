"""Streams with punctuations: promises that hold, and the statistics of their patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.samples import PunctuatedStreams

PATTERNS = ["cluster-asc-30", "cluster-random-1", "punct-desc-30-40", "punct-random-3-0"]


def columns(table: pa.Table) -> tuple[Any, Any, Any]:
    return tuple(table[name].to_numpy() for name in ("ts", "k", "is_end"))


def segments(table: pa.Table) -> list[Any]:
    """The keys of each segment; the last is the one that the punctuation closes."""
    _, keys, is_end = columns(table)
    return np.split(keys, np.flatnonzero(is_end) + 1)[:-1]


def closed(table: pa.Table) -> list[int]:
    return table.filter(table["is_end"])["k"].to_pylist()


def test_rows_are_pinned() -> None:
    """A change here changes every published number that was drawn from a seed."""
    work = PunctuatedStreams(pattern="punct-random-3-50", segments=2, keys=9, seed=1)
    left, right = work.tables()
    times = left["ts"].to_numpy().astype(np.int64) - work.start_us
    assert times.tolist() == [12000, 22000, 36000, 36001, 41001, 53001, 60001, 60002]
    assert [keys.tolist() for keys in segments(left)] == [[8, 2, 2, 2], [3, 1, 8, 8]]
    assert [keys.tolist() for keys in segments(right)] == [[1, 2, 8, 8], [0, 4, 0, 1, 1]]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_seed_decides(pattern: str) -> None:
    first, again, other = (
        PunctuatedStreams(pattern=pattern, segments=50, seed=seed).tables() for seed in (1, 1, 2)
    )
    assert first == again
    assert first[0] not in (other[0], first[1])


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("keys", [200, 15_000])
@pytest.mark.parametrize("options", [{}, {"irrelevant": 0.5}, {"gap": "1 millisecond"}], ids=str)
def test_promises_hold(pattern: str, keys: int, options: dict[str, Any]) -> None:
    work = PunctuatedStreams(pattern=pattern, segments=200, keys=keys, seed=3, **options)
    for table in work.tables():
        assert list(map(str, table.schema.types)) == ["timestamp[us]", "int64", "int64", "bool"]
        assert table["v"].to_pylist() == list(range(len(table)))
        ts, found, is_end = columns(table)
        assert np.all(ts[1:] > ts[:-1])
        assert set(found[~is_end]) <= set(range(keys))
        assert len(set(found[is_end])) == is_end.sum() == 200
        last = dict(zip(found[~is_end], ts[~is_end], strict=True))
        for at, key in zip(ts[is_end], found[is_end], strict=True):
            assert key not in last or last[key] < at


def test_keys_close_in_order() -> None:
    options: dict[str, Any] = {"segments": 100, "keys": 100}
    up, down = PunctuatedStreams(pattern=["cluster-asc-2", "punct-desc-2-9"], **options).tables()
    left, right = PunctuatedStreams(pattern="cluster-random-2", **options).tables()
    assert closed(up) == closed(down)[::-1] == list(range(100))
    assert sorted(closed(left)) == sorted(closed(right)) == closed(up)
    assert closed(left) != closed(right)


@pytest.mark.parametrize(("size", "gap_ms"), [(30, 10), (100, 2), (1, 10)])
def test_sizes_and_gaps_are_poisson(size: int, gap_ms: int) -> None:
    work = PunctuatedStreams(pattern=f"cluster-random-{size}", segments=4000, gap=f"{gap_ms} ms")
    for table in work.tables():
        sizes = [len(keys) - 1 for keys in segments(table)]
        assert np.mean(sizes) == pytest.approx(size, rel=0.01)
        assert np.var(sizes) == pytest.approx(size - 1, rel=0.1)
        assert all(np.all(keys == keys[-1]) for keys in segments(table))
        ts, _, is_end = columns(table)
        gaps_ms = np.diff(ts[~is_end]) / np.timedelta64(1, "ms")
        assert gaps_ms.mean() == pytest.approx(gap_ms, rel=0.01)
        assert gaps_ms.var() == pytest.approx(gap_ms, rel=0.1)


@pytest.mark.parametrize(("size", "match"), [(100, 40), (30, 40), (30, 10)])
def test_the_match_is_a_share_of_the_segment(size: int, match: int) -> None:
    table, _ = PunctuatedStreams(pattern=f"punct-asc-{size}-{match}", segments=3000).tables()
    own = [keys[:-1] == keys[-1] for keys in segments(table)]
    assert 100 * np.mean([each.mean() for each in own]) == pytest.approx(match, rel=0.03)
    assert all(each[-1] for each in own)
    # The others are spread evenly over the keys that are still open.
    places = [(keys[:-1] - keys[-1]) / (15_000 - keys[-1]) for keys in segments(table)]
    assert np.mean(np.concatenate(places)[~np.concatenate(own)]) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_irrelevant_punctuations(share: float) -> None:
    options: dict[str, Any] = {"pattern": "punct-random-30-40", "segments": 1000, "keys": 1000}
    plain = PunctuatedStreams(**options).tables()
    work = PunctuatedStreams(irrelevant=share, **options).tables()
    irrelevant = [{key for key in closed(table) if key >= 1000} for table in work]
    assert [len(keys) for keys in irrelevant] == [1000 * share] * 2
    assert irrelevant[0].isdisjoint(irrelevant[1])
    for before, after in zip(plain, work, strict=True):
        assert before.filter(~columns(before)[2]) == after.filter(~columns(after)[2])


@pytest.mark.parametrize("order", ["asc", "desc", "random"])
def test_synchronised_clusters(order: str) -> None:
    """At any time a join holds one cluster of the first stream at most, and none of the second."""
    pattern = [f"cluster-{order}-30", f"punctuation-{order}-5-100"]
    tables = PunctuatedStreams(pattern=pattern, segments=300, synchronised=True).tables()
    rows = sorted((*row, at) for at in (0, 1) for row in zip(*columns(tables[at]), strict=True))
    held: list[list[int]] = [[], []]
    ended: list[set[int]] = [set(), set()]
    most = [0, 0]
    for _, key, is_end, stream in rows:
        if is_end:
            ended[stream].add(key)
            held[1 - stream] = [each for each in held[1 - stream] if each != key]
        elif key not in ended[1 - stream]:
            held[stream].append(key)
            most[stream] = max(most[stream], len(held[stream]))
    assert most == [max(len(keys) - 1 for keys in segments(tables[0])), 0]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"pattern": "cluster-up-30"}, "cannot read the pattern 'cluster-up-30'"),
    ({"pattern": "punct-asc-30"}, "with an order of asc, desc, random"),
    ({"pattern": "cluster-asc-0"}, "1 to 1,000,000 tuples"),
    ({"pattern": "punct-asc-30-101"}, "0 to 100 percent match, got the pattern 'punct-asc-30-101'"),
    ({"pattern": ["cluster-asc-3"]}, "one for both streams or two"),
    ({"segments": 11, "keys": 10}, "segments must be 0 to 10, .* got 11; give fewer, or more keys"),
    ({"keys": 0}, "keys must be 1 to"),
    ({"gap": "0 ms"}, "gap must be 1 millisecond to 1 hour, got '0 ms'"),
    ({"irrelevant": 40}, "share from 0 to 1, got 40"),
    ({"pattern": "punct-asc-3-40", "synchronised": True}, "needs clusters in one order"),
    ({"pattern": ["cluster-asc-3", "cluster-desc-3"], "synchronised": True}, "in one order"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PunctuatedStreams(**{"pattern": "cluster-asc-3", "segments": 10, **options})
