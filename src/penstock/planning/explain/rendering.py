"""An explanation as text: tables for a terminal, or plain lines for everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import StringIO
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from penstock.planning.assumed import ROW_BYTES
from penstock.planning.explain.rate_shift import FARTHEST, MOST_STREAMS

if TYPE_CHECKING:
    from penstock.planning.explain.explanation import Alternative, Explanation
    from penstock.planning.punctuated import PunctuatedWindow

__all__ = ["as_text", "difference", "rendered", "shown_cost", "shown_ratio"]

_WIDTH: Final = 100
_WORDS_OF_EXPIRE: Final = {
    "eager": "eager", "on_probe": "on probe", "periodic": "once a second",
}  # fmt: skip


def as_text(explanation: Explanation) -> str:
    """Without colours, and without blanks at the ends of lines."""
    file = StringIO()
    plain = Console(
        file=file, width=_WIDTH, color_system=None, highlight=False, markup=False, emoji=False
    )
    plain.print(rendered(explanation))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def rendered(explanation: Explanation) -> RenderableType:
    """What a console prints."""
    return Group(
        _headline(explanation),
        *_part("the plan", _plan(explanation)),
        *_part("what it costs", _costs(explanation)),
        *_part("runners-up", _runners_up(explanation)),
        *_part("where the plan would change", _crossovers(explanation)),
        *_part("what the windows keep", _punctuated(explanation)),
        *_part("the rest", _rest(explanation)),
    )


def shown_cost(cost: float, unit: str) -> str:
    """A cost for people; of time, in a unit that suits it."""
    if unit in ("tuples", "units"):
        return f"{cost:,.4g} {unit}" if cost < 1e6 else f"{cost:,.0f} {unit}"
    seconds = cost * 1e-9 if unit == "ns" else cost
    for name, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:,.4g} {name}"
    return f"{seconds / 1e-9:.4g} ns"


def shown_ratio(ratio: float) -> str:
    """Of two rates."""
    return f"{ratio:.3g}" if ratio < 1_000 else f"{ratio:,.0f}"


def _part(title: str, body: RenderableType | None) -> list[RenderableType]:
    if body is None:
        return []
    return [Text(), Text(title, "bold"), Padding(body, (0, 0, 0, 1), expand=False)]


def _headline(explanation: Explanation) -> Text:
    cost = shown_cost(explanation.cost, explanation.unit)
    text = Text.assemble((cost, "bold green"), " for each second of event time")
    if explanation.unit == "ns":
        text.append(f", {explanation.cost / 1e7:.2g} % of one core")
    text.append(f"; weights {explanation.weights!r}")
    if explanation.unit == "ns":
        text.append(
            "\nof windows and indexes: reading input and writing results come on top", "dim"
        )
    if explanation.is_assumed:
        text.append("\nno workload was given: equal rates and large windows are assumed", "yellow")
    return text


def _table(*columns: str, right: int = 0) -> Table:
    """right: from which column on numbers stand."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place >= right else "left", overflow="fold")
    return table


def _plan(explanation: Explanation) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for column, justify in (
        ("stream", "left"), ("rate", "right"), ("window", "left"), ("tuples", "right"),
        ("index", "left"), ("its arrivals probe", "left"),
    ):  # fmt: skip
        table.add_column(column, justify="right" if justify == "right" else "left")
    for name in explanation.indexes:
        table.add_row(
            name,
            "assumed" if explanation.is_assumed else f"{_number(explanation.rates[name])}/s",
            explanation.windows[name],
            _number(explanation.tuples[name]),
            Text(_index(explanation.indexes[name]), "bold"),
            ", ".join(explanation.orders[name]),
        )
    return table


def _costs(explanation: Explanation) -> Table:
    table = _table("window", "probe", "insert", "expire", "in all", right=1)
    parts = list(explanation.breakdown.values())
    rows = list(explanation.breakdown.items())
    for name, part in rows:
        values = (part.probe, part.insert, part.expire, part.total)
        table.add_row(name, *(shown_cost(each, explanation.unit) for each in values))
    values = (
        sum(each.probe for each in parts),
        sum(each.insert for each in parts),
        sum(each.expire for each in parts),
        explanation.cost,
    )
    table.add_row(Text("in all", "dim"), *(shown_cost(each, explanation.unit) for each in values))
    return table


def _runners_up(explanation: Explanation) -> Table | None:
    if not explanation.runners_up:
        return None
    table = _table("instead", "cost", "times", right=1)
    for each in explanation.runners_up:
        times = each.cost / explanation.cost if explanation.cost else 1.0
        table.add_row(
            difference(explanation, each),
            shown_cost(each.cost, explanation.unit),
            f"{times:,.2f}" if times < 1000 else f"{times:,.0f}",
        )
    return table


def difference(explanation: Explanation, other: Alternative) -> str:
    """What another plan has that the chosen one has not."""
    changes = [
        f"{_index(index)} on {name}"
        for name, index in other.indexes.items()
        if index != explanation.indexes[name]
    ]
    changes += [
        f"{name} probes {', '.join(order)}"
        for name, order in other.orders.items()
        if order != explanation.orders[name]
    ]
    return "; ".join(changes)


