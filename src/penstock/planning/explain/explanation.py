"""An explanation: a plan a person can read, with what it costs and what else there is.

Values only, in the names of the query; `planning.text` shows them and `planning.plot` draws them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.planning.budget import tuple_bytes
from penstock.planning.case import Case
from penstock.planning.costs import Direction
from penstock.planning.explain.rate_shift import Turn, rate_shifts
from penstock.planning.planner import Choice
from penstock.planning.punctuated import PunctuatedWindow, punctuated_windows

__all__ = ["Alternative", "BudgetShare", "Crossover", "Explanation", "Partitioning", "explained"]

_RUNNERS_UP: Final = 5
_INTERVAL_S: Final = 1.0  # of periodic removal, to be seen beside the eager one


@dataclass(frozen=True)
class Alternative:
    """Another plan. cost: per second of event time."""

    indexes: Mapping[str, str | tuple[str, ...]]
    orders: Mapping[str, tuple[str, ...]]
    cost: float


@dataclass(frozen=True)
class Crossover:
    """How the plan would change with the ratio of the rates of two streams, first to second.

    below, above: the ratios at which it does when the ratio falls and when it rises, None for
    never; then_below, then_above: the plan that is cheapest from there on.
    """

    streams: tuple[str, str]
    ratio: float
    below: float | None
    above: float | None
    then_below: Alternative | None = None
    then_above: Alternative | None = None


@dataclass(frozen=True)
class Partitioning:
    """How the join is divided on Spark: 'by key', 'everywhere' or 'one bucket'. buckets: for each
    shuffle partition, 0 when there is one in all. reason: why so."""

    how: str
    buckets: int
    reason: str


@dataclass(frozen=True)
class BudgetShare:
    """What a stream has under limits. rows: in its window, of `wanted_rows`. rate: tuples a second
    that are dealt with, of `wanted_rate` that come."""

    rows: float
    wanted_rows: float
    rate: float
    wanted_rate: float


@dataclass(frozen=True)
class Explanation:
    """A plan, by name of stream, and what is expected of it.

    indexes: of each window; of one with several access paths, one for each.
    orders: the order in which the arrivals of a stream probe the other windows.
    cost: for each second of event time, in `unit` ('ns', 's', 'tuples' touched, or
        'units' that mean nothing).
    breakdown: of each window what probing it, inserting into it and expiring from it costs.
    runners_up: the next best plans. crossovers: where others would be better.
    expire: how tuples leave. expire_costs: what the ways to do it cost.
    partitioning: on Spark. budget: who gets what, None without limits.
    live_rows, live_bytes: that are kept, rings and indexes included, if nothing is promised.
    punctuated: what promises leave of each window, and what a running join holds; None without
        either.
    rates, windows, tuples: what it was planned for. is_assumed: whether that is only a guess.
    weights, model: by which costs were worked out.
    """

    indexes: Mapping[str, str | tuple[str, ...]]
    orders: Mapping[str, tuple[str, ...]]
    cost: float
    unit: str
    breakdown: Mapping[str, Direction]
    runners_up: tuple[Alternative, ...]
    crossovers: tuple[Crossover, ...]
    expire: str
    expire_costs: Mapping[str, float]
    partitioning: Partitioning
    budget: Mapping[str, BudgetShare] | None
    live_rows: Mapping[str, float]
    live_bytes: Mapping[str, float]
    punctuated: Mapping[str, PunctuatedWindow] | None
    rates: Mapping[str, float]
    windows: Mapping[str, str]
    tuples: Mapping[str, float]
    is_assumed: bool
    weights: str
    model: str
    case: Case = field(repr=False, compare=False)
    choice: Choice = field(repr=False, compare=False)

    def __str__(self) -> str:
        from penstock.planning.explain.rendering import as_text

        return as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it in values that JSON has."""
        plain = {
            name: _plain(getattr(self, name))
            for name in self.__dataclass_fields__
            if name not in ("case", "choice")
        }
        return {"version": 1, **plain}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=2)

    def plot(self, path: str | Path, *, streams: tuple[str, str] | None = None) -> Path:
        """Draw cost against the ratio of the rates of two streams, the first two when not given,
        for all combinations of their indexes, into an HTML file that needs nothing else."""
        from penstock.planning.explain.plot import write_plot

        return write_plot(self, Path(path), streams)


