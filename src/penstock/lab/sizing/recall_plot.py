"""A sizing as a picture: recall against memory, a line for each policy.

Above them stands the optimum, as a band where only bounds are known. The exact need is a line from
top to bottom, and the recalls that were asked for are lines across, with a mark where a policy
reaches them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from penstock.extras import extra
from penstock.lab.sizing.ceiling import Ceiling
from penstock.lab.sizing.policy_curve import Curve
from penstock.lab.sizing.sizing import Sizing
from penstock.planning.explain.plot import write_figure

__all__ = ["write_plot"]

_STRONG: Final = "#1d3557"
_FAINT: Final = "#c8ccd0"
_COLOURS: Final = {
    "prob": "#4c78a8", "life": "#f58518", "expected_life": "#54a24b", "age": "#b279a2",
    "oldest": "#e45756", "random": "#9d755d",
}  # fmt: skip
_BEYOND: Final = 1.06  # the axis goes on a little after the exact need


def write_plot(sizing: Sizing, path: Path) -> Path:
    """An HTML file with everything in it."""
    return write_figure(_figure(sizing), path)


def _figure(sizing: Sizing) -> Any:
    with extra("lab", "a plot"):
        import plotly.graph_objects as go

    figure = go.Figure()
    for recall in sizing.recalls:
        figure.add_hline(
            y=recall,
            line={"color": _FAINT, "width": 1, "dash": "dot"},
            annotation={"text": f"{100 * recall:.6g}%"},
        )
    for curve in sizing.curves:
        _add_curve(figure, curve)
    if sizing.ceiling is not None:
        _add_ceiling(figure, sizing.ceiling, sizing.need)
    figure.add_vline(
        x=sizing.need,
        line={"color": _STRONG, "width": 1},
        annotation={"text": f"exact need, {sizing.need:,} rows", "textangle": -90},
        annotation_position="bottom left",
    )
    sampled = "" if sizing.sampled_rows is None else f", from a sample of {sizing.sampled_rows:,}"
    figure.update_layout(
        title=f"Recall by memory, of {sizing.rows:,} rows{sampled}",
        template="plotly_white",
        hovermode="closest",
        xaxis={
            "title": "memory in rows",
            "range": [0, _BEYOND * sizing.need],
            "rangemode": "tozero",
            "separatethousands": True,
        },
        yaxis={"title": "recall: results / those of the exact join", "tickformat": ".0%"},
    )
    figure.update_yaxes(range=[0, 1.02])
    return figure


def _add_curve(figure: Any, curve: Curve) -> None:
    colour = _COLOURS.get(curve.policy, _FAINT)
    memories = [each.memory for each in curve.points]
    intervals = [each.interval for each in curve.points if each.interval is not None]
    if intervals:
        _add_band(figure, memories, intervals, colour, curve.policy)
    figure.add_scatter(
        x=memories,
        y=[each.recall for each in curve.points],
        mode="lines+markers",
        name=curve.policy,
        legendgroup=curve.policy,
        line={"width": 2, "color": colour},
        marker={"size": 4},
        hovertemplate=f"{curve.policy}<br>%{{x:,}} rows: %{{y:.2%}}<extra></extra>",
    )
    reached = [each for each in curve.enough if each is not None]
    figure.add_scatter(
        x=[each.memory for each in reached],
        y=[each.measured for each in reached],
        mode="markers",
        name=f"{curve.policy}, enough",
        legendgroup=curve.policy,
        showlegend=False,
        marker={"size": 9, "color": colour, "symbol": "diamond"},
        hovertemplate=[
            f"{curve.policy}: {each.memory:,} rows are enough for {each.recall:.1%}<extra></extra>"
            for each in reached
        ],
    )


def _add_ceiling(figure: Any, ceiling: Ceiling, need: int) -> None:
    points = [(each.memory, each.recall, each.upper) for each in ceiling.points]
    if points[-1][0] < need:
        points.append((need, 1.0, 1.0))
    memories, recalls, uppers = zip(*points, strict=True)
    if uppers != recalls:
        _add_band(figure, memories, list(zip(recalls, uppers, strict=True)), _STRONG, "the optimum")
    figure.add_scatter(
        x=memories,
        y=uppers,
        mode="lines",
        name="the optimum",
        legendgroup="the optimum",
        line={"width": 2, "color": _STRONG, "dash": "dash"},
        hovertemplate="no policy has more<br>%{x:,} rows: %{y:.2%}<extra></extra>",
    )


def _add_band(figure: Any, memories: Any, intervals: Any, colour: str, group: str) -> None:
    lows, highs = zip(*intervals, strict=True)
    figure.add_scatter(
        x=[*memories, *reversed(memories)],
        y=[*highs, *reversed(lows)],
        mode="lines",
        fill="toself",
        name=f"{group}, interval",
        legendgroup=group,
        showlegend=False,
        line={"width": 0, "color": colour},
        opacity=0.25,
        hoverinfo="skip",
    )
