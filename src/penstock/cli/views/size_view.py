"""What `penstock size` shows: a table of memories, a small picture, and the limits to copy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from penstock.cli.views.display import say
from penstock.cli.views.sparkline import sparkline
from penstock.lab.sizing.ceiling import Ceiling, Least
from penstock.lab.sizing.intervals import recall_at
from penstock.lab.sizing.policy_curve import Enough
from penstock.lab.sizing.sizing import Sizing
from penstock.model.amount import amount

__all__ = ["as_json", "limits_block", "show"]

_PARTS: Final = np.arange(1, 11) / 10  # of the exact need, in the small picture
_KNOWN: Final = 0.95  # of what is enough: if less is too little, both are shown
_FEW_RESULTS: Final = 100
_MIB: Final = 1 << 20


def show(console: Console, found: Sizing) -> None:
    """Everything, for people."""
    about = "" if found.sampled_rows is None else "about "
    say(console, f"results     {about}{found.results:,} of the exact join")
    say(
        console,
        f"exact need  {about}{found.need:,} of {amount(found.rows, 'row')} live at once, about "
        f"{_size(found.need_bytes)}",
    )
    if found.sampled_rows is not None:
        say(
            console,
            f"sample      {amount(found.sampled_rows, 'row')}: of "
            f"{amount(found.heavy_keys, 'heavy key')} all, of the others a part",
        )
    if short := _too_short(found):
        say(console, f"note        {short}")
    console.print()
    console.print(_table(found))
    say(console, " in brackets: the part of the exact need; recall: at 10%, 20%, ... of it")
    if found.sampled_rows is not None:
        say(console, " below each memory: its 95% interval")
    if found.no_ceiling is not None:
        say(console, f" no optimum: {found.no_ceiling}")
    console.print()
    say(console, limits_block(found))


def _too_short(found: Sizing) -> str | None:
    """Why the recording says little about the streams, if it does."""
    if found.need > found.rows / 2:
        return "the recording is hardly longer than the windows; record several windows' time"
    if found.results < _FEW_RESULTS:
        return f"{amount(found.results, 'result')} are few to go by; record for longer"
    return None


def percent(part: float) -> str:
    """90%, 99.5%."""
    return f"{100 * part:.6g}%"


def limits_block(found: Sizing) -> str:
    """The limits for a job file, and what is to be known of them."""
    chosen = found.recommendation
    if chosen is None:
        return f"# no policy has a recall of {percent(found.recommend_for)}"
    what = f"# for {percent(chosen.recall)} of the results"
    if found.sampled_rows is not None:
        what += ", with the upper end of the interval"
    return f"{what}\n{chosen.to_yaml()}"


def _table(found: Sizing) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("rows for", no_wrap=True)
    for recall in found.recalls:
        table.add_column(percent(recall), justify="right", no_wrap=True)
    table.add_column("recall", no_wrap=True)
    chosen = None if found.recommendation is None else found.recommendation.shed
    for curve in found.curves:
        memories = [each.memory for each in curve.points]
        table.add_row(
            curve.policy,
            *(_memory(each, found.need) for each in curve.enough),
            _picture(memories, [each.recall for each in curve.points], found.need),
            style="bold" if curve.policy == chosen else "",
        )
    if found.ceiling is not None:
        table.add_row(
            "the optimum",
            *(_least(each, found.need) for each in found.ceiling.least),
            _ceiling_picture(found.ceiling, found.need),
            style="italic",
        )
    return table


def _memory(enough: Enough | None, need: int) -> str:
    if enough is None:
        return "-"
    told = f"{enough.memory:,} ({enough.memory / max(need, 1):.0%})"
    if enough.interval is not None:
        low, high = enough.interval
        told += f"\n{low:,.0f}-{high:,.0f}"
    return told


def _least(least: Least, need: int) -> str:
    """The least that is known to be enough; where only bounds are known, both."""
    if least.enough is None:
        return "-"
    if least.too_little < _KNOWN * least.enough:
        return f"{least.too_little:,}-{least.enough:,}"
    return f"{least.enough:,} ({least.enough / max(need, 1):.0%})"


def _picture(memories: Sequence[float], recalls: Sequence[float], need: int) -> str:
    at = np.array([0.0, *memories]), np.array([0.0, *recalls])
    return sparkline([recall_at(*at, part * need) for part in _PARTS])


def _ceiling_picture(ceiling: Ceiling, need: int) -> str:
    points = [(each.memory, each.upper) for each in ceiling.points] + [(need, 1.0)]
    memories, recalls = zip(*points, strict=True)
    return _picture(memories, recalls, need)


def _size(count: int) -> str:
    return f"{count / _MIB:,.1f} MiB" if count >= _MIB else f"{count / 1024:,.1f} KiB"


def as_json(found: Sizing) -> str:
    """Everything, for programs."""
    plain: dict[str, Any] = asdict(found)
    if found.recommendation is not None:
        plain["recommendation"]["limits"] = {
            "memory": f"{found.recommendation.memory} rows",
            "shed": found.recommendation.shed,
            **(
                {} if found.recommendation.pool == "shared" else {"pool": found.recommendation.pool}
            ),
        }
    return json.dumps(plain, indent=2)
