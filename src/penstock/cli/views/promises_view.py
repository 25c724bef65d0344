"""What `penstock profile` says of promises: which of them streams keep, and what to write."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from penstock.cli.views.display import say
from penstock.runtime.promise_profile import PossiblePromise, PromiseProfile

__all__ = ["show_promises"]


def show_promises(out: Console, promises: PromiseProfile) -> None:
    """The promises that streams could make; nothing if a join could use none."""
    if not promises.possible:
        return
    say(out, "\nwhat streams could promise")
    out.print(_table(promises))
    cut = [each.tuples for each in promises.possible if each.is_cut]
    if cut:
        say(out, f"only a sample was looked at: the first {max(cut):,} tuples of a file")
    if not promises.hints:
        return
    where = "this sample" if cut else "these files"
    say(out, f"write, if you know that what holds in {where} always will:")
    for hint in promises.hints.values():
        say(out, f"  {hint}")
    if promises.live is not None and promises.live_proposed is not None:
        held, whole = _number(promises.live_proposed), _number(promises.live)
        say(out, f"the windows then hold {held} tuples on average instead of {whole}")


def _table(promises: PromiseProfile) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for column in ("stream", "promise", "broken by"):
        table.add_column(column, overflow="fold")
    if promises.live is not None:
        table.add_column("live tuples, on average", justify="right", overflow="fold")
    for each in promises.possible:
        row = [each.stream, each.promise, _broken(each)]
        if promises.live is not None:
            row.append(_saved(each, promises.live))
        table.add_row(*row)
    return table


def _broken(each: PossiblePromise) -> str:
    if not each.broken:
        return f"none of {each.tuples:,}"
    return f"{each.broken:,} of {each.tuples:,} ({each.broken / each.tuples:.2%})"


def _saved(each: PossiblePromise, live: float) -> str:
    if each.live is None:
        return "-"
    return f"{_number(each.live)} of {_number(live)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"
