"""The planner: it finds what brute force finds, keeps what is fixed, and leaves answers alone."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import PlanError
from penstock.lab.papers.crossover import winners
from penstock.model.plan import Index
from penstock.planning.case import Case, case_of, plan_for
from penstock.planning.costs import Costing
from penstock.planning.explain.rate_shift import rate_shifts
from penstock.planning.load import load_of
from penstock.planning.plan_costs import PlanCosts
from penstock.planning.planner import Choice
from penstock.planning.touched import Structure
from penstock.planning.weights import WEIGHTS, Weight, Weights

NAMES = "abcdefgh"
INDEXES = ("hash", "bplus_tree", "t_tree", "scan")
# Of the structures that Kang et al. compare in their figures.
PAPER = Weights(
    "kang2003",
    "s",
    {name: WEIGHTS["kang2003"].of(name) for name in ("scan", "hash", "t_tree")},
)
# Of a machine on which structures cost about what they do on most.
USUAL = Weights(
    "usual",
    "ns",
    {
        "scan": Weight(1.0, 3.0, 5.0, 3.0),
        "hash": Weight(5.0, 8.0, 10.0, 3.0),
        "bplus_tree": Weight(3.0, 6.0, 15.0, 15.0),
        "t_tree": Weight(4.0, 8.0, 15.0, 15.0),
    },
)


def join(streams: int = 2, window: str = "100 seconds", **options: Any) -> ps.WindowJoin:
    named = [ps.Stream(name, time="ts") for name in NAMES[:streams]]
    return ps.WindowJoin(named, within=window, **(options or {"on": "k"}))


def best(query: ps.WindowJoin, workload: ps.Workload | None = None, **options: Any) -> Choice:
    return case_of(query, workload, **options).planner().choose()


def indexes_of(choice: Choice) -> list[str | list[str]]:
    """As text, of a window with one path without its list."""
    named = [[str(index) for index in paths] for paths in choice.indexes]
    return [paths[0] if len(paths) == 1 else paths for paths in named]


# What brute force finds.

QUERIES = {
    "key": {"on": "k"},
    "order": {"where": "a.x < b.x"},
    "band": {"where": "abs(a.x - b.x) <= 5 AND a.y <= b.y"},
    "residual": {"where": "a.k = b.k AND a.x < b.x"},
}
THREE = {
    "key": {"on": "k"},
    "chain": {"where": "a.x = b.x AND b.y = c.y"},
    "mixed": {"where": "a.x = b.x AND b.y < c.y"},
    "unlinked": {"where": "a.x = b.x AND c.y > 0"},
    "triangle": {"where": "a.x = b.x AND b.y = c.y AND a.z = c.z"},
}

rates = st.sampled_from((0.0, 0.1, 1.0, 30.0, 1e4))
shares = st.sampled_from((0.0, 1e-6, 1e-3, 0.3, 1.0))
some_weights = st.sampled_from(("penstock", "kang2003", "tuples")) | st.builds(
    lambda each: Weights("drawn", "ns", dict(zip(INDEXES, each, strict=True))),
    st.tuples(*[st.builds(Weight, *[st.floats(0, 50)] * 4)] * 4),
)


@st.composite
def cases(draw: st.DrawFn, streams: int, kinds: dict[str, dict[str, str]]) -> Case:
    names = NAMES[:streams]
    windows = [draw(st.sampled_from(("1 second", "100 seconds", "7 rows"))) for _ in names]
    query = ps.WindowJoin(
        [
            ps.Stream(name, time="ts", window=window)
            for name, window in zip(names, windows, strict=True)
        ],
        **kinds[draw(st.sampled_from(sorted(kinds)))],
    )
    workload = ps.Workload(
        {name: draw(rates) for name in names},
        distinct={name: draw(st.sampled_from((1.0, 5.0, 300.0, 1e5))) for name in names},
        selectivities={
            pair: draw(shares)
            for pair in product(names, names)
            if pair[0] < pair[1] and (query.access.relations or draw(st.booleans()))
        },
    )
    memory = draw(st.sampled_from((None, "20 rows", "1 MiB")))
    counted = any(window.rows for window in query.windows)
    limits = ps.Limits(memory=memory) if memory and not counted else None
    return case_of(query, workload, limits=limits, weights=draw(some_weights))


def all_plans(costs: PlanCosts) -> list[float]:
    """The cost of every plan there is."""
    streams = costs.streams
    orders = product(*(permutations(s for s in streams if s != origin) for origin in streams))
    paths = [
        [
            [Index(name) for name in INDEXES if Index(name).serves(word)]
            for word in costs.access.words[window]
        ]
        for window in streams
    ]
    choices = [list(product(*of_window)) for of_window in paths]
    found = []
    for each in orders:
        asked = costs.traffic(each)[0]
        for indexes in product(*choices):
            used = tuple(
                tuple(
                    index if (window, word) in asked else Index("scan")
                    for word, index in enumerate(of_window)
                )
                for window, of_window in enumerate(indexes)
            )
            found.append(costs.cost(used, each).total)
    return found


@given(cases(2, QUERIES))
def test_the_plan_of_two_streams_is_the_cheapest_of_all(case: Case) -> None:
    planner = case.planner()
    assert planner.choose().cost.total == pytest.approx(min(all_plans(planner.costs)))


@given(cases(3, {"key": {"on": "k"}}))
def test_the_plan_of_three_streams_is_the_cheapest_of_all(case: Case) -> None:
    planner = case.planner()
    assert planner.choose().cost.total == pytest.approx(min(all_plans(planner.costs)))


@given(cases(3, THREE))
def test_no_order_and_no_index_makes_a_plan_of_three_streams_cheaper(case: Case) -> None:
    """Windows with several paths have too many plans for all of them; so for all orders, each
    index by itself, on which the others do not depend."""
    planner = case.planner()
    costs, chosen = planner.costs, planner.choose()
    cheapest = float("inf")
    for orders in product(
        *(permutations(s for s in range(3) if s != origin) for origin in range(3))
    ):
        asked, read = costs.traffic(orders)
        of_paths = [
            min(
                costs.direction(path, index, asked.get(path, ())).total
                for index in (costs.candidates(path) if path in asked else [Index("scan")])
            )
            for path in costs.paths
        ]
        reading = sum(costs.reading(window, visits) for window, visits in read.items())
        cheapest = min(cheapest, sum(of_paths) + reading)
    assert chosen.cost.total == pytest.approx(cheapest)
    for other in planner.runners_up(chosen, 8):
        assert other.cost.total >= chosen.cost.total * (1 - 1e-9)
        assert not other.is_same_plan(chosen)


@given(st.data(), st.integers(2, 5), some_weights)
def test_the_cost_of_a_plan_is_that_of_the_cost_model(
    data: st.DataObject, streams: int, weights: Any
) -> None:
    """Where all streams have one key, `planning.costs` says the same."""
    names = NAMES[:streams]
    workload = ps.Workload(
        {name: data.draw(rates) or 0.1 for name in names},  # silent ones may come back
        distinct={name: data.draw(st.sampled_from((1.0, 7.0, 900.0))) for name in names},
    )
    case = case_of(join(streams), workload, weights=weights)
    costs = case.planner().costs
    chosen = tuple((Index(data.draw(st.sampled_from(INDEXES))),) for _ in names)
    orders = tuple(
        tuple(data.draw(st.permutations([s for s in range(streams) if s != origin])))
        for origin in range(streams)
    )
    model = Costing(
        tuple(workload.rate(name) for name in names),
        tuple(
            Structure(
                index.name,
                workload.rate(name) * 100,
                node=125 if case.setting.model == "penstock" else 100,
            )
            for name, (index,) in zip(names, chosen, strict=True)
        ),
        tuple(workload.distinct_keys(name) for name in names),
        case.setting.weights,
        model=case.setting.model,
    )
    wanted, got = model.of_orders(orders), costs.cost(chosen, orders)
    assert got.total == pytest.approx(wanted.total)
    for one, other in zip(got.directions, wanted.directions, strict=True):
        assert (one.probe, one.insert, one.expire) == pytest.approx(
            (other.probe, other.insert, other.expire)
        )


@given(cases(4, {"key": {"on": "k"}}))
def test_taking_turns_comes_near_the_cheapest(case: Case) -> None:
    """Of four streams all orders are gone through; of more it is done in turns."""
    planner = case.planner()
    chosen = planner.choose()
    settled = planner.improved(chosen)
    assert settled.cost.total == pytest.approx(chosen.cost.total)


@settings(max_examples=10)
@given(cases(5, {"key": {"on": "k"}}))
def test_no_other_order_of_one_stream_makes_a_plan_of_five_cheaper(case: Case) -> None:
    planner = case.planner()
    chosen = planner.choose()
    for other in planner.runners_up(chosen, 3):
        assert other.cost.total >= chosen.cost.total * (1 - 1e-9)


# What is chosen.

CHOICES = """
2 streams | on k                    | hash hash                       | b; a
2 streams | on k, 5 rows            | hash hash                       | b; a
2 streams | a.x < b.x               | bplus_tree bplus_tree           | b; a
3 streams | on k                    | hash hash hash                  | b c; a c; a b
3 streams | a.x = b.x AND b.y = c.y | hash hash+hash hash             | b c; a c; b a
3 streams | a.x = b.x AND b.y < c.y | hash hash+bplus_tree bplus_tree | b c; a c; b a
"""


@pytest.mark.parametrize("line", CHOICES.strip().splitlines())
def test_what_is_chosen_when_nothing_is_known(line: str) -> None:
    """Hash for equality, a tree for order, next a stream that is linked; small windows of rows are
    scanned."""
    streams, what, indexes, orders = (part.strip() for part in line.split("|"))
    what, _, window = what.partition(", ")
    clause = {"on": "k"} if what == "on k" else {"where": what}
    query = join(int(streams[0]), window or "10 minutes", **clause)
    choice = best(query, weights="penstock")
    shown = " ".join(
        each if isinstance(each, str) else "+".join(each) for each in indexes_of(choice)
    )
    assert shown == indexes
    told = "; ".join(" ".join(NAMES[each] for each in order) for order in choice.orders)
    assert told == orders


def test_orders_by_what_is_known() -> None:
    """Windows that leave the least come first; both examples of Golab and Özsu."""
    query = join(4, "100 seconds")
    workload = ps.Workload(
        {"a": 11, "b": 10, "c": 1, "d": 1}, distinct={"a": 200, "b": 100, "c": 65, "d": 20}
    )
    choice = best(query, workload, indexes="scan", weights="tuples")
    # From c, the window of a leaves 1100/200 and that of d 100/65; as the slides order them.
    assert choice.orders == ((2, 3, 1), (2, 0, 3), (0, 3, 1), (0, 2, 1))


@pytest.mark.parametrize(
    ("left_rate", "name"),
    [(0.5, ("t_tree", "scan")), (100, ("t_tree", "hash")), (500, ("hash", "hash")),
     (900, ("hash", "t_tree")), (999.5, ("scan", "t_tree"))],
)  # fmt: skip
def test_the_winners_of_the_paper(left_rate: float, name: tuple[str, str]) -> None:
    """TN, TH, HH, HT, NT along the rate axis, for equal windows of 5000."""
    workload = ps.Workload({"a": left_rate, "b": 1000 - left_rate}, distinct=500)
    assert indexes_of(best(join(2, "5000 rows"), workload, weights=PAPER)) == list(name)


def test_crossovers_of_two_streams_are_those_of_the_closed_form() -> None:
    query = join(2, "5000 rows")
    case = case_of(query, ps.Workload({"a": 500, "b": 500}, distinct=500), weights=PAPER)
    edge = winners(
        left_window=5000, right_window=5000, indexes=("scan", "hash", "t_tree"), weights=PAPER
    )
    ratios = [winner.ratio for winner in edge]
    assert [winner.combination for winner in edge][2] == ("hash", "hash")
    (shift,) = rate_shifts(case, case.planner().choose())
    assert shift.below is not None
    assert shift.above is not None
    assert (shift.below.ratio, shift.above.ratio) == pytest.approx((ratios[2], ratios[3]))
    assert indexes_of(shift.below.choice) == ["t_tree", "hash"]


def test_the_index_is_chosen_after_allocation() -> None:
    """Whole the windows are hashed; of what little is kept under a limit they are read."""
    query = join(2, "100 seconds")
    workload = ps.Workload(1000, distinct=1000)
    assert indexes_of(best(query, workload, weights=USUAL)) == ["hash", "hash"]
    few = best(query, workload, limits=ps.Limits(memory="4 rows"), weights=USUAL)
    assert indexes_of(few) == ["scan", "scan"]


def test_who_is_not_dealt_with_does_not_probe() -> None:
    """A service rate of the slower stream's leaves the window of that stream alone."""
    query = join(2, "100 seconds")
    workload = ps.Workload({"a": 1000, "b": 10}, distinct=1000)
    whole = best(query, workload).cost
    served = best(query, workload, limits=ps.Limits(service_rate=500)).cost
    assert served.directions[0].insert == whole.directions[0].insert
    assert served.directions[1].probe < whole.directions[1].probe
    dropped = best(query, workload, limits=ps.Limits(service_rate=500, drop="tuple"))
    assert dropped.cost.directions[0].insert < whole.directions[0].insert


