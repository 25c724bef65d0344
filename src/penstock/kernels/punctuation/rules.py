"""What follows from closed keys, row by row of their table: see `engine.promises.promises`.

Each takes the rows of keys as they are asked for, in which FREE stands for a key that nobody has
closed, and goes through them once.
"""

from __future__ import annotations

from typing import Any

from penstock.kernels.arena import Flags, Words
from penstock.kernels.jit import kernel
from penstock.kernels.punctuation.key_rows import FREE, NEVER

__all__ = ["are_broken", "die", "need_not_stay", "note", "settle", "take_told"]


@kernel
def are_broken(table: Any, stream: int, rows: Words, ts: Words, out: Words) -> int:
    """Write which tuples of a stream, with the keys of these rows, it had promised not to bring;
    return how many they are."""
    count = 0
    for each in range(len(rows)):
        row = rows[each]
        if row != FREE and (table.at[stream, row] <= ts[each] or table.came[stream, row]):
            out[count] = each
            count += 1
    return count


@kernel
def _others_closed(table: Any, stream: int, row: int, passed: int) -> bool:
    for other in range(len(table.at)):
        if other != stream and table.at[other, row] > passed:
            return False
    return True


@kernel
def need_not_stay(table: Any, stream: int, rows: Words, passed: int, out: Flags) -> int:
    """Write whether nothing that comes can meet a tuple of a stream with the keys of these rows;
    return of how many that is so."""
    count = 0
    for each in range(len(rows)):
        row = rows[each]
        out[each] = row != FREE and (table.dead[row] or _others_closed(table, stream, row, passed))
        count += out[each]
    return count


@kernel
def note(table: Any, asked: Any, rows: Words, at: Words, out: Words) -> int:
    """Have a stream close keys from these times on; asked: the stream, and whether each has one
    tuple in it, which has come. Write the rows of those that it had not, or not
    from so early on; from when on; and which of them it had not. Return how many they are."""
    stream, is_single = asked
    count = 0
    for each in range(len(rows)):
        row = rows[each]
        if row == FREE:
            continue
        table.came[stream, row] |= is_single
        if at[each] >= table.at[stream, row]:
            continue
        out[0, count], out[1, count] = row, at[each]
        out[2, count] = table.at[stream, row] == NEVER
        table.at[stream, row] = at[each]
        count += 1
    return count


@kernel
def settle(table: Any, asked: Any, rows: Words, last: Words, out: Words, counts: Words) -> None:
    """A stream has closed keys, and holds its last tuple of each until `last`; asked: the stream,
    and the time that has been passed. What cannot be met any more is dead.

    out[s, :counts[s]]: rows whose tuples in stream s can go. Of the two behind these, of keys that
    are not dead: rows, and when the last tuple has left. The last of counts: how many have died.
    """
    stream, passed = asked
    streams = len(table.at)
    for each in range(len(rows)):
        row = rows[each]
        if table.dead[row]:
            continue
        still_open, which = 0, 0
        for other in range(streams):
            if table.at[other, row] > passed:
                still_open += 1
                which = other
        is_over = still_open == 0 or last[each] < passed
        for other in range(streams):
            # Of two streams the other let its tuples go when this one closed the key.
            by_end = is_over and other != stream and streams > 2
            if still_open == 0 or (still_open == 1 and which == other) or by_end:
                out[other, counts[other]] = row
                counts[other] += 1
        if is_over:
            table.dead[row] = True
            counts[streams + 1] += 1
        else:
            out[streams, counts[streams]] = row
            out[streams + 1, counts[streams]] = last[each] + 1
            counts[streams] += 1


@kernel
def die(table: Any, rows: Words, out: Words) -> int:
    """Mark keys as dead; write those that were not, and return how many."""
    count = 0
    for row in rows:
        if not table.dead[row]:
            table.dead[row] = True
            out[count] = row
            count += 1
    return count


@kernel
def take_told(table: Any, preserved: Words, rows: Words, passed: int, out: Words) -> int:
    """Mark dead keys as given out of which nothing can come out alone: those that all the preserved
    streams have closed. Write those that were not, and return how many."""
    count = 0
    for row in rows:
        is_over = table.dead[row] and not table.told[row]
        for stream in preserved:
            is_over = is_over and table.at[stream, row] <= passed
        if is_over:
            table.told[row] = True
            out[count] = row
            count += 1
    return count
