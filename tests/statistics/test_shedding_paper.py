"""What Das, Gehrke and Riedewald found about policies (section 5.2), at their settings.

Streams of 5,600 tuples and 50 keys, windows of 400 instants, results counted after two windows.
Where nothing else is said the memory is half of what the exact join needs, parted equally, and a
policy is told how often each key comes in the whole input. What is found is tabled in
docs/shedding.md, also where the paper found something else.
"""

from __future__ import annotations

from itertools import product

import pytest

from benchmarks.paired import Pair, best, exact, run, zipf_keys
from penstock.model.limits import POLICIES
from penstock.samples import SampleStreams
from penstock.samples.key_laws import ShuffledKeys, ZipfKeys
from support.thoroughness import often

WINDOW = 400
UNIFORM = zipf_keys((0.0, 0.0))
CORRELATED = zipf_keys((1.0, 1.0))
STEEPER = zipf_keys((1.5, 1.5))
ONE_SKEWED = zipf_keys((1.0, 0.0))
SHUFFLED = [zipf_keys((1.0, 1.0), shuffle=seed) for seed in range(1, 7)]
MODERATE = [(1.0, 1.0), (1.0, 0.5), (1.0, 0.0), (0.5, 1.0), (1.5, 0.5), (2.0, 1.0)]


@pytest.mark.parametrize(
    "pair", [CORRELATED, pytest.param(STEEPER, marks=pytest.mark.slow)], ids=["1", "1.5"]
)
def test_prob_is_near_the_optimum_of_correlated_streams(pair: Pair) -> None:
    assert run(pair, WINDOW, "prob").total >= 0.96 * best(pair, WINDOW)


def test_a_longer_window() -> None:
    pair = zipf_keys((1.0, 1.0), window=800)
    assert run(pair, 800, "prob").total >= 0.96 * best(pair, 800)


@pytest.mark.parametrize("pair", often(SHUFFLED[:3], SHUFFLED[0]), ids=["1", "2", "3"])
def test_prob_on_uncorrelated_streams(pair: Pair) -> None:
    """The paper has 96 % here too; 85 to 97 % is what is found, by how the keys meet."""
    assert run(pair, WINDOW, "prob").total >= 0.85 * best(pair, WINDOW)


def test_policies_do_alike_on_uniform_keys() -> None:
    learned = {shed: run(UNIFORM, WINDOW, shed, known="nothing").recall for shed in POLICIES}
    assert max(learned.values()) - min(learned.values()) < 0.02, learned
    # A sample is never quite uniform, and who is told its frequencies knows something.
    told = {shed: run(UNIFORM, WINDOW, shed).recall for shed in POLICIES}
    assert max(told.values()) - min(told.values()) < 0.05, told


@pytest.mark.parametrize("pair", [CORRELATED, ONE_SKEWED, *SHUFFLED[:3]])
def test_life_is_above_random_and_below_prob(pair: Pair) -> None:
    """Not little above it, as the paper has it: remaining life times probability does better."""
    random, life, expected_life, prob = (
        run(pair, WINDOW, shed).total for shed in ("random", "life", "expected_life", "prob")
    )
    assert 1.2 * random < life < expected_life < prob


@pytest.mark.slow
def test_expected_life_does_not_beat_prob() -> None:
    """The paper expects more of it than of life, and it gives that, but no more than prob.

    But for a few settings, by less than 2 %: little memory shared by steep, uncorrelated streams.
    """
    pairs = [UNIFORM, zipf_keys((0.5, 0.5)), CORRELATED, STEEPER, SHUFFLED[0], SHUFFLED[1]]
    pairs.append(zipf_keys((2.0, 2.0), shuffle=1))
    ratios = {"life": [], "expected_life": []}
    for pair, memory, pool in product(pairs, (100, 400), ("fixed", "shared")):
        prob = run(pair, memory, "prob", pool=pool).total
        for shed, found in ratios.items():
            found.append(run(pair, memory, shed, pool=pool).total / prob)
    means = {shed: sum(found) / len(found) for shed, found in ratios.items()}
    assert max(ratios["expected_life"]) < 1.02
    assert 0.9 < means["life"] < means["expected_life"] < 0.99, means


@pytest.mark.parametrize("pool", often(["fixed", "shared"], "shared"))
@pytest.mark.parametrize("pair", [UNIFORM, CORRELATED, ONE_SKEWED, SHUFFLED[0]])
def test_nothing_beats_the_optimum(pair: Pair, pool: str) -> None:
    most = best(pair, WINDOW, pool=pool)
    for shed, known in product(POLICIES, ("sample", "nothing")):
        found = run(pair, WINDOW, shed, pool=pool, known=known)
        assert found.total <= most, shed
        assert found.total + sum(found.lost) == exact(pair), shed


@pytest.mark.parametrize("memory", [WINDOW // 10, WINDOW // 4, WINDOW])
@pytest.mark.parametrize("pair", [CORRELATED, STEEPER], ids=["1", "1.5"])
def test_learned_frequencies_do_as_well_as_given_ones(pair: Pair, memory: int) -> None:
    given, learned = (
        run(pair, memory, "prob", known=known).total for known in ("sample", "nothing")
    )
    assert learned >= 0.98 * given


@pytest.mark.parametrize("memory", [WINDOW // 10, WINDOW // 4, WINDOW])
def test_learned_frequencies_of_uncorrelated_streams(memory: int) -> None:
    """Over six ways in which keys meet, against the law that they are drawn by.

    A single one is down to 97 %; the sample's own frequencies tell more than the law.
    """
    law, learned = (
        sum(run(pair, memory, "prob", known=known).total for pair in SHUFFLED)
        for known in ("law", "nothing")
    )
    assert learned >= 0.98 * law


@pytest.mark.parametrize("skew", [1.0, 2.0])
def test_learned_frequencies_follow_the_keys(skew: float) -> None:
    """In mid-run other keys become the hot ones; two windows later all is as before."""
    windows = 14
    law = ZipfKeys(50, skew)
    works = [
        SampleStreams(law=each, rows=windows // 2 * WINDOW, seed=seed, payload=0)
        for seed, each in ((1, law), (2, ShuffledKeys(law, 5)))
    ]
    left, right = (
        tuple(key for work in works for key in work.table(stream)["k"].to_pylist())
        for stream in ("left", "right")
    )
    found = run(Pair(left, right, WINDOW), WINDOW, "prob", known="nothing")
    swap = windows // 2 - 2  # the first window after it, of those after the warm-up
    usual = sum(found.recall_of(window) for window in range(swap)) / swap
    assert found.recall_of(swap) < usual - 0.05  # so there is something to recover from
    for window in range(swap + 2, windows - 2):
        assert found.recall_of(window) >= 0.95 * usual


@pytest.mark.parametrize("skews", MODERATE, ids=str)
def test_shared_memory_is_a_little_better(skews: tuple[float, float]) -> None:
    """And the more skewed stream has the larger part of it."""
    fixed, shared = (
        run(zipf_keys(skews), WINDOW, "prob", pool=pool) for pool in ("fixed", "shared")
    )
    assert 0.99 * fixed.total <= shared.total <= 1.10 * fixed.total
    assert fixed.share == pytest.approx(0.5, abs=0.01)
    if skews[0] != skews[1]:
        assert (shared.share > 0.5) == (skews[0] > skews[1])
        assert 0.2 < shared.share < 0.8
