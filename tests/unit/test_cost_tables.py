"""The numbers of the papers, out of one cost model.

Kang, Naughton and Viglas: Table 3 to the cent, the crossovers of both versions. Golab and Özsu:
both examples to the unit.
"""

from __future__ import annotations

from itertools import permutations
from math import ceil, log2
from typing import Any

import pytest

from penstock.lab.papers.crossover import (
    crossover,
    right_rate_crossover,
    scan_ratio,
    winners,
)
from penstock.lab.papers.heuristics import all_orders, compare_orders
from penstock.planning.binary import binary_cost
from penstock.planning.multiway import best_order, multiway_cost, multiway_costing

INDEX = {"H": "hash", "N": "scan", "T": "t_tree", "B": "bplus_tree"}

TABLE_3 = {
    (9500, 500, 2, 998): {
        "HH": 7.06, "TT": 9.56, "HT": 10.89, "TH": 5.74,
        "HN": 5.99, "NH": 2845.87, "TN": 4.67, "NT": 2849.69,
    },
    (7000, 3000, 800, 200): {
        "HH": 7.06, "TT": 11.85, "HT": 6.46, "TH": 12.46,
        "HN": 722.39, "NH": 424.87, "TN": 727.78, "NT": 424.27,
    },
    (4000, 6000, 550, 450): {
        "HH": 7.06, "TT": 11.60, "HT": 8.93, "TH": 9.73,
        "HN": 993.42, "NH": 543.84, "TN": 996.09, "NT": 545.71,
    },
}  # fmt: skip
CELLS = [(*workload, name, cost) for workload, row in TABLE_3.items() for name, cost in row.items()]


@pytest.mark.parametrize(("left", "right", "left_rate", "right_rate", "name", "cost"), CELLS)
def test_table_3_to_the_cent(
    left: int, right: int, left_rate: int, right_rate: int, name: str, cost: float
) -> None:
    assert binary_cost(
        INDEX[name[0]],
        INDEX[name[1]],
        left_rate=left_rate,
        right_rate=right_rate,
        left_window=left,
        right_window=right,
    ) == pytest.approx(cost, abs=0.005)


def named(name: str) -> tuple[str, str]:
    return INDEX[name[0]], INDEX[name[1]]


def test_asymmetric_combinations_win_by_half() -> None:
    row = TABLE_3[9500, 500, 2, 998]
    assert row["HH"] / row["TN"] == pytest.approx(1.51, abs=0.01)


PAPER = ("scan", "hash", "t_tree")  # "its performance was very close": no B+tree in the figures


def test_five_winners_along_the_rates() -> None:
    along = winners(left_window=5000, right_window=5000, indexes=PAPER)
    assert [each.combination for each in along] == [
        named(name) for name in ("TN", "TH", "HH", "HT", "NT")
    ]
    assert along[2].ratio == pytest.approx(0.276, abs=0.0005)
    shares = [each.ratio / (1 + each.ratio) for each in along[2:4]]
    assert shares == pytest.approx([0.22, 0.78], abs=0.005)  # the text: about 20/80 and 80/20


def test_small_buckets_leave_two_crossovers() -> None:
    along = winners(left_window=5000, right_window=5000, indexes=PAPER, bucket=2)
    assert [each.combination for each in along] == [named(name) for name in ("HN", "HH", "NH")]


@pytest.mark.parametrize("window", [200, 500, 5000, 20_000])
def test_crossovers_8_to_11(window: int) -> None:
    def ratio(first: str, second: str) -> float | None:
        return crossover(named(first), named(second), left_window=window, right_window=window)

    above, within = ceil(log2(ceil(window / 100))) - 1, ceil(log2(100))
    assert ratio("TN", "TH") == pytest.approx(13.6 / (3 * window - 55))
    assert ratio("HT", "NT") == pytest.approx((3 * window - 55) / 13.6)
    # (9) and (10), with the T-tree's update as Table 3 has it.
    corrected = (55 - 2.6 * (1.5 * above + within)) / (2 * 2.7 * (1.5 * above + within) - 15.6)
    assert ratio("TH", "HH") == pytest.approx(corrected)
    assert ratio("HH", "HT") == pytest.approx(1 / corrected)


def test_the_scan_of_500_tuples_wins_beyond_one_to_106() -> None:
    ratio = crossover(named("TN"), named("TH"), left_window=9500, right_window=500)
    assert ratio == pytest.approx(0.0094, abs=0.00005)
    assert 1 / ratio == pytest.approx(106, abs=0.5)


def test_printed_9_gives_another_crossover() -> None:
    """What is printed and what Table 3 follows are not the same: so much apart."""
    nodes = ceil(log2(50))
    printed = (58.9 - 3.9 * nodes - 2.6 * 7) / (8.1 * nodes + 2.7 * 7 - 23.7)
    assert printed == pytest.approx(0.395, abs=0.0005)


