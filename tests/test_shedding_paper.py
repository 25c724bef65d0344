"""What Das, Gehrke and Riedewald found about policies (section 5.2), at their settings.

Streams of 5,600 tuples and 50 keys, windows of 400 instants, results counted after two windows;
where nothing else is said the memory is half of what the exact join needs, parted equally. What
is measured here is tabled in docs/shedding.md, by `python -m benchmarks.shedding_paper`.
"""

from __future__ import annotations

from itertools import product

import pytest

from benchmarks.paired import Pair, best, run, zipf_keys
from penstock.workloads import Workload
from penstock.workloads.keys import ShuffledKeys, ZipfKeys

WINDOW = 400
EQUAL = zipf_keys((0.0, 0.0))
CORRELATED = zipf_keys((1.0, 1.0))
STEEP = zipf_keys((2.0, 2.0))
SHUFFLED = tuple(zipf_keys((1.0, 1.0), shuffle=seed) for seed in (1, 2, 3))
ONE_SKEWED = zipf_keys((1.0, 0.0))
POLICIES = ("random", "oldest", "prob", "life", "expected_life", "age")


def share_of_best(pair: Pair, shed: str, pool: str = "fixed") -> float:
    return run(pair, WINDOW, shed, pool=pool).total / best(pair, WINDOW, pool=pool)


@pytest.mark.parametrize("pair", [CORRELATED, STEEP], ids=["1", "2"])
def test_prob_is_near_the_optimum_of_correlated_streams(pair: Pair) -> None:
    assert share_of_best(pair, "prob") >= 0.96


def test_a_long_window() -> None:
    pair = zipf_keys((1.0, 1.0), window=800)
    assert run(pair, 800, "prob").total >= 0.96 * best(pair, 800)


@pytest.mark.parametrize("pair", SHUFFLED, ids=range(3))
def test_prob_on_uncorrelated_streams(pair: Pair) -> None:
    """The paper has 96 % here too; which keys meet decides, and 85 % is what is found."""
    assert 0.85 <= share_of_best(pair, "prob") <= 1


def test_nothing_is_learned_from_equal_keys() -> None:
    """All policies alike, within what the frequencies of one sample differ."""
    recalls = {shed: run(EQUAL, WINDOW, shed).recall for shed in POLICIES}
    assert max(recalls.values()) - min(recalls.values()) < 0.05, recalls


@pytest.mark.parametrize("pair", [CORRELATED, ONE_SKEWED], ids=["both", "one"])
def test_life_lies_between_random_and_prob(pair: Pair) -> None:
    random, life, prob = (run(pair, WINDOW, shed).recall for shed in ("random", "life", "prob"))
    assert random < life < prob


@pytest.mark.parametrize("pool", ["fixed", "shared"])
@pytest.mark.parametrize("pair", [EQUAL, CORRELATED, ONE_SKEWED, SHUFFLED[0]], ids=range(4))
def test_nothing_beats_the_optimum(pair: Pair, pool: str) -> None:
    most = best(pair, WINDOW, pool=pool)
    exact = best(pair, 2 * WINDOW, pool="shared")
    for shed, given in product(POLICIES, (True, False)):
        found = run(pair, WINDOW, shed, pool=pool, given=given)
        assert found.total <= most, shed
        assert found.total + sum(found.lost) == exact, shed


@pytest.mark.parametrize("pair", [CORRELATED, STEEP, *SHUFFLED, ONE_SKEWED], ids=range(6))
@pytest.mark.parametrize("memory", [WINDOW // 4, WINDOW])
def test_learned_frequencies_are_as_good_as_given_ones(pair: Pair, memory: int) -> None:
    given, learned = (run(pair, memory, "prob", given=given).total for given in (True, False))
    assert learned >= 0.98 * given


def test_learned_frequencies_follow_the_keys() -> None:
    """In mid-run other keys become the hot ones; two windows later all is as before."""
    rows, windows = 14 * WINDOW, 14
    before = ZipfKeys(50, 1.0)
    works = [
        Workload(law=law, rows=rows // 2, seed=seed, payload=0)
        for seed, law in ((1, before), (2, ShuffledKeys(before, 5)))
    ]
    left, right = (
        tuple(key for work in works for key in work.table(stream)["k"].to_pylist())
        for stream in ("left", "right")
    )
    found = run(Pair(left, right, WINDOW), WINDOW, "prob", given=False)
    swap = windows // 2 - 2  # the first window after it, counted after the warm-up
    usual = sum(found.recall_of(window) for window in range(swap)) / swap
    assert found.recall_of(swap) < usual - 0.1  # so there is something to recover from
    for window in range(swap + 2, windows - 2):
        assert found.recall_of(window) >= usual - 0.03


@pytest.mark.parametrize("skews", [(1.0, 0.0), (1.0, 0.5), (1.0, 1.0), (0.0, 1.0)])
def test_shared_memory_is_a_little_better(skews: tuple[float, float]) -> None:
    """And the more skewed stream has more of it."""
    pair = zipf_keys(skews)
    fixed, shared = (run(pair, WINDOW, "prob", pool=pool) for pool in ("fixed", "shared"))
    assert 0.99 * fixed.total <= shared.total <= 1.10 * fixed.total
    assert fixed.share == pytest.approx(0.5, abs=0.01)
    if skews[0] != skews[1]:
        assert (shared.share > 0.5) == (skews[0] > skews[1])
        assert 0.2 < shared.share < 0.8
