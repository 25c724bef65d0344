"""Whether tuples that a user describes were in their windows at the latest of them.

Of windows that count, what has left is not remembered: then it can be not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from penstock.model.duration import format_us
from penstock.model.query import Query
from penstock.model.window import SinceWindow, UnboundedWindow
from penstock.runtime.why.tuple import Described, Known

__all__ = ["Told", "told_of_windows"]

Told = tuple[bool | None, str]  # whether it holds, None when that is not known; and why


def told_of_windows(query: Query, tuples: Sequence[Described], watermark: int) -> list[Told]:
    """One sentence for each tuple but the latest; one for bounds on a difference."""
    timed = sorted((each for each in tuples if each.ts is not None), key=_turn)
    if query.between is not None:
        return [_in_bounds(query, timed)] if len(timed) > 1 else []
    told = [_told(each, timed[-1], watermark) for each in timed]
    return [each for each in told if each is not None]


def _told(each: Described, latest: Described, watermark: int) -> Told | None:
    window = each.window
    if isinstance(window, SinceWindow):
        inside = _ts(each) >= window.begin_us
        begin = str(window).removeprefix("since ")
        text = f"{each.stream} is not before the begin of its window, {begin}"
        return (True, text) if inside else None  # else what became of it says so
    if each is latest:
        return None
    if window.rows:
        return _in_rows(each, latest, watermark)
    if window.arrivals:
        return _in_arrivals(each, latest)
    near = _ts(latest) <= window.ends(_ts(each))
    how_far = f"{each.stream} is {_before(_ts(latest) - _ts(each))} {latest.stream}"
    if window.slot_us:
        slot = "the same slot" if near else "an earlier slot"
        return near, f"{how_far}, in {slot} of {format_us(window.slot_us)}"
    if isinstance(window, UnboundedWindow):
        return near, f"{how_far}, and its window is unbounded"
    return near, f"{how_far}, {'within' if near else 'outside'} its window of {window}"


def _in_bounds(query: Query, timed: Sequence[Described]) -> Told:
    first, second = sorted(timed, key=lambda each: each.number)
    difference = _ts(second) - _ts(first)
    near = -second.window.length_us <= difference <= first.window.length_us
    how_far = f"{format_us(abs(difference))} {'after' if difference > 0 else 'before'}"
    how_far = how_far if difference else "at the same time as"
    assert query.between is not None
    least, greatest = query.between
    closed = "" if query.closed == "both" else f" (closed: {query.closed})"
    return near, (
        f"{second.stream} is {how_far} {first.stream}, {'within' if near else 'outside'} the "
        f"bounds of {least} to {greatest}{closed}"
    )


def _in_rows(each: Described, latest: Described, watermark: int) -> Told | None:
    """By the tuples of its stream that came after it, and not after the latest."""
    if each.index is None and each.fate is not Known.LEFT:
        return None
    line, window = each.line, each.window
    ties: Literal["left", "right"] = "right" if each.number < latest.number else "left"
    begin = 0 if each.index is None else each.index + 1
    end = int(np.searchsorted(line.ts, [_ts(latest)], side=ties)[0])
    newer = int(each.of_key[begin:end].sum()) if window.per_key else max(end - begin, 0)
    came = f"{newer or 'no'} newer {'one' if newer == 1 else 'ones'} came before that"
    at = f"in its window of {window} at {latest.stream}"
    if newer >= window.rows:
        return False, f"{each.stream} was not {at}: {came}"
    if each.index is None:
        return None, _forgotten(each, latest)
    if _ts(latest) >= watermark:
        return None, f"{each.stream} is {at} so far: {came}, and more may come"
    return True, f"{each.stream} was {at}: {came}"


def _in_arrivals(each: Described, latest: Described) -> Told | None:
    """By the places of both among all arrivals, as far as they are known."""
    window, fates = each.window, (each.fate, latest.fate)
    if each.index is None or latest.index is None:
        if fates == (Known.LEFT, Known.WAITING):
            far = f"more than {window} before {latest.stream}"
            return False, f"{each.stream} is {far}, outside its window"
        return (None, _forgotten(each, latest)) if Known.LEFT in fates else None
    count = int(latest.line.places[latest.index] - each.line.places[each.index])
    near = count <= window.arrivals
    far = f"{each.stream} is {count} arrival{'' if count == 1 else 's'} before {latest.stream}"
    if near and latest.fate is Known.WAITING:
        return None, f"{far} so far, within its window of {window}; more may come between them"
    return near, f"{far}, {'within' if near else 'outside'} its window of {window}"


def _forgotten(each: Described, latest: Described) -> str:
    gone = each if each.index is None else latest
    return (
        f"{gone.stream} has left its window of {gone.window}; whether {each.stream} was in its "
        f"window at {latest.stream} is no longer known"
    )


def _before(distance_us: int) -> str:
    return f"{format_us(distance_us)} before" if distance_us else "at the same time as"


def _turn(each: Described) -> tuple[int, int]:
    return _ts(each), each.number


def _ts(each: Described) -> int:
    assert each.ts is not None
    return each.ts
