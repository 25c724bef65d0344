"""`size`: how much memory a join needs for the recalls that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from penstock.errors import PlanError
from penstock.lab.recording.recording import Recording
from penstock.lab.sizing.ceiling import Ceiling, ceiling, ceiling_curve, why_no_ceiling
from penstock.lab.sizing.curve import GRID
from penstock.lab.sizing.intervals import Interval, jackknife
from penstock.lab.sizing.policy_curve import Curve, curve_of
from penstock.lab.sizing.recommendation import Recommendation, recommended
from penstock.lab.sizing.replay import Exact, exact_replay
from penstock.model.limits import POLICIES, Limits
from penstock.model.plan import check_limits
from penstock.model.query import Query

__all__ = ["RECALLS", "Request", "Sizing", "fitting_policies", "size"]

RECALLS: Final = (0.9, 0.95, 0.99)
_USUAL: Final = 0.95
_TRIES: Final = 3  # to close in on a recall, mostly
# Beyond these the best of all takes longer to find than all the rest. Where keys alone do not
# decide, each result is looked at.
_CEILING_ROWS: Final = 200_000
_CEILING_RESULTS: Final = 1_000_000

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Request:
    """What is asked for. policies: all that fit, when not given. recommend_for: one of the recalls;
    when not given 0.95 if it is among them, or else the first. pool, seed: as in Limits.
    with_ceiling: whether to look for the best of all policies; when not given, if the recording is
    small."""

    recalls: Sequence[float] = RECALLS
    policies: Sequence[str] | None = None
    recommend_for: float | None = None
    pool: Any = "shared"
    seed: int = 0
    with_ceiling: bool | None = None


@dataclass(frozen=True)
class Sizing:
    """What was found.

    recalls: those that were asked for. rows: of the recording. sampled_rows: of the sample, None
    where all rows were joined; heavy_keys: how many keys were sure to be in it. results: of the
    exact join. need: the most tuples that are live in it, with an interval where that is an
    estimate, of samples of semi joins; need_bytes: what these take, about. curves: of the policies.
    ceiling: of the best of all; None where `no_ceiling` says why. recommendation: for the recall
    `recommend_for`; None where no policy has it.
    """

    recalls: tuple[float, ...]
    rows: int
    sampled_rows: int | None
    heavy_keys: int
    results: int
    need: int
    need_interval: Interval | None
    need_bytes: int
    curves: tuple[Curve, ...]
    ceiling: Ceiling | None
    no_ceiling: str | None
    recommend_for: float
    recommendation: Recommendation | None


def fitting_policies(query: Query, asked: Sequence[str] | None = None) -> list[str]:
    """The policies to try; refused if one that is asked for, or any, does not fit the query."""
    endless = any(window.is_endless for window in query.windows)
    fitting = [name for name, policy in POLICIES.items() if not (policy.needs_end and endless)]
    chosen = list(dict.fromkeys(asked)) if asked else fitting
    for policy in chosen:
        check_limits(query, Limits("1 rows", shed=policy))
    return chosen


def size(
    recording: Recording, request: Request | None = None, progress: Progress | None = None
) -> Sizing:
    """Measure how recall grows with memory, and what it takes to reach some.

    progress: is given the part that is done, 0 to 1, and what is done now.
    """
    asked = request or Request()
    policies = fitting_policies(recording.query, asked.policies)
    recalls = _checked_recalls(asked)
    if progress is not None:
        progress(0.0, "the exact join")
    exact = exact_replay(recording)
    due = float(recording.weights[0] @ exact.produced)
    if not due:
        raise PlanError(
            "the exact join of this recording has no results, so there is nothing to be recalled; "
            "check that keys and times meet"
        )
    no_ceiling = _why_no_ceiling(recording, asked, due)
    parts = len(policies) + (no_ceiling is None)
    steps = _Steps(progress, parts, len(GRID) + _TRIES * len(recalls))
    curves = []
    for policy in policies:
        steps.begin(policy)
        limits = Limits("1 rows", shed=policy, pool=asked.pool, loss="off", seed=asked.seed)
        curves.append(curve_of(recording, exact, limits, recalls, steps.tick))
    best = None
    if no_ceiling is None:
        steps.begin("the optimum")
        try:
            best = _ceiling(recording, exact, recalls, asked.pool, steps.tick)
        except PlanError as error:  # what the policies do is known all the same
            no_ceiling = str(error)
    chosen = _recommend_for(asked, recalls)
    return Sizing(
        recalls,
        recording.rows,
        None if recording.sample is None else recording.present,
        0 if recording.sample is None else len(recording.sample.heavy),
        round(due),
        *_need(recording, exact),
        tuple(curves),
        best,
        no_ceiling,
        chosen,
        recommended(curves, chosen, asked.pool),
    )


class _Steps:
    """How much is done, where each part takes about as long as the others."""

    def __init__(self, progress: Progress | None, parts: int, tries: int) -> None:
        self._progress = progress
        self._parts = parts
        self._tries = tries
        self._part = -1
        self._done = 0
        self._what = ""

    def begin(self, what: str) -> None:
        """The next part."""
        self._part += 1
        self._done, self._what = -1, what
        self.tick()

    def tick(self) -> None:
        """One more try."""
        self._done += 1
        if self._progress is not None:
            within = min(self._done / self._tries, 1.0)
            self._progress((self._part + within) / self._parts, self._what)


def _checked_recalls(asked: Request) -> tuple[float, ...]:
    recalls = tuple(sorted(set(asked.recalls)))
    if not recalls or not all(0 < each <= 1 for each in recalls):
        raise PlanError(f"recalls must be above 0 and at most 1, got {list(asked.recalls)}")
    if asked.recommend_for is not None and asked.recommend_for not in recalls:
        raise PlanError(
            f"a recommendation for a recall of {asked.recommend_for:g} needs it among the recalls "
            f"asked for, got {list(recalls)}"
        )
    return recalls


def _recommend_for(asked: Request, recalls: Sequence[float]) -> float:
    if asked.recommend_for is not None:
        return asked.recommend_for
    return _USUAL if _USUAL in recalls else recalls[0]


def _why_no_ceiling(recording: Recording, asked: Request, results: float) -> str | None:
    if asked.with_ceiling is False:
        return "it was not asked for"
    if (why := why_no_ceiling(recording.query)) is not None:
        return why
    if recording.sample is not None:
        return "it is not known of a sample"
    if asked.with_ceiling:
        return None
    if recording.present > _CEILING_ROWS:
        return f"it takes long for more than {_CEILING_ROWS:,} rows, unless it is asked for"
    if recording.query.residuals and results > _CEILING_RESULTS:
        return (
            f"it takes long for more than {_CEILING_RESULTS:,} results of keys and other "
            "predicates, unless it is asked for"
        )
    return None


def _ceiling(
    recording: Recording,
    exact: Exact,
    recalls: Sequence[float],
    pool: Any,
    tick: Callable[[], None],
) -> Ceiling:
    def best(memory: int) -> Interval:
        tick()
        return ceiling(recording.query, recording.tables, memory, pool)

    return ceiling_curve(best, exact.here, recalls)


def _need(recording: Recording, exact: Exact) -> tuple[int, Interval | None, int]:
    rows = exact.need.rows
    interval = None
    if recording.sample is not None and recording.query.is_semi:
        interval = jackknife(rows, recording.sample.share, by_factor=True)
    return int(np.ceil(rows[0])), interval, round(exact.bytes)
