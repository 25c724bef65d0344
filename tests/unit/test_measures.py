"""Measures of an approximate answer, against their definitions, plain Python and brute force."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import FrozenInstanceError
from itertools import combinations, permutations
from math import inf, isclose, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

import penstock as ps
from penstock import measures

# The paper's example: R = 1, 1, 1, 3, 2 and S = 2, 3, 1, 1, 3, windows of 3 instants. With room for
# one tuple of each, 5 of the 7 results can be had, as without r1 with s2 and s3.
DUE = [(0, 2), (1, 2), (1, 3), (2, 2), (2, 3), (3, 1), (3, 4)]
BEST = [(0, 2), (2, 2), (2, 3), (3, 1), (3, 4)]

BAGS = st.lists(st.integers(0, 4), max_size=8)
ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=4)
WITHOUT_DISTANCE = (
    "symmetric_difference", "matching", "dice", "jaccard", "cosine", "overlap", "recall",
    "precision",
)  # fmt: skip
SYMMETRIC = ("symmetric_difference", "matching", "dice", "jaccard", "cosine", "overlap")


def table(rows: list[Any], **types: Any) -> pa.Table:
    """Of pairs, as columns x and y."""
    return pa.table(
        {
            name: pa.array([row[place] for row in rows], types.get(name, pa.int64()))
            for place, name in enumerate("xy")
        }
    )


# What they are.


def test_the_example_of_the_paper() -> None:
    r, s = (1, 1, 1, 3, 2), (2, 3, 1, 1, 3)
    pairs = [(i, j) for i in range(5) for j in range(5) if r[i] == s[j] and abs(i - j) < 3]
    assert pairs == DUE
    told = measures.compare(DUE, BEST)
    assert (told.exact, told.approximate, told.matching) == (7, 5, 5)
    assert (told.missing, told.extra, told.symmetric_difference) == (2, 0, 2)
    assert told.max_subset == told.recall == measures.max_subset(DUE, BEST) == 5 / 7
    assert measures.matching(DUE, BEST) == 5
    assert measures.dice(DUE, BEST) == 10 / 12
    assert measures.jaccard(DUE, BEST) == 5 / 7
    assert measures.cosine(DUE, BEST) == 5 / sqrt(35)  # the product, where the paper has a sum
    assert measures.overlap(DUE, BEST) == 1.0
    assert measures.precision(DUE, BEST) == 1.0
    assert measures.earth_movers(DUE, BEST, [0, 1]) == 0.0
    # Both that are missing are a step from one that is there: (1, 2) from (2, 2), (1, 3) from
    # (2, 3); these have two edges then.
    assert measures.mac(DUE, BEST, [0, 1]) == 4.0
    assert measures.mac(DUE, BEST, [0, 1], value=lambda weight, *_: weight.sum()) == 2.0


@given(BAGS, BAGS)
def test_the_definitions(exact: list[int], approximate: list[int]) -> None:
    e, a = Counter(exact), Counter(approximate)
    told = measures.compare(exact, approximate)
    assert told.matching == (e & a).total()
    assert told.missing == (e - a).total()
    assert told.extra == (a - e).total()
    union = (e | a).total()
    assert told.jaccard == ((e & a).total() / union if union else 1.0)
    for name in WITHOUT_DISTANCE:
        assert getattr(measures, name)(exact, approximate) == getattr(told, name)


@given(BAGS, BAGS)
def test_how_they_hang_together(exact: list[int], approximate: list[int]) -> None:
    told, back = measures.compare(exact, approximate), measures.compare(approximate, exact)
    for name in SYMMETRIC:
        assert getattr(told, name) == getattr(back, name)
    assert told.recall == back.precision
    for part in (told.dice, told.jaccard, told.cosine, told.overlap, told.recall, told.precision):
        assert 0.0 <= part <= 1.0
    assert isclose(told.dice, 2 * told.jaccard / (1 + told.jaccard))
    assert isclose(told.cosine, sqrt(told.recall * told.precision))
    assert told.jaccard <= told.dice <= told.cosine + 1e-15 <= told.overlap + 2e-15
    same = Counter(exact) == Counter(approximate)
    assert (told.dice == 1.0) == (told.jaccard == 1.0) == (told.cosine == 1.0) == same
    assert (told.symmetric_difference == 0) == same
    within = Counter(exact) <= Counter(approximate) or Counter(approximate) <= Counter(exact)
    assert (told.overlap == 1.0) == within


@given(BAGS, BAGS, BAGS)
def test_dice_and_jaccard_put_answers_in_the_same_order(
    exact: list[int], one: list[int], other: list[int]
) -> None:
    first, second = measures.compare(exact, one), measures.compare(exact, other)
    assert (first.dice < second.dice) == (first.jaccard < second.jaccard)


@given(BAGS, st.data())
def test_of_a_part_max_subset_is_the_recall(exact: list[int], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(exact), max_size=len(exact)))
    part = [row for row, keep in zip(exact, kept, strict=True) if keep]
    told = measures.compare(exact, part)
    assert measures.max_subset(exact, part) == told.max_subset == told.recall
    assert told.recall == (len(part) / len(exact) if exact else 1.0)
    assert told.symmetric_difference == told.missing == len(exact) - len(part)
    assert told.overlap == told.precision == 1.0
    assert measures.earth_movers(exact, part, 0) == 0.0


def test_what_is_no_part_has_no_max_subset() -> None:
    with pytest.raises(ps.InputError, match=r"2 of its 3 rows .* symmetric_difference"):
        measures.max_subset([1, 2], [1, 1, 3])
    told = measures.compare([1, 2], [1, 1, 3])
    assert told.max_subset is None
    assert "no subset" in str(told)


def test_empty_answers() -> None:
    none = measures.compare([], [])
    assert none.max_subset == none.recall == none.precision == 1.0
    assert none.dice == none.jaccard == none.cosine == none.overlap == 1.0
    assert none.matching == none.symmetric_difference == 0
    lost = measures.compare([1], [])
    assert lost.max_subset == lost.recall == lost.dice == lost.jaccard == lost.cosine == 0.0
    assert lost.precision == lost.overlap == 1.0
    extra = measures.compare([], [1])
    assert extra.max_subset is None
    assert extra.recall == extra.overlap == 1.0
    assert extra.precision == extra.dice == extra.jaccard == extra.cosine == 0.0
    for empty, full in (([], [(1, 2)]), (table([]), table([(1, 2)]))):
        columns = [0, 1] if isinstance(empty, list) else ["x", "y"]
        assert measures.earth_movers(empty, full, columns) == 0.0
        assert measures.earth_movers(empty, empty, columns) == 0.0
        assert measures.mac(empty, empty, columns) == 0.0
        assert measures.mac(empty, full, columns) == measures.mac(full, empty, columns) == inf


def test_a_comparison_is_frozen_and_shown_as_a_table() -> None:
    told = measures.compare(table(DUE), table(BEST))
    with pytest.raises(FrozenInstanceError):
        told.exact = 3  # type: ignore[misc]
    lines = str(told).splitlines()
    assert lines[0] == "compared by x, y"
    assert lines[1] == "exact rows             7"
    assert "MAX-subset        0.7143" in lines
    assert len({len(line) for line in lines[1:]}) == 1


# Tables and sequences.


class Exported:
    """Nothing but the protocol."""

    def __init__(self, given: pa.Table) -> None:
        self.given = given

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.given.__arrow_c_stream__(requested_schema)


@given(ROWS, ROWS)
def test_tables_are_as_sequences(
    exact: list[tuple[int, int]], approximate: list[tuple[int, int]]
) -> None:
    told = measures.compare(exact, approximate)
    narrow = table(approximate, x=pa.int32()).select(["y", "x"])
    for one, other in (
        (table(exact), table(approximate)),
        (Exported(table(exact)), narrow),
        (table(exact).to_reader(), table(approximate).to_pandas()),
        (table(exact), pa.concat_tables([table(approximate[:2]), table(approximate[2:])])),
    ):
        found = measures.compare(one, other)
        assert found.columns == ("x", "y")
        assert (found.exact, found.approximate, found.matching) == (
            told.exact, told.approximate, told.matching,
        )  # fmt: skip
    for measure in (measures.earth_movers, measures.mac):
        told_of_tables = measure(table(exact), table(approximate), {"x": 1, "y": 2.5})
        assert told_of_tables == measure(exact, approximate, {0: 1, 1: 2.5})

    def by_function(e: Any, a: Any) -> Any:
        return abs(e["x"] - a["x"]) + 2.5 * abs(e["y"] - a["y"])

    def cost(distance: Any) -> float:  # the rest may differ between covers of one cost
        return measures.mac(
            table(exact), table(approximate), distance, value=lambda weight, *_: weight.sum()
        )

    by_names = {"x": 1, "y": 2.5}
    assert cost(by_function) == pytest.approx(cost(by_names))
    assert measures.earth_movers(table(exact), table(approximate), by_function) == pytest.approx(
        measures.earth_movers(table(exact), table(approximate), by_names)
    )


def test_values_that_floats_take_for_different() -> None:
    exact = [(0.0, nan), (1.5, nan), (nan, 1.0), (nan, 1.0)]
    approximate = [(-0.0, float("nan")), (float("-nan"), 1.0), (2.5, nan)]
    assert measures.matching(exact, approximate) == 2
    for data_type in (pa.float64(), pa.float32(), pa.float16()):
        types = {"x": data_type, "y": data_type}
        assert measures.matching(table(exact, **types), table(approximate, **types)) == 2
    assert measures.matching([nan, 1], [float("nan")]) == 1
    assert measures.matching([(1, None)], [(1, None)]) == 1
    assert measures.matching(table([(1, None)]), table([(1, None), (None, None)])) == 1


def test_columns_are_those_in_both_or_those_named() -> None:
    exact = table([(1, 1), (2, 2)]).append_column("e", pa.array([1, 2]))
    approximate = table([(1, 1), (3, 2)]).append_column("a", pa.array([[1], [2]]))
    assert measures.compare(exact, approximate).columns == ("x", "y")
    assert measures.matching(exact, approximate) == 1
    assert measures.matching(exact, approximate, columns=["y"]) == 2
    assert measures.matching(np.array([[1, 1], [2, 2]]), [(1, 1)]) == 1
    assert measures.matching(np.array([1, 1, 2]), {1, 2}) == 2


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None, "a"]).dictionary_encode(),
        pa.array(["a", None, "a"], pa.string_view()),
        pa.compute.run_end_encode(pa.array(["a", None, "a"])),
        pa.array(["a", None, "a"], pa.large_string()),
        pa.ExtensionArray.from_storage(pa.json_(), pa.array(["a", None, "a"])),
    ],
    ids=lambda array: str(array.type),
)
def test_every_encoding(array: pa.Array) -> None:
    plain = pa.table({"x": ["a", "a", "b", None]})
    assert measures.matching(plain, pa.table({"x": array})) == 3


def test_answers_that_cannot_be_compared() -> None:
    one = table([(1, 1)])
    refused: list[tuple[Any, Any, Any, type, str]] = [
        (one, one, ["z"], ps.SchemaError, r"exact answer has no columns \['z'\]"),
        (one, one.select(["x"]), ["y"], ps.SchemaError, "approximate answer has no columns"),
        (one, one.rename_columns(["p", "q"]), None, ps.SchemaError, "no columns to compare"),
        (one, one, [], ps.SchemaError, "no columns to compare"),
        (one, table([("a", 1)], x=pa.string()), None, ps.SchemaError, "int64 .* string"),
        (one, one.rename_columns(["x", "x"]), None, ps.SchemaError, "several columns"),
        (one, [(1, 1)], None, ps.InputError, "a table and .* a sequence"),
        ([(1, 1)], [(1, 1)], ["x"], ps.InputError, "no names"),
        ("ab", "ab", None, ps.InputError, "is a str"),
        ({1: 2}, [1], None, ps.InputError, "is a dict"),
        ([1], [[1]], None, ps.InputError, "cannot be hashed"),
        ([1], pa.array([1]), None, ps.InputError, "imported as Arrow"),
        (pa.table({"x": [[1]]}), pa.table({"x": [[1]]}), None, ps.SchemaError, "nested"),
    ]
    for exact, approximate, columns, error, message in refused:
        with pytest.raises(error, match=message):
            measures.compare(exact, approximate, columns=columns)
    large = pa.table({"x": [2**53 + 1]})
    with pytest.raises(ps.SchemaError, match="cannot be compared"):
        measures.compare(large, pa.table({"x": [1.0]}))


# With a distance.


def steps(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum(abs(x - y) for x, y in zip(one, other, strict=True))


def least_work(exact: list[Any], approximate: list[Any]) -> float:
    few, many = sorted((exact, approximate), key=len)
    ways = permutations(many, len(few))
    return min(sum(steps(x, y) for x, y in zip(few, way, strict=True)) for way in ways)


@given(ROWS, ROWS)
def test_earth_movers_is_the_least_work(
    exact: list[tuple[int, int]], approximate: list[tuple[int, int]]
) -> None:
    work = measures.earth_movers(exact, approximate, [0, 1])
    assert work == least_work(exact, approximate)
    assert work == measures.earth_movers(approximate, exact, [0, 1])


@given(st.lists(st.integers(0, 30), max_size=6), st.lists(st.integers(0, 30), max_size=6))
def test_earth_movers_in_one_column(exact: list[int], approximate: list[int]) -> None:
    work = measures.earth_movers(exact, approximate, 0)
    assert work == least_work([(x,) for x in exact], [(x,) for x in approximate])
    assert isclose(measures.earth_movers(exact, approximate, {0: 0.25}), work / 4)
    if exact and approximate:
        assert work == measures.earth_movers(exact, approximate, lambda e, a: abs(e[0] - a[0]))
    size = min(len(exact), len(approximate))
    if size:
        same = exact[:size], approximate[:size]
        mean = measures.earth_movers(*same, 0) / size
        assert isclose(mean, wasserstein_distance(*same), abs_tol=1e-12)


def cheapest_covers(distances: np.ndarray) -> tuple[float, list[list[tuple[int, int]]]]:
    """All covers of the least cost in which no edge could be left out."""
    rows, columns = distances.shape
    edges = [(row, column) for row in range(rows) for column in range(columns)]
    found: dict[float, list[list[tuple[int, int]]]] = {}
    # Without an edge to spare it is made of stars.
    for size in range(max(rows, columns), rows + columns):
        for chosen in combinations(edges, size):
            at = Counter(("e", row) for row, _ in chosen) + Counter(("a", to) for _, to in chosen)
            spare = any(at["e", row] > 1 and at["a", to] > 1 for row, to in chosen)
            if len(at) == rows + columns and not spare:
                cost = float(sum(distances[edge] for edge in chosen))
                found.setdefault(cost, []).append(list(chosen))
    return min(found), found[min(found)]


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3)).flatmap(
        lambda shape: st.lists(
            st.integers(0, 5), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]
        ).map(lambda given: np.array(given, float).reshape(shape))
    )
)
def test_mac_is_that_of_a_cheapest_cover(distances: np.ndarray) -> None:
    """Of any distance, be it a metric or not."""
    cost, covers = cheapest_covers(distances)
    rows = list(range(distances.shape[0])), list(range(distances.shape[1]))

    def given_out(exact: Any, approximate: Any) -> np.ndarray:
        return distances[exact[0], approximate[0]]

    assert measures.mac(*rows, given_out, value=lambda weight, *_: weight.sum()) == cost
    fewest = min(len(cover) for cover in covers)
    assert measures.mac(*rows, given_out, value=lambda weight, *_: len(weight)) == fewest
    possible = set()
    for cover in covers:
        at_exact, at_approximate = (Counter(edge[end] for edge in cover) for end in (0, 1))
        possible.add(sum(distances[e, a] * max(at_exact[e], at_approximate[a]) for e, a in cover))
    assert measures.mac(*rows, given_out) in possible


@given(ROWS, ROWS)
def test_mac_of_rows(exact: list[tuple[int, int]], approximate: list[tuple[int, int]]) -> None:
    if not exact or not approximate:
        return
    distances = np.array([[steps(e, a) for a in approximate] for e in exact], float)
    nearest = distances.min(axis=1).sum(), distances.min(axis=0).sum()

    def cost(one: Any, other: Any) -> float:
        return measures.mac(one, other, [0, 1], value=lambda weight, *_: weight.sum())

    assert max(nearest) <= cost(exact, approximate) <= sum(nearest)
    assert cost(exact, approximate) == cost(approximate, exact)
    assert measures.mac(exact, exact[::-1], [0, 1]) == 0.0
    edges = measures.mac(exact, exact[::-1], [0, 1], value=lambda _, e, a: (e * a).sum())
    assert edges == len(exact)  # one at each row
    assert (measures.mac(exact, approximate, [0, 1]) == 0.0) == (set(exact) == set(approximate))


def test_the_order_of_rows_does_not_matter() -> None:
    """Though by L1 there are many covers of the same cost."""
    rng = np.random.default_rng(2)
    exact, approximate = (table(rng.integers(0, 40, (200, 2)).tolist()) for _ in range(2))
    told = set()
    for _ in range(5):
        mixed = [each.take(pa.array(rng.permutation(200))) for each in (exact, approximate)]
        told.add((measures.mac(*mixed, ["x", "y"]), measures.earth_movers(*mixed, ["x", "y"])))
    assert len(told) == 1


def test_mac_tells_good_parts_from_bad_ones() -> None:
    exact = [1, 2, 3, 100]
    assert measures.earth_movers(exact, [2, 100], 0) == measures.earth_movers(exact, [1, 2], 0) == 0
    assert measures.mac(exact, [2, 100], 0) == 6.0  # two of three edges at 2 weigh 1
    assert measures.mac(exact, [1, 2], 0) == (1 + 98) * 3


@pytest.mark.parametrize(
    ("array", "distance"),
    [
        (pa.array([0, 1], pa.timestamp("ms")), 1_000),
        (pa.array([0, 1], pa.date32()), 86_400_000_000),
        (pa.array([0, 1], pa.duration("s")), 1_000_000),
        (pa.array([0, 1], pa.time32("s")), 1_000_000),
        (pa.array([False, True]), 1),
        (pa.array([0, 1]).cast(pa.decimal128(20, 1)), 1),
        (pa.array([0, 1], pa.uint8()), 1),
    ],
    ids=lambda given: str(given.type) if isinstance(given, pa.Array) else "",
)
def test_what_counts_as_a_number(array: pa.Array, distance: int) -> None:
    """Times are microseconds."""
    one, other = (pa.table({"x": array[row : row + 1]}) for row in (0, 1))
    assert measures.earth_movers(one, other, "x") == distance


def test_many_rows_that_are_alike() -> None:
    rng = np.random.default_rng(1)
    exact = pa.table({"x": rng.normal(size=20_000), "y": rng.integers(0, 9, 20_000)})
    part = exact.take(pa.array(rng.permutation(20_000)[:15_000]))
    assert measures.earth_movers(exact, part, ["x", "y"]) == 0.0
    shifted = part.set_column(0, "x", pa.compute.add(part["x"], 1e-3))
    assert 0 < measures.earth_movers(exact, shifted, "x") < 15.1
    assert measures.recall(exact, part) == 0.75
    assert measures.recall(exact, shifted) == 0.0


def test_distances_that_are_refused() -> None:
    one, other = table([(1, 1), (2, 2)]), table([(1, 3)])
    refused: list[tuple[Any, type, str]] = [
        ("z", ps.SchemaError, r"\['z'\] are not there; name some of \['x', 'y'\]"),
        ([], ps.SchemaError, "name some of"),
        ({"x": -1}, ps.InputError, "weight of column 'x' is -1"),
        ({"x": nan}, ps.InputError, "weight of column 'x' is nan"),
        (1.5, ps.InputError, "a distance is"),
        (lambda e, a: a["x"] - e["y"] - 5, ps.InputError, "row 0 .* row 0 .* is -5"),
        (lambda e, a: 0 * e["x"] * a["x"] + nan, ps.InputError, "is nan"),
        (lambda e, a: 0 * e["x"] * a["x"] + inf, ps.InputError, "is inf"),
        (lambda e, a: e["x"][0], ps.InputError, r"shape \(1,\), not \(2, 1\)"),
        (lambda e, a: "far", ps.InputError, "no numbers"),
    ]
    for distance, error, message in refused:
        for measure in (measures.earth_movers, measures.mac):
            with pytest.raises(error, match=message):
                measure(one, other, distance)
    with pytest.raises(ps.SchemaError, match="no number"):
        measures.mac(pa.table({"x": ["1"]}), pa.table({"x": ["2"]}), "x")
    with pytest.raises(ps.SchemaError, match="no number"):
        measures.mac([("a",)], [("b",)], 0)
    with pytest.raises(ps.InputError, match="nulls"):
        measures.earth_movers(table([(None, 1)]), one, "x")
    with pytest.raises(ps.InputError, match="not alike"):
        measures.mac([(1,), (1, 2)], [(1,)], 0)
    with pytest.raises(ps.InputError, match="gave NaN"):
        measures.mac(one, other, "x", value=lambda *_: nan)
    with pytest.raises(ps.SchemaError, match=r"\['y'\] are not there"):
        measures.mac(one, other, "y", columns=["x"])


def test_sizes_that_would_not_fit_are_refused() -> None:
    many = pa.table({"x": np.arange(10_000), "y": np.arange(10_000)})
    more = pa.table({"x": np.arange(10_000) + 0.5, "y": np.arange(10_000)})
    for measure in (measures.earth_movers, measures.mac):
        with pytest.raises(ps.InputError, match=r"10,000 and 10,000 rows .* 763 MiB"):
            measure(many, more, ["x", "y"])
    with pytest.raises(ps.InputError, match="100,000,000 pairs"):
        measures.earth_movers(many, more, lambda e, a: abs(e["x"] - a["x"]))
    assert measures.earth_movers(many, more, "x") == 5_000.0
    assert measures.earth_movers(many, many, ["x", "y"]) == 0.0
    with pytest.raises(ps.InputError, match="steps to match"):
        measures.earth_movers(many, more.slice(5_000), "x", most_pairs=1_000)


# Of a join.


@pytest.mark.jit_off
def test_the_recall_of_a_join_is_that_of_its_ledger() -> None:
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within="20 us"
    )
    rng = np.random.default_rng(3)
    tables = {
        name: pa.table({"ts": np.arange(60), "k": rng.zipf(1.5, 60) % 7}) for name in query.names
    }
    with query.start() as join:
        exact = join.push(tables)
    with query.start(limits=ps.Limits(memory="10 rows", shed="prob")) as join:
        approximate = join.push(tables)
        recall = join.metrics.recall
    assert recall is not None
    assert 0 < recall < 1
    assert measures.max_subset(exact, approximate) == measures.recall(exact, approximate) == recall
    assert measures.overlap(exact, approximate) == 1.0


def test_the_text_in_the_documentation_is_true() -> None:
    page = (Path(__file__).parents[2] / "docs" / "measures.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)\n```", page, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)\n```", page, re.DOTALL)
    told: list[str] = []
    exec(code, {"print": lambda given: told.append(str(given))})  # noqa: S102  its own example
    assert "\n".join(told) == shown
