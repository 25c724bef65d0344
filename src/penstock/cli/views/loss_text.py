"""What `penstock join --memory` says of the results that are missing.

A memory is only called enough if it surely is: nothing would be shed with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from penstock.cli.join_files import Totals
from penstock.cli.side import Side
from penstock.cli.views.display import say
from penstock.model.amount import amount
from penstock.model.limits import Limits
from penstock.runtime.metrics import Metrics

__all__ = ["loss_lines", "warn_of_loss"]


def loss_lines(metrics: Metrics) -> list[tuple[str, str]]:
    """The lines of the summary."""
    lost, due = _lost_and_due(metrics)
    recall = _recall(metrics, due)
    if metrics.lost_interval is not None:
        low, high = metrics.lost_interval
        dues = (metrics.produced + high, metrics.produced + low)
        recall = f"about {recall} ({' to '.join(_recall(metrics, each) for each in dues)})"
    return [
        ("shed", amount(metrics.shed, "tuple")),
        ("lost", f"{_told(metrics, lost)} {_results(lost)}, recall {recall}"),
    ]


def warn_of_loss(
    console: Console, limits: Limits, metrics: Metrics, sides: Sequence[Side], totals: Totals
) -> None:
    """Say how many results are missing, and with which memory they would not be."""
    lost, due = _lost_and_due(metrics)
    interval = metrics.lost_interval
    if not lost and not (interval and interval[1]):
        return
    # By rows out of order, windows also hold tuples that have expired, and those may be more
    # where none is shed; of sampled ghosts nobody knows how many there would be.
    is_known = interval is None and not any(side.disorder_us for side in sides)
    advice = ""
    if is_known and limits.memory.rows is not None:
        advice = f"; --memory '{totals.enough_rows} rows' is enough to lose none"
    say(
        console,
        f"warning: {_told(metrics, lost)} of {'about ' if interval else ''}{due:,} "
        f"{_results(due)} {_were(lost)} lost, since {amount(metrics.shed, 'row')} "
        f"{_were(metrics.shed)} dropped to keep within --memory{advice}",
        "bold yellow",
    )


def _recall(metrics: Metrics, due: int) -> str:
    """Rounded down: it is 100.0% only if nothing is lost."""
    return f"{metrics.produced * 1000 // due / 10 if due else 100.0:.1f}%"


def _lost_and_due(metrics: Metrics) -> tuple[int, int]:
    assert metrics.lost is not None, "the command always has losses counted"
    return metrics.lost, metrics.produced + metrics.lost


def _results(count: int) -> str:
    return "result" if count == 1 else "results"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _told(metrics: Metrics, lost: int) -> str:
    if metrics.lost_interval is None:
        return f"{lost:,}"
    low, high = metrics.lost_interval
    return f"about {lost:,} ({low:,} to {high:,})"
