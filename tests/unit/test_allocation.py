"""Allocation: the papers' examples, and no split of what there is that gives more."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from math import inf, isclose, nan, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PlanError
from penstock.lab.papers.strategies import FIGURES, STRATEGIES, Figure, best, gains, outputs, split
from penstock.shedding.allocation import (
    Allocation,
    allocate_both,
    allocate_cpu,
    allocate_memory,
)
from penstock.shedding.output_rate import Drop, output_rate

MORE = 1 + 1e-9

# What a property was given: a row per stream.
Rows = list[tuple[float, ...]]

# --- the papers' examples -------------------------------------------------------------------------


def test_cpu_goes_from_the_small_window_to_the_big_one() -> None:
    rates, windows = (150, 400), (500, 1000)
    assert allocate_cpu(rates, windows, 100) == (100, 0)
    assert allocate_cpu(rates, windows, 100, floors=(10, 10)) == (90, 10)
    assert output_rate(rates, windows, (100, 0), selectivity=0.01) == 0.01 * 100_000
    assert allocate_cpu((60, 400), windows, 100) == (60, 40)


def test_equal_windows_leave_the_output_as_it_is() -> None:
    rates = allocate_cpu((300, 300), (500, 500), 100)
    assert rates == (50, 50)
    assert output_rate((300, 300), (500, 500), rates) == output_rate(
        (300, 300), (500, 500), (100, 0)
    )


def test_where_dropped_tuples_are_gone_equal_rates_are_best() -> None:
    assert allocate_cpu((80, 20), (720, 20), 10, drop="tuple") == (5, 5)
    assert allocate_cpu((5, 100), (50, 1000), 50, drop="tuple") == (5, 45)
    assert allocate_cpu((100, 5), (50, 1000), 50, drop="tuple") == (45, 5)
    assert allocate_cpu((80, 20), (720, 20), 10, "tuple", floors=(7, 0)) == (7, 3)


def test_the_2002_output_is_that_of_equation_10() -> None:
    rates, seconds, effective = (80, 20), (9, 1), (6, 4)
    windows = tuple(rate * window for rate, window in zip(rates, seconds, strict=True))
    found = output_rate(rates, windows, effective, drop="tuple", selectivity=0.02)
    assert isclose(found, 0.02 * 6 * 4 * (9 + 1))


def test_memory_goes_to_the_slower_stream() -> None:
    assert allocate_memory((10, 50), 1000) == (1000, 0)
    assert allocate_memory((50, 10), 1000) == (0, 1000)
    assert allocate_memory((10, 50), 1000, floors=(0, 100)) == (900, 100)
    assert allocate_memory((10, 50), 1000, caps=(600, 3000)) == (600, 400)
    assert allocate_memory((10, 50), 1000, caps=(600, 300)) == (600, 300)
    assert allocate_memory((20, 20), 1000) == (500, 500)


def test_both_give_service_rate_times_memory() -> None:
    rates, windows = allocate_both(100, 10)
    assert (rates, windows) == ((0, 10), (100, 0))
    assert output_rate((10, 10), windows, rates, selectivity=0.01) == 0.01 * 10 * 100
    assert allocate_both(100, 10, rates=(40, 30)) == Allocation((10, 0), (0, 100))
    assert allocate_both(100, 10, rates=(7, 4)) == Allocation((7, 3), (0, 100))


def test_enough_of_it_changes_nothing() -> None:
    for drop in ("probe", "tuple"):
        assert allocate_cpu((5, 8, 9), (10, 20, 30), 22, drop) == (5, 8, 9)
    assert allocate_both(100, 22, rates=(5, 8, 9)).rates == (5, 8, 9)
    assert allocate_memory((5, 8, 9), 70, caps=(10, 20, 30)) == (10, 20, 30)


MODEL = {
    "2003 figure 5": {
        "max A": 200,
        "as rates": 180,
        "equal": 150,
        "as windows": 133.333,
        "max B": 100,
    },
    "2003 figure 6": {
        "max A": 250,
        "inverse to rates": 216.667,
        "equal": 150,
        "as rates": 83.333,
        "max B": 50,
    },
    "2003 figure 7": {
        "window A, rate B": 10,
        "window B, rate A": 10,
        "equal": 5,
        "window A, rate A": 0,
        "window B, rate B": 0,
    },
    "2002 figure 8": {
        "equal": 5,
        "as rates": 3.2,
        "inverse to rates": 3.2,
        "as windows": 1.8,
        "inverse to windows": 1.8,
    },
}


@pytest.mark.parametrize("name", FIGURES)
def test_strategies_of_the_figures(name: str) -> None:
    figure = FIGURES[name]
    found = outputs(figure)
    assert found == pytest.approx(MODEL[name], abs=1e-3)
    winners = [strategy for strategy, gain in gains(figure).items() if abs(gain) < 1e-12]
    assert best(figure) in [split(figure, strategy) for strategy in winners]
    assert len(STRATEGIES[figure.strategies]) == 5


@pytest.mark.parametrize(
    ("name", "percent"), [("2003 figure 5", 33), ("2003 figure 6", 67), ("2003 figure 7", 100)]
)
def test_gains_over_equal_shares(name: str, percent: int) -> None:
    assert round(100 * gains(FIGURES[name])["equal"]) == percent


def test_a_strategy_hands_on_what_is_above_a_rate() -> None:
    figure = Figure((30, 200), 0.01, "cpu", windows=(100, 200), service_rate=100)
    assert split(figure, "max A").rates == (30, 70)
    assert split(figure, "equal").rates == (30, 70)
    assert split(figure, "max B").rates == (0, 100)
    assert split(figure._replace(service_rate=1000), "equal").rates == (30, 200)
    with pytest.raises(PlanError, match="no strategy 'max C' here; give one of 'max A'"):
        split(figure, "max C")
    with pytest.raises(PlanError, match="no windows"):
        split(figure._replace(windows=None), "max A")


# --- more than two streams ------------------------------------------------------------------------


def test_a_result_is_made_by_its_last_tuple() -> None:
    assert output_rate((2, 3, 5), (7, 11, 13)) == 2 * 11 * 13 + 3 * 7 * 13 + 5 * 7 * 11


def test_three_streams_closed_form() -> None:
    """Without floors and caps, windows are as rate * (all rates - 2 rate)."""
    rates = (3, 4, 5)
    weights = [rate * (12 - 2 * rate) for rate in rates]
    expected = [24 * weight / sum(weights) for weight in weights]
    assert allocate_memory(rates, 24) == pytest.approx(expected, rel=1e-6)


def test_a_tiny_cap_does_not_hide_the_rest() -> None:
    """Where the slopes of two windows are a million apart, general solvers stop at the start."""
    assert allocate_memory((0, 0, 1), 1, caps=(1, 1e-7, 1)) == pytest.approx((1 - 1e-7, 1e-7, 0))


@given(st.lists(st.integers(1, 100), min_size=3, max_size=5))
def test_a_general_solver_finds_no_more(rates: list[int]) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    found = optimize.minimize(
        lambda windows: -(output_rate(rates, [max(window, 0.0) for window in windows]) ** 0.5),
        [1 / len(rates)] * len(rates),
        bounds=[(0, 1)] * len(rates),
        constraints={"type": "eq", "fun": lambda windows: sum(windows) - 1},
        method="SLSQP",
    )
    most = output_rate(rates, allocate_memory(rates, 1))
    # It misses the sum of 1, too.
    assert found.fun**2 <= most * (1 + 1e-6)


def test_a_cap_is_kept_to_the_last_bit() -> None:
    assert allocate_memory((1, 1, 1), 1, caps=(0.1, 0.1, 0.1)) == (0.1, 0.1, 0.1)


def test_a_stream_faster_than_all_others_together_is_not_kept() -> None:
    assert allocate_memory((1, 2, 9), 100) == pytest.approx((50, 50, 0))
    assert allocate_memory((1, 2, 9), 100)[2] == 0
    assert allocate_memory((1, 1, 2, 30), 90) == pytest.approx((30, 30, 30, 0))


def test_both_of_four_streams() -> None:
    rates, windows = allocate_both(90, 10, rates=(20, 30, 40, 15))
    assert rates == (0, 0, 10, 0)
    assert windows == pytest.approx((30, 30, 0, 30))


# --- nothing gives more ---------------------------------------------------------------------------

amounts = st.one_of(st.just(0.0), st.integers(1, 1000).map(float), st.floats(1e-3, 1e4))
totals = st.floats(1e-2, 1e4)


def streams(*columns: st.SearchStrategy[float]) -> st.SearchStrategy[Rows]:
    """A tuple of the columns per stream, for two to four streams."""
    return st.lists(st.tuples(*columns), min_size=2, max_size=4)


# Of a window of less than a billionth of the memory, a float cannot tell which split it came from.
shares = st.one_of(st.just(0.0), st.floats(1e-9, 1))


def feasible_floors(
    parts: Sequence[float], caps: Sequence[float], total: float
) -> tuple[float, ...]:
    """Parts of the caps, made to fit the total."""
    floors = [part * cap for part, cap in zip(parts, caps, strict=True)]
    fit = min(1.0, 0.99 * total / sum(floors)) if sum(floors) else 1.0
    return tuple(floor * fit for floor in floors)


def random_splits(
    total: float, floors: Sequence[float], caps: Sequence[float]
) -> Iterator[tuple[float, ...]]:
    """200 splits within floors and caps: in random turns, whole or by random parts."""
    dice = random.Random(1)
    for attempt in range(200):
        split_ = list(floors)
        rest = min(total, sum(caps)) - sum(floors)
        turns = dice.sample(range(len(caps)), len(caps))
        for part in (1.0,) if attempt % 4 == 0 else (dice.random(), dice.random(), 1.0):
            for stream in turns:
                given_ = max(min(part * rest, caps[stream] - split_[stream]), 0.0)
                split_[stream] += given_
                rest -= given_
        yield tuple(min(some, cap) for some, cap in zip(split_, caps, strict=True))


def check_shares(
    found: Sequence[float], total: float, floors: Sequence[float], caps: Sequence[float]
) -> None:
    slack = 1e-9 * total
    assert isclose(sum(found), min(total, sum(caps)), rel_tol=1e-9)
    for share, floor, cap in zip(found, floors, caps, strict=True):
        assert floor <= share + slack
        assert share <= cap


@pytest.mark.parametrize("drop", ["probe", "tuple"])
@given(streams(amounts, amounts, shares), totals)
def test_cpu_is_never_worse_than_another_split(
    drop: Drop, given_streams: Rows, service_rate: float
) -> None:
    rates, windows, parts = zip(*given_streams, strict=True)
    floors = feasible_floors(parts, rates, service_rate)
    found = allocate_cpu(rates, windows, service_rate, drop, floors)
    check_shares(found, service_rate, floors, rates)
    most = output_rate(rates, windows, found, drop=drop)
    for other in random_splits(service_rate, floors, rates):
        assert output_rate(rates, windows, other, drop=drop) <= most * MORE


@given(
    streams(amounts, shares, st.one_of(st.just(0.0), st.floats(1e-9, 1.5))), totals, st.booleans()
)
def test_memory_is_never_worse_than_another_split(
    given_streams: Rows, memory: float, capped: bool
) -> None:
    rates, parts, cap_parts = zip(*given_streams, strict=True)
    caps = tuple(part * memory if capped else memory for part in cap_parts)
    floors = feasible_floors(parts, caps, memory)
    found = allocate_memory(rates, memory, floors, caps=caps if capped else None)
    check_shares(found, memory, floors, caps)
    most = output_rate(rates, found)
    for other in random_splits(memory, floors, caps):
        assert output_rate(rates, other) <= most * MORE


@given(streams(amounts), totals, totals)
def test_both_are_never_worse_than_another_split(
    given_streams: Rows, memory: float, service_rate: float
) -> None:
    rates = tuple(rate for (rate,) in given_streams)
    nothing = (0.0,) * len(rates)
    found = allocate_both(memory, service_rate, rates)
    check_shares(found.rates, service_rate, nothing, rates)
    check_shares(found.windows, memory, nothing, (memory,) * len(rates))
    most = output_rate(rates, found.windows, found.rates)
    windows = list(random_splits(memory, nothing, (memory,) * len(rates)))
    random.Random(2).shuffle(windows)
    others = list(random_splits(service_rate, nothing, rates))
    for some, kept in zip(others, windows, strict=True):
        assert output_rate(rates, kept, some) <= most * MORE
    # Nor with the best memory for other rates.
    for some in others[:20]:
        assert output_rate(rates, allocate_memory(some, memory), some) <= most * MORE


@given(streams(st.integers(1, 50), st.integers(1, 50), shares), totals)
def test_permuted_streams_permute_the_answer(given_streams: Rows, total: float) -> None:
    rates, windows, parts = zip(*given_streams, strict=True)
    floors = feasible_floors(parts, rates, total)
    ways: list[Callable[..., tuple[float, ...]]] = [
        lambda rates, windows, floors: allocate_cpu(rates, windows, total, "probe", floors),
        lambda rates, windows, floors: allocate_cpu(rates, windows, total, "tuple", floors),
        lambda rates, windows, floors: allocate_memory(rates, total, floors),
    ]
    if len(set(rates)) == len(rates):
        ways.append(lambda rates, windows, floors: allocate_both(total, total / 2, rates).windows)
    order = random.Random(repr(given_streams)).choice(list(permutations(range(len(rates)))))
    moved = [[column[stream] for stream in order] for column in (rates, windows, floors)]
    for way in ways:
        found = way(rates, windows, floors)
        assert way(*moved) == pytest.approx([found[s] for s in order], rel=1e-4, abs=1e-5 * total)


@given(st.lists(st.integers(1, 100), min_size=3, max_size=4), st.floats(1, 100))
def test_only_proportions_matter(rates: list[int], factor: float) -> None:
    found = allocate_memory(rates, 10)
    scaled = allocate_memory([rate * factor for rate in rates], 10 * factor)
    assert scaled == pytest.approx([share * factor for share in found], abs=1e-4 * factor)


@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=4), st.floats(0.1, 100))
def test_tuple_drop_is_a_product_of_rates(effective: list[float], seconds: float) -> None:
    rates = [200.0] * len(effective)
    windows = [200.0 * seconds] * len(effective)
    found = output_rate(rates, windows, effective, drop="tuple")
    count = len(effective)
    assert isclose(found, prod(effective) * count * seconds ** (count - 1), rel_tol=1e-9)


# --- bad input ------------------------------------------------------------------------------------

BAD: dict[str, tuple[Callable[[], object], str]] = {
    "negative rate": (lambda: allocate_cpu((-1, 5), (1, 1), 1), "rates .* got -1 for stream 0"),
    "nan rate": (lambda: allocate_memory((1, nan), 1), "rates .* got nan for stream 1"),
    "infinite rate": (lambda: allocate_both(1, 1, (1, inf)), "rates .* got inf for stream 1"),
    "text": (lambda: allocate_memory("ab", 1), "rates .* got 'a'"),
    "truth": (lambda: allocate_memory((True, 1), 1), "rates .* got True"),
    "one number": (lambda: allocate_memory(3, 1), "rates must be one number per stream, got 3"),
    "one stream": (lambda: allocate_memory((3,), 1), "two or more streams, got 1"),
    "windows": (lambda: allocate_cpu((1, 2), (1, 2, 3), 1), "windows .* got 3 for 2 streams"),
    "negative window": (lambda: allocate_cpu((1, 2), (1, -2), 1), "windows .* got -2"),
    "floors": (lambda: allocate_memory((1, 2), 1, (1,)), "floors .* got 1 for 2 streams"),
    "caps": (lambda: allocate_memory((1, 2), 1, caps=(1,)), "caps .* got 1 for 2 streams"),
    "no service": (lambda: allocate_cpu((1, 2), (1, 2), 0), "service_rate .* above 0, got 0"),
    "nan service": (lambda: allocate_both(1, nan), "service_rate .* got nan"),
    "infinite service": (lambda: allocate_both(1, inf), "service_rate .* got inf"),
    "negative memory": (lambda: allocate_memory((1, 2), -3), "memory .* above 0, got -3"),
    "no memory": (lambda: allocate_both(0, 1), "memory .* above 0, got 0"),
    "drop": (lambda: allocate_cpu((1, 2), (1, 2), 1, drop="rows"), "unknown drop 'rows'; give"),
    "drop when there is enough": (
        lambda: allocate_cpu((1, 2), (1, 2), 9, drop="rows"),
        "unknown drop 'rows'; give 'probe' or 'tuple'",
    ),
    "floor above rate": (
        lambda: allocate_cpu((5, 100), (1, 1), 50, floors=(10, 10)),
        "floor of stream 0 is above its rate: got 10.0 and 5.0; lower the floor",
    ),
    "floors above service rate": (
        lambda: allocate_cpu((90, 100), (1, 1), 50, floors=(30, 30)),
        "floors together are above the service rate: got 60.0 and 50.0; lower",
    ),
    "floors above memory": (
        lambda: allocate_memory((90, 100), 50, floors=(30, 30)),
        "floors together are above the memory: got 60.0 and 50.0; lower",
    ),
    "floor above cap": (
        lambda: allocate_memory((90, 100), 50, floors=(30, 0), caps=(20, 90)),
        "floor of stream 0 is above its cap: got 30.0 and 20.0",
    ),
    "floor above memory": (
        lambda: allocate_memory((90, 100), 50, floors=(60, 0)),
        "above the memory: got 60.0 and 50.0",
    ),
    "more than arrives": (
        lambda: output_rate((1, 2), (1, 1), (2, 2)),
        "stream 0 cannot be dealt with faster than it arrives: got 2.0 of 1.0",
    ),
    "selectivity": (lambda: output_rate((1, 2), (1, 1), selectivity=2), "a share, got 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    call, message = BAD[name]
    with pytest.raises(PlanError, match=message):
        call()


def test_floors_that_only_rounding_puts_above_the_total_fit() -> None:
    assert allocate_cpu((1, 1), (1, 1), 0.3, floors=(0.1, 0.2)) == pytest.approx((0.1, 0.2))