def _crossovers(explanation: Explanation) -> RenderableType | None:
    if not explanation.crossovers:
        many = len(explanation.indexes) > MOST_STREAMS
        return Text(f"not looked for with more than {MOST_STREAMS} streams") if many else None
    table = _table("rates", "now", "at", "then", right=1)
    table.columns[3].justify = "left"
    for each in explanation.crossovers:
        turns = [
            (ratio, then)
            for ratio, then in ((each.below, each.then_below), (each.above, each.then_above))
            if ratio is not None and then is not None
        ]
        rates = f"{each.streams[0]} / {each.streams[1]}"
        if not turns:
            table.add_row(
                rates, shown_ratio(each.ratio), "never", f"(not within a factor of {FARTHEST:,.0f})"
            )
        for place, (ratio, then) in enumerate(turns):
            first = (rates, shown_ratio(each.ratio)) if place == 0 else ("", "")
            table.add_row(*first, shown_ratio(ratio), difference(explanation, then))
    return table


def _punctuated(explanation: Explanation) -> RenderableType | None:
    if explanation.punctuated is None:
        return None
    windows = explanation.punctuated
    table = _table("window", "tuples", "keys", "closed in a second by", right=1)
    table.columns[3].justify = "left"
    for column in ("closed", "expected", "live now"):
        table.add_column(column, justify="right")
    for name, each in windows.items():
        closing = (f"{other} {_or_unknown(rate)}" for other, rate in each.closing.items())
        table.add_row(
            name,
            _number(each.tuples),
            _or_unknown(each.keys),
            ", ".join(closing) or "none",
            "unknown" if each.closed is None else f"{each.closed:.0%}{'*' * each.is_clamped}",
            _or_unknown(each.expected),
            "" if each.live is None else f"{each.live:,}",
        )
    if all(each.live is None for each in windows.values()):
        table.columns.pop()
    return Group(table, *(Text(note, "dim") for note in _notes(windows)))


def _notes(windows: Mapping[str, PunctuatedWindow]) -> Iterator[str]:
    """What is wrong with an estimate, and what to do."""
    if any(each.is_clamped for each in windows.values()):
        yield (
            "* clamped, for the estimate would be below 0: in the time of the window more keys are "
            "closed than it has"
        )
    unknown = {
        other for each in windows.values() for other, rate in each.closing.items() if rate is None
    }
    if unknown:
        names = ", ".join(sorted(unknown))
        yield f"how often {names} promises is not known: give punctuation_rates="
    if any(each.closed is None and each.keys is None for each in windows.values()):
        yield "how many keys a window has is not known: give distinct="


def _or_unknown(value: float | None) -> str:
    return "unknown" if value is None else _number(value)


def _rest(explanation: Explanation) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    ways = [
        f"{_WORDS_OF_EXPIRE[mode]} {shown_cost(cost, explanation.unit)}"
        for mode, cost in explanation.expire_costs.items()
        if mode != explanation.expire
    ]
    leaves = f"{explanation.expire}ly; the plan would cost {', '.join(ways)}"
    never = all(window.is_endless for window in explanation.case.query.windows)
    table.add_row("tuples leave", "never" if never else leaves)
    where = explanation.partitioning
    count = {0: "", 1: ", one bucket for each shuffle partition"}.get(
        where.buckets, f", {where.buckets} buckets for each shuffle partition"
    )
    table.add_row("on Spark", f"{where.how}{count}: {where.reason}")
    rows, size = sum(explanation.live_rows.values()), sum(explanation.live_bytes.values())
    table.add_row(
        "kept",
        f"{_number(rows)} rows, {_size(size)} with rings and indexes{_each(explanation)}"
        f"{_widths(explanation)}",
    )
    for name, share in (explanation.budget or {}).items():
        kept = f"{_number(share.rows)} of {_number(share.wanted_rows)} rows"
        dealt = f"{_number(share.rate)} of {_number(share.wanted_rate)} tuples/s"
        table.add_row(f"{name} gets", f"{kept}, {dealt}")
    return table


def _each(explanation: Explanation) -> str:
    parts = [
        f"{name} {_number(rows)}, {_size(explanation.live_bytes[name])}"
        for name, rows in explanation.live_rows.items()
    ]
    return f" ({'; '.join(parts)})"


def _widths(explanation: Explanation) -> str:
    """What is assumed of rows whose width is not known."""
    if explanation.case.workload.row_bytes is not None and not explanation.is_assumed:
        return ""
    return f", at {ROW_BYTES:.0f} bytes a row, which is assumed"


def _index(index: str | tuple[str, ...]) -> str:
    return index if isinstance(index, str) else " + ".join(index)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def _size(size: float) -> str:
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= step:
            return f"{size / step:,.1f} {unit}"
    return f"{size:,.0f} B"