# What is fixed.


@given(cases(3, {"key": {"on": "k"}}), st.data())
def test_what_is_fixed_is_kept_and_costs_no_less(case: Case, data: st.DataObject) -> None:
    names = case.query.names
    indexes = {
        name: data.draw(st.sampled_from((*INDEXES, "buckets(64)")))
        for name in data.draw(st.sets(st.sampled_from(names)))
    }
    orders = {
        name: data.draw(st.permutations([each for each in names if each != name]))
        for name in data.draw(st.sets(st.sampled_from(names)))
    }
    weights = "penstock"
    free = case_of(case.query, case.workload, weights=weights, limits=case.limits)
    fixed = case_of(
        case.query,
        case.workload,
        indexes=indexes,
        probe_orders=orders,
        limits=case.limits,
        weights=weights,
    )
    choice = fixed.planner().choose()
    shown = dict(zip(names, indexes_of(choice), strict=True))
    assert {name: shown[name] for name in indexes} == indexes
    for name, order in orders.items():
        assert [names[each] for each in choice.orders[names.index(name)]] == list(order)
    if "buckets(64)" not in indexes.values():  # they are only used when asked for
        assert choice.cost.total >= free.planner().choose().cost.total * (1 - 1e-9)
    choice.plan(case.query, case.limits)  # and the engine takes it


