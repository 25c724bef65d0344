"""The strategies that Kang et al. compare, and what the model says of each.

`FIGURES` are the papers' experiments with two streams A and B: what is short, the figure's
parameters, and the five strategies by the weights with which CPU and memory are split. In every
figure one of the five is what `allocation` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from penstock.errors import PlanError
from penstock.shedding.allocation import Allocation, allocate_both, allocate_cpu, allocate_memory
from penstock.shedding.output_rate import Drop, output_rate

__all__ = ["FIGURES", "STRATEGIES", "Figure", "Strategy", "best", "gains", "outputs", "split"]

Pair = tuple[float, float]


class Strategy(NamedTuple):
    """How CPU and memory are split, each as a row of `WEIGHTS`; None: there is enough of it."""

    cpu: str | None = None
    memory: str | None = None


class Figure(NamedTuple):
    """One experiment. `windows` are in tuples; None: as large as the memory allows."""

    rates: Pair
    selectivity: float
    strategies: str
    windows: Pair | None = None
    service_rate: float | None = None
    memory: float | None = None
    drop: Drop = "probe"


STRATEGIES: Mapping[str, Mapping[str, Strategy]] = {
    "cpu": {
        "max A": Strategy(cpu="A"),
        "max B": Strategy(cpu="B"),
        "as rates": Strategy(cpu="rates"),
        "as windows": Strategy(cpu="windows"),
        "equal": Strategy(cpu="equal"),
    },
    "cpu 2002": {
        "as rates": Strategy(cpu="rates"),
        "inverse to rates": Strategy(cpu="inverse rates"),
        "as windows": Strategy(cpu="seconds"),
        "inverse to windows": Strategy(cpu="inverse seconds"),
        "equal": Strategy(cpu="equal"),
    },
    "memory": {
        "max A": Strategy(memory="A"),
        "max B": Strategy(memory="B"),
        "as rates": Strategy(memory="rates"),
        "inverse to rates": Strategy(memory="inverse rates"),
        "equal": Strategy(memory="equal"),
    },
    "both": {
        "window A, rate B": Strategy(cpu="B", memory="A"),
        "window B, rate A": Strategy(cpu="A", memory="B"),
        "window A, rate A": Strategy(cpu="A", memory="A"),
        "window B, rate B": Strategy(cpu="B", memory="B"),
        "equal": Strategy(cpu="equal", memory="equal"),
    },
}

FIGURES: Mapping[str, Figure] = {
    "2003 figure 5": Figure((800, 200), 0.01, "cpu", windows=(100, 200), service_rate=100),
    # Time windows of 9 and 1 seconds.
    "2002 figure 8": Figure(
        (80, 20), 0.02, "cpu 2002", windows=(720, 20), service_rate=10, drop="tuple"
    ),
    # Figure 9 of 2002.
    "2003 figure 6": Figure((10, 50), 0.005, "memory", memory=1000),
    # Figure 10 of 2002. It names no rates: either stream alone can take up the service rate.
    "2003 figure 7": Figure((10, 10), 0.01, "both", service_rate=10, memory=100),
}


def _windows(figure: Figure) -> Pair:
    if figure.windows is None:
        raise PlanError("the figure has no windows of its own; give windows, or split its memory")
    return figure.windows


def _seconds(figure: Figure) -> Pair:
    (first, second), (rate_a, rate_b) = _windows(figure), figure.rates
    return first / rate_a, second / rate_b


def _swapped(weights: Pair) -> Pair:
    """Of two, the inverse proportion is the other one's weight."""
    return weights[1], weights[0]


WEIGHTS: Mapping[str, Callable[[Figure], Pair]] = {
    "A": lambda figure: (1, 0),
    "B": lambda figure: (0, 1),
    "equal": lambda figure: (1, 1),
    "rates": lambda figure: figure.rates,
    "inverse rates": lambda figure: _swapped(figure.rates),
    "windows": _windows,
    "seconds": _seconds,
    "inverse seconds": lambda figure: _swapped(_seconds(figure)),
}


def split(figure: Figure, strategy: str) -> Allocation:
    """What a strategy of the figure gives each stream; what is above a rate goes to the other."""
    table = STRATEGIES[figure.strategies]
    if strategy not in table:
        raise PlanError(f"no strategy {strategy!r} here; give one of {', '.join(map(repr, table))}")
    cpu, memory = table[strategy]
    rates: tuple[float, ...] = figure.rates
    if cpu is not None and figure.service_rate is not None:
        rates = _weighed(figure.service_rate, WEIGHTS[cpu](figure), caps=figure.rates)
    if memory is None or figure.memory is None:
        return Allocation(rates, _windows(figure))
    all_of_it = (figure.memory, figure.memory)
    return Allocation(rates, _weighed(figure.memory, WEIGHTS[memory](figure), caps=all_of_it))


def best(figure: Figure) -> Allocation:
    """What `allocation` gives for the figure."""
    if figure.memory is None:
        service = figure.service_rate or sum(figure.rates)
        windows = _windows(figure)
        return Allocation(allocate_cpu(figure.rates, windows, service, figure.drop), windows)
    if figure.service_rate is None:
        return Allocation(figure.rates, allocate_memory(figure.rates, figure.memory))
    return allocate_both(figure.memory, figure.service_rate, figure.rates)


def outputs(figure: Figure) -> dict[str, float]:
    """Results per unit of time of each strategy, as the model says."""
    return {
        strategy: _output(figure, split(figure, strategy))
        for strategy in STRATEGIES[figure.strategies]
    }


def gains(figure: Figure) -> dict[str, float]:
    """By what share the best allocation gives more than each strategy; infinite over nothing."""
    most = _output(figure, best(figure))
    return {
        strategy: most / output - 1 if output else float("inf")
        for strategy, output in outputs(figure).items()
    }


def _output(figure: Figure, allocation: Allocation) -> float:
    return output_rate(
        figure.rates,
        allocation.windows,
        allocation.rates,
        drop=figure.drop,
        selectivity=figure.selectivity,
    )


def _weighed(total: float, weights: Pair, caps: Pair) -> Pair:
    if total >= sum(caps):
        return caps
    first = min(max(total * weights[0] / sum(weights), total - caps[1]), caps[0])
    return first, total - first