@pytest.mark.parametrize(("keys", "rate"), [(10, 70), (20, 140)])
def test_hash_and_scan_overtake_two_hashes(keys: int, rate: int) -> None:
    exact = right_rate_crossover(
        named("HH"), named("HN"), left_rate=10, left_time=60, right_time=60, keys=keys
    )
    assert exact == pytest.approx(rate, rel=0.05)  # read off a figure
    assert exact == pytest.approx({10: 67.0, 20: 144.0}[keys], abs=0.05)


def test_the_rule_of_thumb_of_the_earlier_version() -> None:
    assert scan_ratio(10) == pytest.approx(6.7, abs=0.01)
    assert scan_ratio(10) < 100 / 10  # its example: rates of 10 and 100


@pytest.mark.parametrize(("keys", "cheaper"), [(10, "scan"), (20, "hash")])
def test_regulated_rates_of_5_and_45(keys: int, cheaper: str) -> None:
    assert (scan_ratio(keys) < 45 / 5) == (cheaper == "scan")
    tuples = 45 * 60
    costs = {
        index: binary_cost(
            "hash", index, left_rate=5, right_rate=45, left_window=5 * 60, right_window=tuples,
            weights="kang2002", model="kang2002", bucket=tuples / keys,
        )
        for index in ("scan", "hash")
    }  # fmt: skip
    assert min(costs, key=costs.__getitem__) == cheaper


EXAMPLE_1: dict[str, Any] = {
    "rates": (10, 1, 1, 3), "windows": (100, 100, 200, 100), "distinct": (500, 50, 40, 5),
}  # fmt: skip
EXAMPLE_2: dict[str, Any] = {
    "rates": (11, 10, 1, 1), "windows": (100, 100, 100, 100), "distinct": (200, 100, 65, 20),
}  # fmt: skip


@pytest.mark.parametrize(
    ("example", "order", "cost"),
    [
        (EXAMPLE_1, "1234", 16000),
        (EXAMPLE_1, "2134", 19600),
        (EXAMPLE_1, "4321", 86850),
        (EXAMPLE_2, "1234", 68200),
        (EXAMPLE_2, "2134", 79000),
        (EXAMPLE_2, "3142", 47977),
        (EXAMPLE_2, "4132", 47977),
    ],
)
def test_golab_and_ozsu_to_the_unit(example: dict[str, Any], order: str, cost: int) -> None:
    assert multiway_cost([int(each) - 1 for each in order], **example) == pytest.approx(
        cost, abs=0.5
    )


def test_best_and_worst_orders() -> None:
    assert best_order(**EXAMPLE_1) == (0, 1, 2, 3)
    assert best_order(**EXAMPLE_2) == (2, 0, 3, 1)
    assert all_orders(multiway_costing(**EXAMPLE_1))[-1] == (86850, (3, 2, 1, 0))
    assert all_orders(multiway_costing(**EXAMPLE_2))[-1][0] == 79000
    ranked = all_orders(multiway_costing(**EXAMPLE_2))
    assert {order for _, order in ranked[:2]} == {(2, 0, 3, 1), (3, 0, 2, 1)}


def test_heuristics_beside_the_optimum() -> None:
    first = compare_orders(multiway_costing(**EXAMPLE_1))
    assert first.heuristic == first.best
    second = compare_orders(multiway_costing(**EXAMPLE_2))
    assert second.heuristic == (2, 3, 0, 1)
    assert second.heuristic_cost / second.best_cost == pytest.approx(1.033, abs=0.001)
    # With as many keys everywhere the smallest window goes first, and that is the best there is.
    alike = {**EXAMPLE_2, "rates": (4, 1, 3, 2), "distinct": (20, 20, 20, 20)}
    compared = compare_orders(multiway_costing(**alike))
    assert compared.heuristic == compared.best == (1, 3, 2, 0)
    # Hash tables with as many buckets each are ordered as scans are.
    buckets = [rate * 100 / 10 for rate in alike["rates"]]
    hashed = compare_orders(multiway_costing(**alike, indexes="buckets", bucket=buckets))
    assert hashed.heuristic == hashed.best == compared.best


@pytest.mark.parametrize(("left", "right", "left_rate", "right_rate"), TABLE_3)
def test_table_3_out_of_the_model_of_many_streams(
    left: int, right: int, left_rate: int, right_rate: int
) -> None:
    """Kang's and Golab's are one model: only the weights differ."""
    for name, cost in TABLE_3[left, right, left_rate, right_rate].items():
        for order in permutations(range(2)):
            assert multiway_cost(
                order,
                rates=(left_rate, right_rate),
                windows=(left / left_rate, right / right_rate),
                distinct=(50, 70),
                weights="kang2003",
                indexes=named(name),
            ) == pytest.approx(cost, abs=0.005)
