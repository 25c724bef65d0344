"""The cost model: what it must be like whatever the numbers, and what it refuses.

The numbers of the papers are in test_cost_tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from math import inf, isclose, log2, nan
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.errors import PlanError
from penstock.lab.papers.crossover import (
    crossover,
    right_rate_crossover,
    scan_ratio,
    winners,
)
from penstock.lab.papers.heuristics import all_orders, compare_orders, heuristic_order
from penstock.planning.binary import binary_breakdown, binary_cost
from penstock.planning.memory import expired_kept, memory_bytes
from penstock.planning.multiway import (
    best_order,
    multiway_breakdown,
    multiway_cost,
    multiway_costing,
)
from penstock.planning.touched import EXPIRE_MODES, MODELS, NODE_ENTRIES, Structure
from penstock.planning.weights import STRUCTURES, WEIGHTS, Weight, Weights, weights_of

MEASURED = Weights(
    "measured",
    "ns",
    {name: Weight(1 + at, 2 + at, 20 + at, 10 - at) for at, name in enumerate(STRUCTURES)},
)

rates = st.floats(0.01, 1e4)
windows = st.floats(1, 1e5)
some_index = st.sampled_from(STRUCTURES)
some_weights = st.sampled_from([WEIGHTS["kang2003"], WEIGHTS["tuples"], MEASURED])


@st.composite
def treatments(draw: st.DrawFn) -> dict[str, Any]:
    expire = draw(st.sampled_from(EXPIRE_MODES))
    return {
        "weights": draw(some_weights),
        "bucket": draw(st.floats(0.5, 100)),
        "node": draw(st.integers(2, 200)),
        "model": draw(st.sampled_from(MODELS)),
        "expire": expire,
        "interval": draw(st.floats(0.01, 100)) if expire == "periodic" else None,
    }


@st.composite
def joins(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "left_index": draw(some_index),
        "right_index": draw(some_index),
        "left_rate": draw(rates),
        "right_rate": draw(rates),
        "left_window": draw(windows),
        "right_window": draw(windows),
        **draw(treatments()),
    }


@st.composite
def workloads(draw: st.DrawFn, most: int = 5) -> dict[str, Any]:
    streams = draw(st.integers(2, most))

    def each(strategy: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(strategy, min_size=streams, max_size=streams))

    return {
        "rates": each(st.floats(0.1, 100)),
        "windows": each(st.floats(1, 100)),
        "distinct": each(st.integers(1, 500)),
        "indexes": each(some_index),
        **draw(treatments()),
    }


def swapped(join: dict[str, Any]) -> dict[str, Any]:
    other = {"left": "right", "right": "left"}
    return {
        (other[name[: name.index("_")]] + name[name.index("_") :] if "_" in name else name): value
        for name, value in join.items()
    }


def cost_of(join: dict[str, Any]) -> float:
    return binary_cost(join["left_index"], join["right_index"], **without_indexes(join))


def without_indexes(join: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in join.items() if not name.endswith("_index")}


@given(joins())
def test_the_breakdown_adds_up(join: dict[str, Any]) -> None:
    cost = binary_breakdown(join["left_index"], join["right_index"], **without_indexes(join))
    assert isclose(cost.total, cost_of(join))
    assert isclose(cost.total, cost.probe + cost.insert + cost.expire)
    assert isclose(cost.total, sum(each.total for each in cost.directions))
    assert all(min(each.probe, each.insert, each.expire) >= 0 for each in cost.directions)
    assert cost.unit == join["weights"].unit


@given(joins())
def test_sides_may_be_swapped(join: dict[str, Any]) -> None:
    assert isclose(cost_of(join), cost_of(swapped(join)))


@given(joins(), st.floats(1, 10))
def test_faster_streams_cost_more(join: dict[str, Any], faster: float) -> None:
    # On probe, the more often a window is probed the less a scan's removals cost together; what a
    # probe costs makes up for it with the papers' weights only.
    assume(join["expire"] != "on_probe" or join["weights"].name == "kang2003")
    for side in ("left_rate", "right_rate"):
        more = cost_of({**join, side: join[side] * faster})
        assert more >= cost_of(join) * (1 - 1e-9)


@given(joins())
def test_cost_is_in_proportion_to_both_rates(join: dict[str, Any]) -> None:
    assume(join["expire"] != "periodic")
    double = {side: 2 * join[side] for side in ("left_rate", "right_rate")}
    assert isclose(cost_of({**join, **double}), 2 * cost_of(join))


@given(joins())
def test_without_memory_for_a_stream_the_join_is_one_way(join: dict[str, Any]) -> None:
    both = binary_breakdown(join["left_index"], join["right_index"], **without_indexes(join))
    one_way = {**join, "left_window": 0, "distinct": (1, 1)}
    cost = binary_breakdown(join["left_index"], join["right_index"], **without_indexes(one_way))
    assert cost.directions[0].total == 0
    if join["model"] != "penstock":  # where matches are of both windows
        assert cost.directions[1] == both.directions[1]


@given(workloads(most=2))
def test_two_streams_are_a_case_of_many(workload: dict[str, Any]) -> None:
    tuples = [
        rate * window for rate, window in zip(workload["rates"], workload["windows"], strict=True)
    ]
    options = {name: workload[name] for name in treatments_of(workload)}
    for order in ((0, 1), (1, 0)):
        assert isclose(
            multiway_cost(order, **workload),
            binary_cost(
                *workload["indexes"],
                left_rate=workload["rates"][0],
                right_rate=workload["rates"][1],
                left_window=tuples[0],
                right_window=tuples[1],
                distinct=workload["distinct"],
                **options,
            ),
        )


def treatments_of(workload: dict[str, Any]) -> list[str]:
    return [name for name in workload if name not in ("rates", "windows", "distinct", "indexes")]


@settings(max_examples=40)
@given(workloads())
def test_the_best_order_is_the_best_of_all(workload: dict[str, Any]) -> None:
    costs = {
        order: multiway_cost(order, **workload)
        for order in permutations(range(len(workload["rates"])))
    }
    best = best_order(**workload)
    assert isclose(costs[best], min(costs.values()))
    costing = multiway_costing(**workload)
    assert all_orders(costing)[0][0] == min(costs.values())
    assert sorted(heuristic_order(costing)) == sorted(best)
    compared = compare_orders(costing)
    assert compared.best_cost <= compared.heuristic_cost * (1 + 1e-9)
    for origin in range(len(workload["rates"])):
        others = [each for each in range(len(workload["rates"])) if each != origin]
        least = min(costing.origin(origin, order) for order in permutations(others))
        assert isclose(costing.origin(origin, best_order(**workload, origin=origin)), least)


@given(workloads())
def test_the_breakdown_by_window_adds_up(workload: dict[str, Any]) -> None:
    order = tuple(range(len(workload["rates"])))
    cost = multiway_breakdown(order, **workload)
    costing = multiway_costing(**workload)
    assert isclose(cost.total, multiway_cost(order, **workload))
    probes = sum(
        rate * costing.origin(origin, [each for each in order if each != origin])
        for origin, rate in enumerate(workload["rates"])
    )
    assert isclose(cost.probe, probes, abs_tol=1e-12)


def test_many_streams_get_an_order_too() -> None:
    streams = 14
    order = best_order(
        rates=[streams - each for each in range(streams)], windows=[10] * streams,
        distinct=[50] * streams,
    )  # fmt: skip
    assert order == tuple(reversed(range(streams)))  # the smallest window first


combinations = st.tuples(some_index, some_index)


@settings(max_examples=50)
@given(combinations, combinations, windows, windows, treatments())
def test_both_cost_the_same_at_a_crossover(
    first: tuple[str, str],
    second: tuple[str, str],
    left: float,
    right: float,
    treatment: dict[str, Any],
) -> None:
    ratio = crossover(first, second, left_window=left, right_window=right, **treatment)
    if ratio is None:
        return
    at = [
        binary_cost(
            *each,
            left_rate=ratio / (1 + ratio),
            right_rate=1 / (1 + ratio),
            left_window=left,
            right_window=right,
            **treatment,
        )
        for each in (first, second)
    ]
    assert isclose(*at, rel_tol=1e-6)


def test_no_crossover_where_costs_jump() -> None:
    """Below one tuple a tree costs nothing to descend: the sign changes, and nothing is equal."""
    treatment: dict[str, Any] = {
        "weights": WEIGHTS["kang2003"],
        "bucket": 1.0,
        "node": 2,
        "model": "kang2003",
        "expire": "periodic",
        "interval": 4.0,
    }
    pair = (("scan", "scan"), ("scan", "bplus_tree"))
    assert crossover(*pair, left_window=1.0, right_window=1.0, **treatment) is None


@settings(max_examples=30)
@given(windows, windows, st.floats(1e-3, 1e3), treatments())
def test_the_winner_is_the_cheapest(
    left: float, right: float, ratio: float, treatment: dict[str, Any]
) -> None:
    indexes = ("scan", "hash", "t_tree")
    along = winners(left_window=left, right_window=right, indexes=indexes, **treatment)
    assert [each.ratio for each in along] == sorted(each.ratio for each in along)
    winner = [each.combination for each in along if each.ratio <= ratio][-1]
    costs = {
        (one, other): binary_cost(
            one,
            other,
            left_rate=ratio / (1 + ratio),
            right_rate=1 / (1 + ratio),
            left_window=left,
            right_window=right,
            **treatment,
        )
        for one in indexes
        for other in indexes
    }
    # Where lines bend, winners are looked for in steps of a fifth.
    slack = 1e-9 if treatment["expire"] == "eager" else 0.02
    assert costs[winner] <= min(costs.values()) * (1 + slack)


@pytest.mark.parametrize("own_rate", [10, 40, 1000])
def test_removal_on_probe_as_printed_for_the_scan(own_rate: float) -> None:
    """rate_a (B + log2(rate_b / rate_a) + 1) Cn + rate_b Cn"""
    cost = binary_breakdown(
        "scan", "scan", left_rate=10, right_rate=own_rate, left_window=1, right_window=600,
        weights="kang2002", model="kang2002", expire="on_probe",
    )  # fmt: skip
    printed = 10 * (600 + log2(own_rate / 10) + 1) * 0.5 + own_rate * 0.5
    assert cost.directions[1].total == pytest.approx(printed)


def test_removal_on_probe_spares_the_scan_of_a_bucket() -> None:
    options: dict[str, Any] = {
        "left_rate": 10, "right_rate": 20, "left_window": 600, "right_window": 1200,
        "bucket": 60, "weights": "kang2002", "model": "kang2002",
    }  # fmt: skip
    eager = binary_breakdown("hash", "hash", **options).directions[1]
    lazy = binary_breakdown("hash", "hash", expire="on_probe", **options).directions[1]
    assert eager.expire == pytest.approx(20 * 60 * 0.65)
    assert lazy.expire == pytest.approx(20 * 0.65)
    assert lazy.probe == eager.probe
    # What it costs instead: each bucket keeps what expired since it was last probed.
    structure = Structure("hash", 1200, 60)
    assert expired_kept(structure, "on_probe", pile=2) == 2 * 20
    assert expired_kept(Structure("scan", 1200), "on_probe", pile=2) == 2
    assert expired_kept(structure, "eager", pile=1) == 0


def test_nobody_probes_so_nobody_removes() -> None:
    cost = binary_breakdown(
        "hash", "hash", left_rate=0, right_rate=5, left_window=10, right_window=10,
        expire="on_probe",
    )  # fmt: skip
    assert cost.directions[1].expire == 0
    assert cost.directions[1].insert > 0


def test_rare_removal_makes_windows_larger() -> None:
    def cost(interval: float | None) -> float:
        return binary_cost(
            "scan", "scan", left_rate=10, right_rate=10, left_window=100, right_window=100,
            expire="periodic", interval=interval,
        )  # fmt: skip

    assert cost(None) == cost(1) < cost(10) < cost(100)


def test_our_own_hash_touches_what_it_finds() -> None:
    cost = binary_breakdown(
        "hash", "t_tree", left_rate=1, right_rate=1, left_window=1000, right_window=1000,
        distinct=(500, 100), model="penstock", weights="tuples", node=NODE_ENTRIES,
    )  # fmt: skip
    assert cost.directions[0].probe == 2
    assert cost.directions[1].probe == log2(1001) + 2  # a binary search, matches


def test_sizes_are_those_of_our_structures() -> None:
    from penstock.kernels.arena import RECORD
    from penstock.kernels.index import bplus_tree, directory, t_tree

    assert NODE_ENTRIES == t_tree.ROOM == bplus_tree.LEAF_ROOM
    node = t_tree.NODE_WORDS * 8
    for tuples in (10, 1000, 5000, 100_000):
        ring = 1 << max(tuples - 1, 63).bit_length()
        records = ring * RECORD.itemsize
        sizes = {
            "scan": records,
            "buckets": records + -(-tuples // 10) * 4,
            "hash": records
            + directory.directory_size(max(2 * -(-tuples // 10) + 16, tuples // 4)) * 8,
            "bplus_tree": records + bplus_tree.nodes_for(ring) * node,
            "t_tree": records + t_tree.nodes_for(ring) * node,
        }
        for index, size in sizes.items():
            assert memory_bytes(Structure(index, tuples), "penstock") == size


def test_memory_beside_that_of_the_t_tree() -> None:
    least = memory_bytes(Structure("t_tree", 5000))
    assert memory_bytes(Structure("hash", 5000)) / least == pytest.approx(1.05, abs=0.005)
    assert memory_bytes(Structure("bplus_tree", 5000)) / least == pytest.approx(1.10, abs=0.005)
    assert memory_bytes(Structure("scan", 5000)) < least
    sizes = [memory_bytes(Structure("hash", 5000, bucket)) for bucket in (2, 10, 50, 100)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[1] > 4 * (sizes[1] - sizes[3])
    assert memory_bytes(Structure("hash", 0)) == 0
    assert memory_bytes(Structure("scan", 100), surplus=100) == memory_bytes(Structure("scan", 200))


@pytest.mark.parametrize("weights", [*WEIGHTS.values(), MEASURED])
def test_weights_survive_json(weights: Weights) -> None:
    assert Weights.from_dict(json.loads(json.dumps(weights.to_dict()))) == weights


def test_fixed_parts_are_of_each_probe_and_update() -> None:
    flat = Weights("flat", "ns", dict.fromkeys(STRUCTURES, Weight(0, 0, 7, 5)))
    cost = binary_breakdown(
        "scan", "t_tree", left_rate=2, right_rate=3, left_window=9, right_window=9, weights=flat
    )
    assert cost.probe == 5 * 7
    assert cost.insert == cost.expire == 5 * 5


def binary(**changed: Any) -> Callable[[], float]:
    join: dict[str, Any] = {
        "left_index": "hash", "right_index": "scan", "left_rate": 1, "right_rate": 1,
        "left_window": 10, "right_window": 10, **changed,
    }  # fmt: skip
    return lambda: binary_cost(**join)


def many(order: Any = (0, 1, 2), **changed: Any) -> Callable[[], float]:
    workload: dict[str, Any] = {
        "rates": (1, 2, 3), "windows": (10, 10, 10), "distinct": (5, 5, 5), **changed,
    }  # fmt: skip
    return lambda: multiway_cost(order, **workload)


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "negative rate": (binary(left_rate=-1), r"a rate must be a finite number at least zero.*-1"),
    "rate that is no number": (binary(right_rate=nan), "a rate must be a finite number"),
    "infinite rate": (binary(right_rate=inf), "a rate must be a finite number.*inf"),
    "rate as text": (binary(right_rate="5"), "a rate must be a finite number.*'5'"),
    "negative window": (binary(left_window=-5), "a window, in tuples, must be a finite number"),
    "infinite window": (binary(left_window=inf), "a window, in tuples, must be a finite number"),
    "unknown index": (binary(left_index="btree"), r"no index is called 'btree'; choose from"),
    "unknown weights": (binary(weights="kang"), r"no weights are called 'kang'; choose from"),
    "weights of no kind": (binary(weights=3), r"no weights are called 3"),
    "no weight for it": (
        binary(left_index="t_tree", weights="kang2002"),
        "the weights 'kang2002' have none for 't_tree'",
    ),
    "unknown model": (binary(model="golab"), "no cost model is called 'golab'; choose from"),
    "unknown expire": (binary(expire="lazy"), "expire must be one of"),
    "no interval": (binary(expire="periodic", interval=0), "interval=, .* above zero, got 0"),
    "needless interval": (binary(interval=3), "interval= goes with expire='periodic'"),
    "empty bucket": (binary(bucket=0), "the tuples of a bucket must be a finite number above zero"),
    "three buckets": (binary(bucket=(1, 2, 3)), "bucket is one number, or one for each"),
    "node of one": (binary(node=1), "a whole number of entries, 2 or more, got 1"),
    "broken node": (binary(node=2.5), "a whole number of entries, 2 or more, got 2.5"),
    "too many distinct": (binary(distinct=(5, 5, 5)), "of the same streams, got 2, 2 and 3"),
    "no distinct keys": (many(distinct=(5, 0, 5)), "distinct keys of a stream must be .* above"),
    "negative distinct": (many(distinct=(5, -1, 5)), "distinct keys of a stream must be .* above"),
    "negative rate of many": (many(rates=(1, -2, 3)), "a rate must be a finite number.*-2"),
    "window that is no number": (many(windows=(1, nan, 3)), "a window must be a finite.*nan"),
    "stream twice": (many((0, 0, 1)), r"an order must name each of the streams 0 to 2 once, got"),
    "stream by name": (many((0, 1, "c")), r"an order must name each of the streams"),
    "stream missing": (many((0, 1)), r"an order must name each of the streams 0 to 2 once, got"),
    "lengths that disagree": (many(windows=(1, 2)), "every stream needs one of each, got"),
    "indexes that disagree": (many(indexes=["scan"]), "every stream needs one of each, got"),
    "one stream": (
        lambda: multiway_cost((0,), rates=(1,), windows=(1,), distinct=(1,)),
        "a join has two streams or more, got 1",
    ),
    "unknown origin": (
        lambda: best_order(rates=(1, 2), windows=(1, 1), distinct=(1, 1), origin=2),
        "origin must be one of the streams 0 to 1, got 2",
    ),
    "order of its own stream": (
        lambda: multiway_costing(
            rates=(1, 2), windows=(1, 1), distinct=(1, 1)
        ).of_orders(((0,), (0,))),
        "the order of stream 0 must name every other stream once",
    ),
    "too few orders": (
        lambda: multiway_costing(rates=(1, 2), windows=(1, 1), distinct=(1, 1)).of_orders(((1,),)),
        "each of the 2 streams needs an order, got 1 of them",
    ),
    "too many to list": (
        lambda: all_orders(
            multiway_costing(rates=[1] * 9, windows=[1] * 9, distinct=[1] * 9)
        ),
        "9 streams have too many orders to list",
    ),
    "no keys": (lambda: scan_ratio(0), "distinct keys of a stream must be .* above zero"),
    "no left stream": (
        lambda: right_rate_crossover(
            ("hash", "hash"), ("hash", "scan"), left_rate=0, left_time=1, right_time=1, keys=1
        ),
        "a rate must be a finite number above zero",
    ),
    "weight below zero": (lambda: Weight(-1, 0), "a weight must be a number .* got search=-1"),
    "weight that is no number": (lambda: Weight(0, nan), "a weight must be a number"),
    "unknown unit": (lambda: replace(MEASURED, unit="hours"), "weights are in one of"),
    "unknown structure": (
        lambda: Weights("own", "s", {"heap": Weight(1, 1)}), "'heap', which is no structure"
    ),
    "no weights at all": (lambda: Weights.from_dict({"name": "x"}), "these are no stored weights"),
    "odd stored weight": (
        lambda: Weights.from_dict({"name": "x", "unit": "s", "structures": {"scan": {"a": 1}}}),
        "these are no stored weights",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused(what: str) -> None:
    call, message = BAD[what]
    with pytest.raises(PlanError, match=message):
        call()


def test_weights_by_name_or_as_they_are() -> None:
    assert weights_of("tuples") is WEIGHTS["tuples"]
    assert weights_of(MEASURED) is MEASURED
