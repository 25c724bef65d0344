"""Where the choice changes: the rates at which two combinations of structures cost the same.

Eager removal makes the cost of a combination linear in both rates when windows are in tuples:

    cost = left_rate * (probe right + update left) + right_rate * (probe left + update right)

so along the ratio x = left_rate / right_rate each combination is a line, a crossover is where two
lines meet, and the winners are the lower edge of all lines (Kang et al., (8) to (11), with the
T-tree's update as Table 3 has it). With other ways of removal the lines bend, and there a crossover
is closed in on. So it is where windows are of time, and grow with their rate: in the earlier
version of the paper, whose hash tables have a bucket for each key, and whose removals scan it
(`right_rate_crossover`, and its rule of thumb, `scan_ratio`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from typing import Final, NamedTuple, Unpack

from penstock.planning.binary import BinaryOptions, Pair, binary_cost
from penstock.planning.touched import number
from penstock.planning.weights import Weights, weights_of

__all__ = [
    "Combination", "Winner", "crossover", "right_rate_crossover", "scan_ratio", "winners",
]  # fmt: skip

Combination = tuple[str, str]

_FARTHEST: Final = 1e8  # ratio of rates that is looked at where lines bend
_STEP: Final = 1.2
_CLOSE: Final = 1 + 1e-12
_ALIKE: Final = 1e-7  # costs that differ by less are the same


class Winner(NamedTuple):
    """From this ratio of left_rate to right_rate on, the combination that costs the least."""

    ratio: float
    combination: Combination


def crossover(
    first: Combination,
    second: Combination,
    *,
    left_window: float,
    right_window: float,
    total_rate: float = 1.0,
    **options: Unpack[BinaryOptions],
) -> float | None:
    """The ratio of left_rate to right_rate at which two combinations cost the same.

    None where there is none, or they always do. A combination is the index of the left window and
    that of the right one; the options are those of `binary_cost`. total_rate, of both streams,
    makes a difference with periodic removal only.
    """
    cost = _cost_by_ratio(left_window, right_window, total_rate, options)
    if options.get("expire", "eager") != "eager":
        return _first_root(
            lambda ratio: cost(first, ratio) - cost(second, ratio),
            lambda ratio: cost(first, ratio),
        )
    lines = _lines([first, second], left_window, right_window, options)
    return _meeting(lines[first], lines[second])


def winners(
    *,
    left_window: float,
    right_window: float,
    indexes: Sequence[str] = ("scan", "hash", "bplus_tree", "t_tree"),
    total_rate: float = 1.0,
    **options: Unpack[BinaryOptions],
) -> list[Winner]:
    """The cheapest combination of these indexes along the ratio of left_rate to right_rate, from
    zero on, each with the ratio from which it wins."""
    combinations = [(left, right) for left in indexes for right in indexes]
    if options.get("expire", "eager") == "eager":
        return _lower_edge(_lines(combinations, left_window, right_window, options))
    cost = _cost_by_ratio(left_window, right_window, total_rate, options)
    found: list[Winner] = []
    before = 1 / _FARTHEST
    for ratio in _ratios():
        cheapest = min(combinations, key=lambda each: cost(each, ratio))
        if not found:
            found.append(Winner(0.0, cheapest))
        last = found[-1].combination
        if cost(cheapest, ratio) < cost(last, ratio):

            def gain(ratio: float, last: Combination = last, new: Combination = cheapest) -> float:
                return cost(last, ratio) - cost(new, ratio)

            found.append(Winner(_closed_in(gain, before, ratio), cheapest))
        before = ratio
    return found


def right_rate_crossover(  # noqa: PLR0913  what the paper's formulas are of
    first: Combination,
    second: Combination,
    *,
    left_rate: float,
    left_time: float,
    right_time: float,
    keys: float | Pair,
    weights: str | Weights = "kang2002",
    model: str = "kang2002",
    expire: str = "eager",
) -> float | None:
    """The right rate at which two combinations cost the same over windows of time.

    keys: of both windows or of each, and as many buckets as keys.
    """
    left_keys, right_keys = keys if isinstance(keys, tuple) else (keys, keys)
    number(left_rate, "a rate", positive=True)
    for each in (left_keys, right_keys):
        number(each, "the number of distinct keys of a stream", positive=True)
    left_tuples = left_rate * number(left_time, "a window", positive=True)
    number(right_time, "a window", positive=True)

    def cost(combination: Combination, right_rate: float) -> float:
        right_tuples = right_rate * right_time
        return binary_cost(
            *combination,
            left_rate=left_rate,
            right_rate=right_rate,
            left_window=left_tuples,
            right_window=right_tuples,
            weights=weights,
            bucket=(left_tuples / left_keys, right_tuples / right_keys),
            expire=expire,
            model=model,
        )

    ratio = _first_root(
        lambda ratio: cost(first, ratio * left_rate) - cost(second, ratio * left_rate),
        lambda ratio: cost(first, ratio * left_rate),
    )
    return None if ratio is None else ratio * left_rate


def scan_ratio(keys: float, weights: str | Weights = "kang2002") -> float:
    """The ratio of a window's own rate to the rate of its probes above which a scan beats hash.

    The rule of thumb of the earlier version: keys / (hash weight / scan weight) - 1. It has a
    bucket for each key, removals that scan one, and leaves out what does not grow with the window.
    """
    number(keys, "the number of distinct keys of a stream", positive=True)
    known = weights_of(weights)
    return keys * known.of("scan").search / known.of("hash").search - 1


def _cost_by_ratio(
    left_window: float, right_window: float, total_rate: float, options: BinaryOptions
) -> Callable[[Combination, float], float]:
    number(total_rate, "total_rate", positive=True)
    cost = _cost_by_rates(left_window, right_window, options)
    return lambda combination, ratio: cost(
        combination, total_rate * ratio / (1 + ratio), total_rate / (1 + ratio)
    )


def _lines(
    combinations: Sequence[Combination],
    left_window: float,
    right_window: float,
    options: BinaryOptions,
) -> dict[Combination, Pair]:
    """Of each combination: its slope, what one left arrival costs; and its height, a right one."""
    cost = _cost_by_rates(left_window, right_window, options)
    return {each: (cost(each, 1.0, 0.0), cost(each, 0.0, 1.0)) for each in combinations}


def _cost_by_rates(
    left_window: float, right_window: float, options: BinaryOptions
) -> Callable[[Combination, float, float], float]:
    return lambda combination, left_rate, right_rate: binary_cost(
        *combination,
        left_rate=left_rate,
        right_rate=right_rate,
        left_window=left_window,
        right_window=right_window,
        **options,
    )


def _meeting(one: Pair, other: Pair) -> float | None:
    """Where two lines meet, to the right of zero."""
    if one[0] == other[0]:
        return None
    ratio = (other[1] - one[1]) / (one[0] - other[0])
    return ratio if ratio > 0 else None


def _lower_edge(lines: dict[Combination, Pair]) -> list[Winner]:
    last = min(lines, key=lambda each: (lines[each][1], lines[each][0]))
    found = [Winner(0.0, last)]
    while True:
        # What overtakes the last winner is flatter, and starts higher.
        meetings = [
            (ratio, slope, combination)
            for combination, (slope, height) in lines.items()
            if slope < lines[last][0]
            and (ratio := _meeting(lines[last], (slope, height))) is not None
        ]
        if not meetings:
            return found
        ratio, _, last = min(meetings)
        found.append(Winner(ratio, last))


def _ratios() -> list[float]:
    ratios = [1 / _FARTHEST]
    while ratios[-1] < _FARTHEST:
        ratios.append(ratios[-1] * _STEP)
    return ratios


def _first_root(
    difference: Callable[[float], float], size: Callable[[float], float]
) -> float | None:
    """The least ratio at which a difference is zero, beside the size of what differs.

    Costs jump where a tree gets another level; a difference may change its sign there and be
    zero nowhere.
    """
    ratios = _ratios()
    for low, high in pairwise(ratios):
        before, after = difference(low), difference(high)
        if before * after < 0:
            rises = after > 0
            root = _closed_in(difference if rises else _negative(difference), low, high)
            if abs(difference(root)) <= _ALIKE * size(root):
                return root
    return None


def _negative(difference: Callable[[float], float]) -> Callable[[float], float]:
    return lambda ratio: -difference(ratio)


def _closed_in(gain: Callable[[float], float], low: float, high: float) -> float:
    """Between low and high, where what is at most zero turns positive."""
    while high > low * _CLOSE:
        middle = sqrt(low * high)
        if gain(middle) > 0:
            high = middle
        else:
            low = middle
    return high