def explained(
    case: Case, partitioning: Partitioning, live: Mapping[str, int] | None = None
) -> Explanation:
    """Plan a case, and explain the plan. live: tuples that a running join holds, by stream."""
    query, names = case.query, case.query.names
    planner = case.planner()
    chosen = planner.choose()
    load, left, whole = planner.costs.load, case.left(), case.whole()
    removals = {"on_probe": None, "periodic": _INTERVAL_S}
    kept = {
        name: min(case.workload.live_tuples(query, name), most if most < wanted else float("inf"))
        for name, most, wanted in zip(names, left.tuples, whole.tuples, strict=True)
    }
    return Explanation(
        **_named(case, chosen),
        cost=chosen.cost.total,
        unit=chosen.cost.unit,
        breakdown=dict(zip(names, chosen.cost.directions, strict=True)),
        runners_up=tuple(
            _alternative(case, each) for each in planner.runners_up(chosen, _RUNNERS_UP)
        ),
        crossovers=tuple(
            Crossover(
                (names[each.streams[0]], names[each.streams[1]]),
                each.ratio,
                None if each.below is None else each.below.ratio,
                None if each.above is None else each.above.ratio,
                _turned(case, each.below),
                _turned(case, each.above),
            )
            for each in rate_shifts(case, chosen)
        ),
        expire="eager",
        expire_costs={
            "eager": chosen.cost.total,
            **{
                mode: planner.costs.removed(mode, interval)
                .cost(chosen.indexes, chosen.orders)
                .total
                for mode, interval in removals.items()
            },
        },
        partitioning=partitioning,
        budget=None
        if case.limits is None
        else {
            name: BudgetShare(
                left.tuples[stream],
                whole.tuples[stream],
                left.probe_rates[stream],
                whole.rates[stream],
            )
            for stream, name in enumerate(names)
        },
        live_rows=kept,
        live_bytes={
            name: kept[name] * tuple_bytes(left, stream, chosen.indexes[stream])
            for stream, name in enumerate(names)
        },
        punctuated=punctuated_windows(query, case.workload, kept, live)
        if live is not None or _promises(case)
        else None,
        rates=dict(zip(names, whole.rates, strict=True)),
        windows={
            name: str(own if case.is_assumed else case.workload.window(query, name))
            for name, own in zip(names, query.windows, strict=True)
        },
        tuples=dict(zip(names, load.tuples, strict=True)),
        is_assumed=case.is_assumed,
        weights=case.setting.weights.name,
        model=case.setting.model,
        case=case,
        choice=chosen,
    )


def _promises(case: Case) -> bool:
    """Whether there is something to say of promises."""
    given = case.workload.punctuation_rates is not None
    return given or (case.query.promises and not case.is_assumed)


def _named(case: Case, choice: Choice) -> dict[str, Any]:
    names = case.query.names
    return {
        "indexes": {
            name: str(paths[0]) if len(paths) == 1 else tuple(map(str, paths))
            for name, paths in zip(names, choice.indexes, strict=True)
        },
        "orders": {
            name: tuple(names[each] for each in order)
            for name, order in zip(names, choice.orders, strict=True)
        },
    }


def _alternative(case: Case, choice: Choice) -> Alternative:
    return Alternative(**_named(case, choice), cost=choice.cost.total)


def _turned(case: Case, turn: Turn | None) -> Alternative | None:
    return None if turn is None else _alternative(case, turn.choice)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return _plain(asdict(value)) if hasattr(value, "__dataclass_fields__") else value
