"""Cases that other stream joins test themselves with, each named after its origin.

One table, run embedded by test_conformance.py and on Spark by test_conformance_spark.py. A case
is a query and its batches, and what each of them brings. Times are those of the origins, some
decades later: Spark's watermark is never before 1970.

How the origins are translated:

- Late is `ts <= watermark` there and `ts < watermark` here: a lateness is a tick shorter than
  their delay. A tick is a millisecond, that of Spark's watermark.
- Their output has the end of the window; here it is no column, and is left out.
- A watermark that they set, or that one stream alone has, is brought by rows without a key, which
  join nothing and are not kept.
- Flink's watermark W says that nothing at or below W is still to come: W and a tick here.

The watermark of a batch on Spark is that of the batches before it. What comes out because time has
passed (`Step.passed`) comes with the next batch there, and what leaves its window is still counted
in this one (`Step.live_on_spark`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps

__all__ = ["CASES", "FLINK_IN_TURN", "Case", "Row", "Step", "in_order", "table", "without_nothing"]

Row = tuple[int | None, float, int]  # key, seconds, value
Rows = Sequence[Row]
Results = Sequence[tuple[int | None, ...]]

SHIFT: Final = 1_700_000_000  # whole slots of ten seconds
SCHEMA: Final = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
# Where Spark has no watermark: nothing leaves and nothing is late.
UNBOUNDED: Final = {"window": "1000 weeks", "lateness": "1000 weeks"}
DELAY_10: Final = {"lateness": "9.999 seconds"}
TUMBLING: Final = "tumbling 10 seconds"


@dataclass(frozen=True)
class Step:
    """A batch. new: what comes out with its rows. passed: what its watermark lets go. late: the
    values of late rows. live: the tuples in the windows after it, of all streams or of each."""

    rows: Mapping[str, Rows]
    new: Results = ()
    passed: Results = ()
    late: Mapping[str, Sequence[int]] = field(default_factory=dict)
    live: int | Mapping[str, int] | None = None
    live_on_spark: int | None = None


@dataclass(frozen=True)
class Case:
    """columns: those of the output that are compared. runs: the steps between restarts.
    pieces: in how many the input comes, in each run."""

    query: ps.WindowJoin
    columns: Sequence[str]
    runs: Sequence[Sequence[Step]]
    pieces: Sequence[int] = ()


def table(rows: Rows) -> pa.Table:
    keys, seconds, values = zip(*rows, strict=True) if rows else ((), (), ())
    times = pa.array([round((SHIFT + each) * 1_000_000) for each in seconds], pa.int64())
    columns = [pa.array(keys, pa.int64()), times.cast(SCHEMA.field("ts").type), pa.array(values)]
    return pa.table([each.cast(f.type) for each, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def in_order(results: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """In the order of their values, nulls last."""
    return sorted(results, key=lambda row: [(each is None, each or 0) for each in row])


def without_nothing(late: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {name: sorted(values) for name, values in late.items() if values}


def join_of(settings: Mapping[str, Mapping[str, str]], **more: Any) -> ps.WindowJoin:
    streams = [ps.Stream(name, time="ts", **given) for name, given in settings.items()]
    return ps.WindowJoin(streams, **{"on": "k", **more})


def both(settings: Mapping[str, str], **more: Any) -> ps.WindowJoin:
    return join_of({"l": settings, "r": settings}, **more)


def left(*values: int) -> Rows:
    """Value v has key v and comes at v seconds, here with 2v."""
    return [(value, value, 2 * value) for value in values]


def right(*values: int) -> Rows:
    return [(value, value, 3 * value) for value in values]


def at(*seconds: int) -> Rows:
    """Of one key, at these times."""
    return [(1, second, second) for second in seconds]


def of(*pairs: tuple[int, int]) -> Rows:
    """Rows of (key, time)."""
    return [(key, second, second) for key, second in pairs]


def modulo_5(*values: int) -> Rows:
    return [(value % 5, value, value) for value in values]


def keyed(**keys: int) -> Rows:
    """Letters for keys; the value is the place of the letter."""
    return [(ord(key) - 96, second, ord(key) - 96) for key, second in keys.items()]


def time_alone(second: float) -> Rows:
    return [(None, second, 0)]


PAIR: Final = ("l_v", "r_v")
KEY_AND_PAIR: Final = ("l_k", "l_v", "r_v")

SPARK: Final = {
    "inner join on non-time column": Case(
        both(UNBOUNDED),
        KEY_AND_PAIR,
        [
            [
                Step({"l": left(1)}),
                Step({"r": right(1, 10)}, [(1, 2, 3)]),
                Step({"l": left(10)}, [(10, 20, 30)]),
                Step({"r": right(1)}, [(1, 2, 3)]),
            ],
            [Step({"l": left(1)}, [(1, 2, 3), (1, 2, 3)])],
            [Step({"l": left(100), "r": right(100)}, [(100, 200, 300)])],
        ],
    ),
    # Only the left has a watermark there. Of the last two they drop the left one as late; one
    # clock rules both streams here, and both are. The answer is the same.
    "windowed inner join with watermark": Case(
        join_of({"l": DELAY_10, "r": {}}, within=TUMBLING),
        KEY_AND_PAIR,
        [
            [
                Step({"l": left(1), "r": time_alone(1_000_000)}, live=1),
                Step({"r": right(1)}, [(1, 2, 3)], live=2),
                Step({"l": left(25)}, live=1, live_on_spark=3),
                Step({"r": right(25)}, [(25, 50, 75)], live=2),
                Step({"r": right(1)}, late={"r": [3]}),
                Step({"l": left(5)}, late={"l": [10]}, live=2),
            ]
        ],
    ),
    "time range join with watermark on both sides": Case(
        join_of(
            {
                "l": {"window": "10 seconds", "lateness": "19.999 seconds"},
                "r": {"window": "5 seconds", "lateness": "29.999 seconds"},
            }
        ),
        PAIR,
        [
            [
                Step({"l": at(20)}),
                Step({"r": at(14, 15, 25, 26, 30, 31)}, [(20, 15), (20, 25), (20, 26), (20, 30)]),
                Step({"r": at(60)}),
                Step({"l": at(49, 50, 65, 66)}, [(50, 60), (65, 60)]),
                Step({"l": at(30, 31)}, [(31, 26), (31, 30), (31, 31)], late={"l": [30]}),
                Step({"r": at(80)}),
                Step({"r": at(46, 50)}, [(49, 50), (50, 50)], late={"r": [46]}),
            ]
        ],
    ),
    "self join": Case(
        both(UNBOUNDED),
        KEY_AND_PAIR,
        [
            [
                Step({"l": modulo_5(1, 2), "r": modulo_5(1, 2)}, [(1, 1, 1), (2, 2, 2)]),
                Step(
                    {"l": modulo_5(3, 6), "r": modulo_5(3, 6)},
                    [(3, 3, 3), (1, 1, 6), (1, 6, 1), (1, 6, 6)],
                ),
            ]
        ],
    ),
    "three streams": Case(
        join_of({"a": UNBOUNDED, "b": UNBOUNDED, "c": UNBOUNDED}),
        ("a_k", "a_v", "b_k", "b_v", "c_k", "c_v"),
        [
            [
                Step(
                    {
                        "a": left(1, 5),
                        "b": right(1, 5, 10),
                        "c": [(5, 5, 25), (10, 10, 50)],
                    },
                    [(5, 10, 5, 15, 5, 25)],
                )
            ]
        ],
    ),
    "null-safe equality": Case(
        both(UNBOUNDED, on=None, where="l.k IS NOT DISTINCT FROM r.k"),
        ("l_k", "r_k"),
        [
            [
                Step(
                    {"l": [*left(1, 5, 10), (None, 0, 0)], "r": [*right(1, 5), (None, 0, 0)]},
                    [(1, 1), (5, 5), (None, None)],
                )
            ]
        ],
    ),
    "plain equality of nulls": Case(
        both(UNBOUNDED),
        ("l_k", "r_k"),
        [
            [
                Step(
                    {"l": [*left(1, 5, 10), (None, 0, 0)], "r": [*right(1, 5), (None, 0, 0)]},
                    [(1, 1), (5, 5)],
                )
            ]
        ],
    ),
    **{
        f"windowed {how} outer join": Case(
            both(DELAY_10, within=TUMBLING, how=how),
            PAIR,
            [
                [
                    Step(
                        {"l": left(1, 2, 3, 4, 5), "r": right(3, 4, 5, 6, 7)},
                        [(6, 9), (8, 12), (10, 15)],
                    ),
                    Step({"l": left(21), "r": right(22)}, passed=alone),
                    Step({"l": left(22)}, [(44, 66)]),
                ]
            ],
        )
        for how, alone in {
            "left": [(2, None), (4, None)],
            "right": [(None, 18), (None, 21)],
        }.items()
    },
    **{
        f"{how} outer join with a range of time": Case(
            both(DELAY_10, within="5 seconds", how=how),
            ("l_k", "r_k", "l_v", "r_v"),
            [
                [
                    Step({"l": of((1, 5), (3, 5))}),
                    Step({"r": of((1, 10), (2, 5))}, [(1, 1, 5, 10)]),
                    Step({"r": of((1, 11))}),
                    Step({"l": of((1, 7), (1, 30))}, [(1, 1, 7, 10), (1, 1, 7, 11)]),
                    Step({"r": of((0, 30))}, passed=alone),
                ]
            ],
        )
        for how, alone in {"left": [(3, None, 5, None)], "right": [(None, 2, None, 5)]}.items()
    },
    # There a condition over one side decides in an outer join whether a row matches, here whether
    # it takes part; as part of a function over both it does the former. There rows that fail on
    # their own side alone come out at once; here with the others.
    "condition that is violated": Case(
        both(
            DELAY_10,
            within=TUMBLING,
            how="left",
            where=ps.udf(
                lambda one, other: pc.and_(
                    pc.greater(one, 10), pc.or_(pc.less(other, 300), pc.greater(other, 1000))
                ),
                ["l.v", "r.v"],
            ),
        ),
        PAIR,
        [
            [
                Step({"l": left(1, 2, 3), "r": right(1, 2, 3)}),
                Step(
                    {"l": left(101, 102, 103), "r": right(101, 102, 103)},
                    passed=[(2, None), (4, None), (6, None)],
                ),
                Step(
                    {"l": left(1000), "r": right(1000)},
                    [(2000, 3000)],
                    [(202, None), (204, None), (206, None)],
                ),
            ]
        ],
    ),
    # The right is the even rows of the left, up to five seconds after it.
    "self outer join (SPARK-26187)": Case(
        both({"lateness": "4.999 seconds"}, how="left", between=("0 seconds", "5 seconds")),
        PAIR,
        [
            [
                Step({"l": left(1, 2, 3, 4, 5), "r": left(2, 4)}, [(4, 4), (8, 8)]),
                Step(
                    {"l": left(6, 7, 8, 9, 10), "r": left(6, 8, 10)}, [(12, 12), (16, 16), (20, 20)]
                ),
                Step(
                    {"l": left(11, 12, 13, 14, 15), "r": left(12, 14)},
                    [(24, 24), (28, 28)],
                    [(2, None), (6, None)],
                ),
            ]
        ],
    ),
    "match and eviction of one key in one batch (SPARK-38684)": Case(
        both(DELAY_10, within="5 seconds", how="left"),
        KEY_AND_PAIR,
        [
            [
                Step({"l": [(1, 1, 1), (1, 2, 2), (2, 1, 3)]}),
                Step(
                    {"l": [(8, 60, 0)], "r": [(1, 6, 4), (9, 60, 0)]},
                    [(1, 1, 4), (1, 2, 4)],
                    [(2, 3, None)],
                ),
            ]
        ],
    ),
    # There the watermark lags a batch, and d, which comes behind it, is padded with nulls in the
    # next one, as a is; here d is late. The two rows without a key come out alone at once.
    "delay of zero (SPARK-49829)": Case(
        both({}, within="0 seconds", how="left"),
        PAIR,
        [
            [
                Step({"l": keyed(a=1, b=2), "r": keyed(b=2, c=1)}, [(2, 2)], [(1, None)]),
                Step({"l": keyed(d=1)}, late={"l": [4]}),
                Step(
                    {"l": time_alone(3), "r": time_alone(3)}, [(0, None)], live=0, live_on_spark=2
                ),
                Step({"l": time_alone(3)}, [(0, None)], live=0),
            ]
        ],
    ),
    # The last row has matched and is not kept; on Spark it is, until its window ends.
    "windowed left semi join": Case(
        both(DELAY_10, within=TUMBLING, how="semi"),
        ("l_k", "l_v"),
        [
            [
                Step(
                    {"l": left(1, 2, 3, 4, 5), "r": right(3, 4, 5, 6, 7)},
                    [(3, 6), (4, 8), (5, 10)],
                ),
                Step({"l": left(21), "r": right(22)}),
                Step({"l": left(22)}, [(22, 44)], live={"l": 1, "r": 1}, live_on_spark=3),
            ]
        ],
    ),
    "restart with another number of input partitions (SPARK-29438)": Case(
        both(DELAY_10, within=TUMBLING),
        PAIR,
        [
            [Step({"l": left(1, 2, 3, 4, 5), "r": right(4, 5, 6, 7)}, [(8, 12), (10, 15)])],
            [
                Step(
                    {"l": left(6, 7, 8), "r": right(1, 2, 8)},
                    [(12, 18), (14, 21), (2, 3), (4, 6), (16, 24)],
                )
            ],
        ],
        pieces=(1, 3),
    ),
}


def element(*milliseconds: int) -> Rows:
    return [(1, each / 1000, each) for each in milliseconds]


def between(low: int, high: int, closed: str = "both", lateness: str = "1 second") -> ps.WindowJoin:
    """Bounds on right - left."""
    bounds = (f"{low} ms", f"{high} ms")
    return both({"lateness": lateness}, between=bounds, closed=closed)


def pairs(text: str) -> Results:
    return [(int(left), int(right)) for left, right in text.split()]


def watermark(milliseconds: int) -> Mapping[str, Rows]:
    """Flink's, of both sides; the lateness is a second."""
    return dict.fromkeys(("l", "r"), time_alone((milliseconds + 1) / 1000 + 1))


