"""An explanation as a picture: cost against the ratio of two streams' rates.

One line for each combination of the indexes of two windows, both axes logarithmic; the lowest is
drawn strong, and where it changes there is a mark. The other streams, and all orders, are as in the
chosen plan. The sum of the two rates stays the same, and windows of time grow with their rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from math import log10, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import PlanError
from penstock.extras import extra
from penstock.model.plan import Index
from penstock.planning.explain.rate_shift import rates_at
from penstock.planning.explain.rendering import shown_ratio
from penstock.planning.plan_costs import Indexes, PlanCosts

if TYPE_CHECKING:
    from penstock.planning.explain.explanation import Explanation

__all__ = ["Lines", "cost_lines", "write_figure", "write_plot"]

_DECADES: Final = 4  # to each side of the ratio of today
_POINTS: Final = 24  # of a decade
_CLOSE: Final = 1 + 1e-6
_STRONG: Final = "#1d3557"
_COLOURS: Final = (
    "#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#bab0ac",
)  # fmt: skip


@dataclass(frozen=True)
class Lines:
    """ratios: of the rate of one stream to that of another. costs: by the indexes of their windows.
    crossovers: where the cheapest changes, and to what."""

    streams: tuple[str, str]
    ratios: tuple[float, ...]
    costs: dict[tuple[str, str], tuple[float, ...]]
    crossovers: tuple[tuple[float, tuple[str, str]], ...]


def cost_lines(explanation: Explanation, streams: tuple[str, str] | None = None) -> Lines:
    """What is drawn."""
    case, query = explanation.case, explanation.case.query
    names = query.names[:2] if streams is None else tuple(streams)
    if len(names) != 2 or names[0] == names[1] or not all(each in query.names for each in names):
        raise PlanError(f"streams must be two of {query.names}, got {streams!r}")
    pair = query.position(names[0]), query.position(names[1])
    rates = case.whole().rates
    if min(rates[each] for each in pair) <= 0:
        raise PlanError(
            f"the rates of {names[0]!r} and {names[1]!r} have no ratio, got "
            f"{rates[pair[0]]:g} and {rates[pair[1]]:g}; give both a rate above zero"
        )
    now = rates[pair[0]] / rates[pair[1]]
    combinations = _combinations(explanation, pair)
    costs: dict[float, dict[tuple[str, str], float]] = {}

    def at(ratio: float) -> dict[tuple[str, str], float]:
        if ratio not in costs:
            plans = PlanCosts(case.load(rates_at(case, pair, ratio)), case.setting)
            asked, read = plans.traffic(explanation.choice.orders)
            costs[ratio] = {
                label: plans.cost_of_traffic(indexes, asked, read).total
                for label, indexes in combinations.items()
            }
        return costs[ratio]

    ratios = tuple(
        now * 10 ** (step / _POINTS) for step in range(-_DECADES * _POINTS, _DECADES * _POINTS + 1)
    )
    crossovers = []
    for low, high in pairwise(ratios):
        begin = low
        while _cheapest(at(begin)) != _cheapest(at(high)):  # there may be several in between
            last, near, far = _cheapest(at(begin)), begin, high
            while far / near > _CLOSE:
                middle = sqrt(near * far)
                near, far = (middle, far) if _cheapest(at(middle)) == last else (near, middle)
            begin = far
            crossovers.append((far, _cheapest(at(far))))
    return Lines(
        (names[0], names[1]),
        ratios,
        {label: tuple(at(ratio)[label] for ratio in ratios) for label in combinations},
        tuple(crossovers),
    )


def write_plot(explanation: Explanation, path: Path, streams: tuple[str, str] | None) -> Path:
    """An HTML file with everything in it."""
    return write_figure(_figure(explanation, cost_lines(explanation, streams)), path)


def write_figure(figure: Any, path: Path) -> Path:
    """Write a figure of plotly, with all that it needs, to an HTML file."""
    try:
        figure.write_html(path, include_plotlyjs=True, config={"displaylogo": False})
    except OSError as error:
        raise PlanError(
            f"cannot write {str(path)!r}: {error.strerror}; name a file in a directory you may "
            "write to"
        ) from error
    return path


def _combinations(
    explanation: Explanation, pair: tuple[int, int]
) -> dict[tuple[str, str], Indexes]:
    """All pairs of indexes, each for the paths of its window that it serves."""
    planner = explanation.case.planner()
    chosen = explanation.choice.indexes
    options = []
    for window in pair:
        words = planner.costs.access.words[window]
        of_window: dict[str, tuple[Index, ...]] = {}
        for name in planner.costs.names(window):
            index = Index(name)
            of_window[name] = tuple(
                index if index.serves(word) else own
                for word, own in zip(words, chosen[window], strict=True)
            )
        own = " + ".join(map(str, chosen[window]))
        of_window.setdefault(own, chosen[window])
        options.append(of_window)
    found = {}
    for left, right in product(*options):
        indexes = list(chosen)
        indexes[pair[0]], indexes[pair[1]] = options[0][left], options[1][right]
        found[left, right] = tuple(indexes)
    return found


def _cheapest(costs: dict[tuple[str, str], float]) -> tuple[str, str]:
    return min(costs, key=lambda label: float(f"{costs[label]:.12g}"))


def _figure(explanation: Explanation, lines: Lines) -> Any:
    with extra("lab", "a plot"):
        import plotly.graph_objects as go

    left, right = lines.streams
    winners = dict.fromkeys(
        _cheapest({label: costs[place] for label, costs in lines.costs.items()})
        for place in range(len(lines.ratios))
    )
    figure = go.Figure()
    for label in [*winners, *(each for each in lines.costs if each not in winners)]:
        costs, wins = lines.costs[label], label in winners
        colour = _COLOURS[list(winners).index(label) % len(_COLOURS)] if wins else "#c8ccd0"
        figure.add_scatter(
            x=lines.ratios,
            y=costs,
            mode="lines",
            name=" / ".join(label),
            line={"width": 2.5 if wins else 1, "color": colour},
            opacity=1 if wins else 0.7,
            hovertemplate=f"{left} {label[0]}, {right} {label[1]}<br>%{{y:.4~g}} at %{{x:.3~g}}",
        )
    heights = [
        min(costs[place] for costs in lines.costs.values()) for place in range(len(lines.ratios))
    ]
    _mark_crossovers(figure, lines, heights)
    now = lines.ratios[len(lines.ratios) // 2]
    figure.add_vline(x=now, line={"color": _STRONG, "width": 1})
    # On an axis of powers an annotation stands at the power.
    figure.add_annotation(
        x=log10(now), y=1, yref="paper", yanchor="bottom", text=f"now {shown_ratio(now)}",
        showarrow=False,
    )  # fmt: skip
    per = {"tuples": "tuples touched", "units": "units"}.get(
        explanation.unit, f"{explanation.unit} of work"
    )
    low, high = min(heights), max(heights)
    figure.update_layout(
        title=f"Cost by indexes of {left} / {right}",
        template="plotly_white",
        hovermode="closest",
        legend={"title": f"{left} / {right}"},
        xaxis={
            "type": "log",
            "title": f"rate of {left} / rate of {right}",
            "exponentformat": "power",
        },
        yaxis={
            "type": "log",
            "title": f"{per} for each second of event time",
            "exponentformat": "SI",
            "dtick": "D2",
            # What is far above the cheapest is no choice: it may be zoomed out to.
            "range": [log10(low / 1.6), log10(high * 12)] if low > 0 else None,
        },
    )
    return figure


def _mark_crossovers(figure: Any, lines: Lines, heights: list[float]) -> None:
    if not lines.crossovers:
        return
    ratios = [ratio for ratio, _ in lines.crossovers]
    marks = []
    for ratio in ratios:
        place = min(
            range(len(lines.ratios)), key=lambda each: abs(log10(lines.ratios[each] / ratio))
        )
        marks.append(heights[place])
        figure.add_vline(x=ratio, line={"color": "#888", "width": 1, "dash": "dot"})
    figure.add_scatter(
        x=ratios,
        y=marks,
        mode="markers+text",
        name="crossovers",
        text=[shown_ratio(ratio) for ratio in ratios],
        textposition="bottom center",
        marker={"size": 9, "color": _STRONG, "symbol": "diamond"},
        hovertext=[
            f"from {ratio:.4g} on: {' / '.join(label)}" for ratio, label in lines.crossovers
        ],
        hoverinfo="text",
    )
