"""Prices on the time line: a decision that fits in memory, and a bound that nothing exceeds."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import InputError
from penstock.kernels.optimum.choices import Peaks, choose, weigh
from penstock.lab.optimum.chains import chained
from penstock.lab.optimum.holding import Holding, earned, held
from penstock.lab.optimum.price_bounds import PricedDecision, Search, priced
from penstock.samples import zipf_pair

Ints = npt.NDArray[np.int64]


def ints(values: Any) -> Ints:
    return np.array(values, np.int64)


# --- every decision, by brute force ---------------------------------------------------------------


def most(holding: Holding) -> int:
    """The definition: try every prefix of the meetings of every tuple."""
    at, first, end, meets, worth, room = (column.tolist() for column in holding)

    def best(row: int, left: list[int]) -> int:
        if row == len(at):
            return 0
        found = best(row + 1, left)
        total = 0
        for meeting in range(first[row], end[row]):
            total += worth[meeting]
            stays = range(at[row], meets[meeting])
            if all(left[instant] > 0 for instant in stays):
                fewer = [free - (instant in stays) for instant, free in enumerate(left)]
                found = max(found, total + best(row + 1, fewer))
        return found

    return best(0, room)


def check(holding: Holding, bounds: PricedDecision) -> None:
    """What holds for every answer, without knowing the best one."""
    assert bounds.until.dtype == np.int64
    assert len(bounds.until) == len(holding.at)
    assert (bounds.until >= holding.first).all()
    assert (bounds.until <= holding.end).all()
    load = [0] * len(holding.room)
    total = 0
    for at, first, until in zip(*(x.tolist() for x in (*holding[:2], bounds.until)), strict=True):
        if until > first:
            total += sum(holding.worth[first:until].tolist())
            for instant in range(at, int(holding.meets[until - 1])):
                load[instant] += 1
    assert all(there <= room for there, room in zip(load, holding.room.tolist(), strict=True))
    assert held(holding, bounds.until).tolist() == load
    assert bounds.earned == total == earned(holding, bounds.until)
    assert bounds.earned <= bounds.upper


# --- tiny inputs ----------------------------------------------------------------------------------


@st.composite
def holdings(draw: st.DrawFn) -> Holding:
    """Up to six tuples, mostly of more than there is room for. Those of one run share its meetings,
    with windows of one length or of their own, or each has its own copy of the run."""
    instants = draw(st.integers(2, 7))
    tuples: list[tuple[int, int, int]] = []
    meets: list[int] = []
    for _ in range(draw(st.sampled_from([1, 2, 2, 0]))):
        run = sorted(draw(st.lists(st.integers(1, instants - 1), min_size=1, max_size=5)))
        kind = draw(st.sampled_from(["one window", "windows", "slices"]))
        window = draw(st.integers(1, instants))
        for at in draw(st.lists(st.integers(0, run[-1] - 1), min_size=1, max_size=3)):
            if kind == "slices" and len(tuples) > 0:
                meets += run
            first = sum(instant <= at for instant in run)
            end = sum(instant <= at + window for instant in run)
            if kind != "one window":
                end = draw(st.integers(min(first + 1, len(run)), len(run)))
                first = draw(st.sampled_from([first, first, end - 1]))
            tuples.append((at, len(meets) + first, len(meets) + end))
        meets += run
    tuples = draw(st.permutations(tuples))
    worth = draw(st.lists(st.integers(0, 3), min_size=len(meets), max_size=len(meets)))
    some = st.sampled_from([1, 2, 1, 0, 3, 1 << 62])
    room = draw(st.lists(some, min_size=instants, max_size=instants))
    at, first, end = zip(*tuples, strict=True) if tuples else ((), (), ())
    if draw(st.booleans()):
        # The largest that are taken, or nearly.
        total = sum(sum(worth[start:stop]) for start, stop in zip(first, end, strict=True))
        unit = ((1 << 61) - (1 << 55)) // max(1, total, sum(worth))
        worth = [unit * each for each in worth]
    return Holding(ints(at), ints(first), ints(end), ints(meets), ints(worth), ints(room))


# Two tuples of one run, the second of which ends first.
CROSSED = Holding(
    ints([0, 1]), ints([0, 1]), ints([3, 2]), ints([1, 2, 4]), ints([1, 1, 5]), ints([2] * 5)
)


@pytest.mark.slow
@pytest.mark.jit_off
@given(holdings())
@example(CROSSED)
def test_the_best_is_between_what_is_earned_and_the_bound(holding: Holding) -> None:
    bounds = priced(holding, steps=40)
    check(holding, bounds)
    assert bounds.earned <= most(holding) <= bounds.upper


@pytest.mark.jit_off
@given(holdings(), st.data())
def test_any_prices_give_a_bound(holding: Holding, data: Any) -> None:
    chains = chained(holding)
    search = Search(holding, chains)
    price = st.floats(0, 4).map(lambda times: times * 2.0**chains.bits) | st.floats(0, 2.0**70)
    for _ in range(3):
        prices = [data.draw(price) if room else 0.0 for room in chains.room.tolist()]
        bound, slack = search.look(np.array(prices))
        assert (slack <= chains.room).all()
        assert most(holding) <= search.upper >> chains.bits <= bound >> chains.bits


@pytest.mark.jit_off
@given(holdings(), st.data())
@example(CROSSED, None)
def test_a_tuple_chooses_its_best_prefix(holding: Holding, data: Any) -> None:
    chains = chained(holding)
    # Close to what one result, or two, or three are worth.
    close = st.builds(
        lambda times, more: max(0, (times << chains.bits) + more),
        st.integers(0, 3),
        st.integers(-3, 3),
    )
    instants = len(holding.room)
    several = st.lists(close, min_size=instants, max_size=instants)
    prices = [1] * instants if data is None else data.draw(several)
    line = ints([0, *accumulate(prices)])
    peaks, load = Peaks.of(chains), np.empty_like(holding.room)
    weigh(chains, line, peaks)
    total = choose(chains, line, peaks, load)
    worth = [int(each) << chains.bits for each in holding.worth]
    best = 0
    for at, first, end in zip(chains.at, chains.first, chains.end, strict=True):
        offers = [
            sum(worth[first : meeting + 1]) - sum(prices[at : chains.meets[meeting]])
            for meeting in range(first, end)
        ]
        best += max(0, *offers)
        if max(offers) > 0:
            load[at : chains.meets[first + offers.index(max(offers))]] -= 1
    assert total == best
    assert not load.any()


@pytest.mark.jit_off
@given(holdings(), st.integers(0, 2))
def test_every_number_of_steps_gives_bounds(holding: Holding, steps: int) -> None:
    bounds = priced(holding, steps=steps)
    check(holding, bounds)
    assert most(holding) <= bounds.upper


@pytest.mark.jit_off
@given(holdings())
def test_with_room_for_all_the_answer_is_exact(holding: Holding) -> None:
    free = holding._replace(room=np.full_like(holding.room, len(holding.at)))
    bounds = priced(free)
    check(free, bounds)
    assert bounds.earned == bounds.upper == most(free)


@pytest.mark.jit_off
@given(holdings())
def test_without_room_nothing_is_held(holding: Holding) -> None:
    none = holding._replace(room=np.zeros_like(holding.room))
    bounds = priced(none)
    assert bounds.until.tolist() == holding.first.tolist()
    assert (bounds.earned, bounds.upper) == (0, 0)


@pytest.mark.jit_off
def test_much_room_at_some_instants_does_not_blur_the_others() -> None:
    room = ints([1, 1, 1 << 62, 1 << 62])
    holding = Holding(ints([0, 0]), ints([0, 0]), ints([1, 1]), ints([1]), ints([1 << 59]), room)
    bounds = priced(holding)
    assert bounds.earned == 1 << 59
    assert bounds.upper - bounds.earned <= 0.001 * bounds.upper


@pytest.mark.jit_off
def test_nothing_at_all() -> None:
    none = ints([])
    bounds = priced(Holding(none, none, none, none, none, none))
    assert (len(bounds.until), bounds.earned, bounds.upper) == (0, 0, 0)


@pytest.mark.jit_off
def test_a_tuple_is_not_kept_for_a_meeting_that_earns_nothing() -> None:
    holding = Holding(
        ints([0, 0]), ints([0, 3]), ints([3, 5]), ints([1, 2, 3, 2, 4]), ints([1, 1, 0, 0, 0]),
        ints([9] * 5),
    )  # fmt: skip
    bounds = priced(holding)
    assert bounds.until.tolist() == [2, 3]
    assert (bounds.earned, bounds.upper) == (2, 2)
    # The first has to make room for the second after a meeting that earned nothing.
    holding = Holding(
        ints([0, 3]), ints([0, 3]), ints([3, 4]), ints([1, 2, 4, 4]), ints([1, 0, 1, 5]),
        ints([1] * 5),
    )  # fmt: skip
    assert priced(holding).until.tolist() == [1, 4]


@pytest.mark.jit_off
def test_worths_that_cannot_be_counted_are_refused() -> None:
    holding = Holding(
        ints([0] * 3), ints([0] * 3), ints([1] * 3), ints([1]), ints([1 << 61]), ints([1, 1])
    )
    with pytest.raises(InputError, match="together"):
        priced(holding)


# --- streams --------------------------------------------------------------------------------------


def in_step(rows: int, window: int, memory: int, shuffle: int | None) -> tuple[Holding, list[Ints]]:
    """Two streams, a tuple of each at every instant, as runs of meetings by key."""
    workload = zipf_pair(keys=65, rows=rows, seed=7, shuffle=shuffle)
    keys = [workload.table(name).column("k").to_numpy() for name in workload.streams]
    instants = np.arange(rows)
    parts: list[tuple[Ints, ...]] = []
    for side, (own, other) in enumerate((keys, keys[::-1])):
        meets = np.argsort(other, kind="stable")
        place = other[meets] * 2 * rows + meets
        first = np.searchsorted(place, own * 2 * rows + instants, side="right")
        last = np.minimum(instants + window, rows)
        end = np.searchsorted(place, own * 2 * rows + last, side="right")
        parts.append((instants, first + side * rows, end + side * rows, meets))
    at, first, end, meets = (np.concatenate(column) for column in zip(*parts, strict=True))
    room = np.full(rows, memory)
    return Holding(at, first, end, meets, np.ones(2 * rows, np.int64), room), keys


@pytest.mark.parametrize("shuffle", [None, 3])
@pytest.mark.parametrize("memory", [50, 200])
def test_the_bounds_of_streams_are_close_around_the_optimum(
    shuffle: int | None, memory: int
) -> None:
    rows, window = 4_000, 200
    holding, keys = in_step(rows, window, memory, shuffle)
    bounds = priced(holding, width=0.002)
    check(holding, bounds)
    assert bounds.upper - bounds.earned <= 0.005 * bounds.upper
    # One price for all times is not far from it.
    rough = priced(holding, steps=1)
    assert rough.upper - rough.earned <= 0.12 * rough.upper
    query = ps.WindowJoin(
        [ps.Stream("a", time="ts"), ps.Stream("b", time="ts")], on="k", within=f"{window} us"
    )
    tables = {
        name: pa.table({"ts": range(rows), "k": k}) for name, k in zip("ab", keys, strict=True)
    }
    best = ps.optimum(query, tables, memory=memory, method="per_arrival").produced
    at_once = int((keys[0] == keys[1]).sum())
    assert bounds.earned <= best - at_once <= bounds.upper


def test_the_forms_of_one_input_give_bounds_of_one_optimum() -> None:
    chained, _ = in_step(1_500, 100, 60, None)
    lengths = chained.end - chained.first
    ends = np.cumsum(lengths)
    slots = np.arange(ends[-1]) - np.repeat(ends - lengths - chained.first, lengths)
    alone = chained._replace(
        first=ends - lengths, end=ends, meets=chained.meets[slots], worth=chained.worth[slots]
    )
    one, other = priced(chained), priced(alone)
    check(alone, other)
    assert max(one.earned, other.earned) <= min(one.upper, other.upper)
    assert other.upper - other.earned <= 0.005 * other.upper


def test_room_that_changes_and_bursts() -> None:
    holding, _ = in_step(4_000, 200, 100, None)
    instants = np.arange(4_000)
    room = np.select(
        [instants < 1_000, instants < 1_500, instants < 1_600, instants < 2_500],
        [100, 20, 0, 400],
        default=60,
    )
    # All that arrives in forty instants comes in the first of them.
    burst = holding._replace(at=holding.at // 40 * 40, room=room)
    bounds = priced(burst, width=0.005)
    check(burst, bounds)
    assert bounds.upper - bounds.earned <= 0.02 * bounds.upper