def live(left: int, right: int) -> Mapping[str, int]:
    return {"l": left, "r": right}


BOUNDS: Final = (
    ((-2, -1), "both", "21 31 32 42 43"),
    ((-1, 1), "both", "11 12 21 22 23 32 33 34 43 44"),
    ((1, 2), "both", "12 13 23 24 34"),
    ((-3, -1), "neither", "31 42"),
    ((-1, 1), "neither", "11 22 33 44"),
    ((1, 3), "neither", "13 24"),
)
ASYMMETRIC: Final = "11 21 31 12 22 32 42 23 33 43 34 44"

FLINK: Final = {
    **{
        f"bounds {bounds}, {closed} closed": Case(
            between(*bounds, closed),
            PAIR,
            [[Step({"l": element(1, 2, 3, 4)}), Step({"r": element(1, 2, 3, 4)}, pairs(expected))]],
        )
        for bounds, closed, expected in BOUNDS
    },
    "sides that are not alike": Case(
        between(-2, 1),
        PAIR,
        [[Step({"l": element(1, 2, 3, 4), "r": element(1, 2, 3, 4)}, pairs(ASYMMETRIC))]],
    ),
    "swapped sides give mirrored pairs": Case(
        between(-1, 2),
        PAIR,
        [[Step({"l": element(1, 2, 3, 4), "r": element(1, 2, 3, 4)}, pairs(ASYMMETRIC[::-1]))]],
    ),
    "state clean-up": Case(
        between(-1, 0),
        PAIR,
        [
            [
                Step(
                    {"l": element(1, 2, 3, 4, 5), "r": element(1, 2, 3, 4, 5)},
                    pairs("11 21 22 32 33 43 44 54 55"),
                    live=live(5, 5),
                ),
                Step(watermark(1), live=live(4, 5), live_on_spark=10),
                Step(watermark(4), live=live(1, 2), live_on_spark=9),
                Step(watermark(6), live=live(0, 0), live_on_spark=3),
                Step(watermark(6), live=live(0, 0)),
            ]
        ],
    ),
    "restore from a snapshot": Case(
        between(-1, 1, lateness="0 ms"),
        PAIR,
        [
            [
                Step({"l": element(1), "r": element(1)}, pairs("11")),
                Step({"l": element(2), "r": element(2)}, pairs("12 21 22")),
                Step({"l": element(3), "r": element(3)}, pairs("23 32 33")),
            ],
            [
                Step({"l": element(4)}, pairs("43")),
                Step({"r": element(4)}, pairs("34 44")),
            ],
        ],
    ),
}

CASES: Final = {
    **{f"Spark StreamingJoinSuite: {name}": case for name, case in SPARK.items()},
    **{f"Flink IntervalJoinOperator: {name}": case for name, case in FLINK.items()},
}

# The bounds once more, in other orders of arrival: tuple by tuple, and the right side first.
FLINK_IN_TURN: Final = [
    (between(*bounds, closed, lateness), steps, pairs(expected))
    for bounds, closed, expected in BOUNDS
    for lateness, steps in (
        ("0 ms", [{name: element(each)} for each in (1, 2, 3, 4) for name in "lr"]),
        ("1 second", [{name: element(1, 2, 3, 4)} for name in "rl"]),
    )
]
