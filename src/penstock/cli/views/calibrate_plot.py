"""The plot of `penstock calibrate`: what was measured, and the lines that fit it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from penstock.extras import extra
from penstock.files.command_error import CommandError, first_line
from penstock.planning.calibration import Calibration

__all__ = ["write_plot"]

_COLOURS: Final = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2")
_DASHES: Final = ("solid", "dot")


def write_plot(found: Calibration, path: Path) -> None:
    """Write it as a page of its own, which needs nothing else."""
    page = _figure(found).to_html(include_plotlyjs=True)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise CommandError(
            f"cannot write {str(path)!r}: {first_line(error)}; name a file that can be written"
        ) from error


def _figure(found: Calibration) -> Any:
    with extra("lab", "a plot"):
        from plotly.graph_objects import Scatter
        from plotly.subplots import make_subplots

    figure = make_subplots(1, 2, subplot_titles=("a probe", "an insert and a removal"))
    for colour, (index, measured) in zip(_COLOURS, found.measured.items(), strict=False):
        fits = (found.searches[index], found.updates[index])
        for column, fit in enumerate(fits, 1):
            groups: dict[int, list[tuple[int, float, float]]] = {}
            for each, line in zip(measured, fit.predicted, strict=True):
                group = each.point.chain if index == "buckets" else each.point.matches
                mark = each.probe_ns if column == 1 else each.update_ns
                groups.setdefault(group, []).append((each.point.tuples, mark, line))
            # The smallest windows have fewer tuples than matches asked for.
            lines = sorted(groups.items(), key=lambda group: -len(group[1]))[: len(_DASHES)]
            for dash, (group, rows) in zip(_DASHES, sorted(lines), strict=False):
                what = f"{index}, {'chains' if index == 'buckets' else 'matches'} of {group}"
                tuples, marks, fitted = zip(*rows, strict=True)
                style = {"legendgroup": what, "showlegend": False}
                figure.add_trace(
                    Scatter(x=tuples, y=fitted, line={"color": colour, "dash": dash}, **style),
                    row=1,
                    col=column,
                )
                style["showlegend"] = column == 1
                marker = {"color": colour, "symbol": "circle" if dash == "solid" else "x"}
                figure.add_trace(
                    Scatter(x=tuples, y=marks, mode="markers", marker=marker, name=what, **style),
                    row=1,
                    col=column,
                )
    figure.update_xaxes(type="log", title="tuples in the window")
    figure.update_yaxes(type="log", title="ns")
    figure.update_layout(
        title="Measured (marks) and fitted (lines)", template="plotly_white", height=640
    )
    return figure