def test_one_index_for_a_window_is_for_the_paths_it_serves() -> None:
    query = join(3, where="a.x = b.x AND b.y < c.y")
    choice = best(query, indexes={"b": "hash", "c": "t_tree"}, weights="penstock")
    assert indexes_of(choice) == ["hash", ["hash", "bplus_tree"], "t_tree"]
    choice = best(query, indexes={"b": ["scan", "t_tree"]}, weights="penstock")
    assert indexes_of(choice)[1] == ["scan", "t_tree"]


def test_a_plan_for_many_streams_is_found_at_once() -> None:
    query = join(8)
    workload = ps.Workload({name: 3.0**place for place, name in enumerate(NAMES)}, distinct=300)
    plan = plan_for(query, workload, None, None, None)
    assert all(len(order) == 7 for order in plan.probe_orders)


def test_streams_of_no_rate_and_windows_of_no_length() -> None:
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts", window="0 seconds"), ps.Stream("b", time="ts", window="1 s")],
        on="k",
    )
    assert best(query, ps.Workload({"a": 5, "b": 0}, distinct=1)).cost.total == 0
    assert indexes_of(best(query, ps.Workload(0, distinct=1))) == ["hash", "hash"]


# What is refused.


@pytest.mark.parametrize(
    ("workload", "options", "told"),
    [
        (ps.Workload({"a": 1}, distinct=1), {}, "rate of stream 'b' is not known"),
        (ps.Workload({"a": 1, "b": 1, "c": 1}, distinct=1), {}, "names 'c'"),
        (ps.Workload(1), {}, "distinct"),
        ({"a": 1}, {}, "must be a Workload"),
        (None, {"indexes": {"a": "hosh"}}, "no index is called 'hosh'"),
        (None, {"indexes": {"z": "hash"}}, "no stream"),
        (None, {"probe_orders": {"a": ["a"]}}, "every other stream"),
        (None, {"weights": "mine"}, "no weights are called"),
    ],
)
def test_what_is_refused(workload: Any, options: Any, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        best(join(), workload, **options)


def test_rates_below_zero_and_order_without_a_selectivity_are_refused() -> None:
    with pytest.raises(PlanError, match="0 or more"):
        ps.Workload({"a": -1, "b": 1})
    with pytest.raises(PlanError, match="match by order is not known"):
        best(join(where="a.x < b.x"), ps.Workload(1, distinct=5))
    with pytest.raises(PlanError, match="horizon"):
        best(join(window="unbounded"), ps.Workload(1, distinct=5))


# The answer does not depend on it.


def batches(streams: int, seed: int) -> dict[str, pa.Table]:
    return {
        name: pa.table(
            {
                "ts": [t * 1_000_000 for t in range(40)],
                "k": [(t * (place + 2) + seed) % 7 for t in range(40)],
                "x": [(t * 5 + place * seed) % 11 for t in range(40)],
                "y": [(t + place) % 3 for t in range(40)],
            }
        )
        for place, name in enumerate(NAMES[:streams])
    }


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.jit_off
@pytest.mark.parametrize(
    ("streams", "clause"),
    [
        (2, {"on": "k"}),
        (2, {"where": "a.x < b.x AND a.y = 1"}),
        (3, {"where": "a.x = b.x AND b.y = c.y"}),
    ],
)
def test_chosen_and_rejected_plans_give_the_same_answer(
    streams: int, clause: dict[str, str]
) -> None:
    query = join(streams, "6 seconds", **clause)
    workload = ps.Workload(
        {name: 10.0**place for place, name in enumerate(NAMES[:streams])},
        distinct=7,
        selectivities={("a", "b"): 0.1},
    )
    case = case_of(query, workload)
    planner = case.planner()
    chosen = planner.choose()
    given_in = batches(streams, 3)
    with query.start(workload) as running:
        wanted = rows(running.push(given_in))
    assert wanted
    for other in planner.runners_up(chosen, 3):
        named = {name: list(paths) for name, paths in zip(query.names, other.indexes, strict=True)}
        orders = {
            name: [query.names[each] for each in order]
            for name, order in zip(query.names, other.orders, strict=True)
        }
        with query.start(indexes=named, probe_orders=orders) as running:
            assert rows(running.push(given_in)) == wanted


@pytest.mark.jit_off
def test_the_same_plan_is_taken_embedded_restored_and_on_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operator = pytest.importorskip("penstock.spark.operator")
    query = join(2, "100 seconds")
    workload = ps.Workload({"a": 1000, "b": 1e-6}, distinct=1000)
    taken = []
    monkeypatch.setattr(operator, "join_on_spark", lambda _, __, plan, ___: taken.append(plan))
    query.on_spark(workload=workload)
    with query.start(workload) as running:
        taken.append(running.plan)
        saved = running.snapshot()
    with query.restore(saved, workload=workload) as running:
        taken.append(running.plan)
    assert taken == [best(query, workload).plan(query)] * 3
    assert taken[0] != best(query).plan(query)


def test_limits_do_not_shrink_what_is_only_assumed() -> None:
    """They may be raised while the join runs, and its indexes stay."""
    choice = best(join(), limits=ps.Limits(memory="2 rows"), weights="penstock")
    assert indexes_of(choice) == ["hash", "hash"]


def test_loads_are_numbers_of_the_workload() -> None:
    load = load_of(join(2, "10 seconds"), ps.Workload({"a": 4, "b": 2}, distinct=8))
    assert load.tuples == (40, 20)
    assert load.share(frozenset((0, 1))) == 1 / 8
