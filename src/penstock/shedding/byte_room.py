"""How many tuples fit into a limit in bytes, with the ghosts of those that do not.

Rings and directories have sizes that are powers of two, and columns may be of any width: what is
held does not follow from the number of tuples alone. So before each chunk `fitting` works out how
many there may be such that all of it stays within the limit, from what tuples and ghosts take now
and how they are divided among the streams. Kernels then shed after each instant, as they do for a
limit in rows: no more goes than has to.

While all that is there and all of the chunk fits, nothing goes: then room is worked out for just
these. When tuples have to go, there must be room for their ghosts, or nobody would know what the
limit costs: for as many as there are and will be, up to one for every two tuples, or an eighth of
the memory if tuples are wide. What the tuples leave, for the size of a ring, is for more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from penstock.kernels.index.directory import directory_size
from penstock.windows.footprint import ring_size
from penstock.windows.windows import Windows

__all__ = ["FEW_GHOSTS", "ByteRoom", "Fitting"]

FEW_GHOSTS: Final = 64
_TUPLES_A_GHOST: Final = 2
_MOST_GHOSTS: Final = 4  # for each tuple
_GHOSTS_PART: Final = 8  # of a limit, what ghosts may take in any case
_GROWTH: Final = 4  # ghosts come to be more by a part of what they are, before the next chunk
_INDEXED: Final = 2  # entries of a directory for a key, about
_SPARE_BYTES: Final = 2048  # parts of an arena begin at whole cache lines
_ROUNDED_UP: Final = 1.4  # a ring over what it has to hold, on average
_EXACT: Final = 7  # a number is found to one part in 2 to the power of this


class Fitting(NamedTuple):
    """How many tuples and ghosts there may be."""

    rows: int
    ghosts: int


class ByteRoom:
    """For one join. A slot is a place in a ring, with all that it has elsewhere."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.has_shed = False
        self._in_arena = [windows.footprint.slot_bytes(each) for each in range(windows.count)]
        self._entry = windows.footprint.entry_bytes
        self._fixed = windows.footprint.fixed_bytes + _SPARE_BYTES
        self._last = Fitting(0, 0)

    def fitting(self, limit: int, coming: Mapping[int, int]) -> Fitting:
        """What fits. coming: how many tuples of each stream are in the next chunk."""
        windows, streams = self.windows, self.windows.streams
        windows.most_keys = {}
        self.has_shed |= bool(windows.state.quotas["shed"].any())
        live = [windows.live(number) for number in range(windows.count)]
        slots = [
            in_arena + (0 if payload is None else payload.nbytes / windows.size(number))
            for number, (in_arena, payload) in enumerate(
                zip(self._in_arena, windows.payloads, strict=True)
            )
        ]
        held, keys = sum(live), windows.footprint.live_keys.values()
        ahead = [coming.get(number, 0) for number in range(streams)]
        # Before any tuple came they are taken to be divided as the chunk is.
        parts = _parts(live[:streams] if sum(live[:streams]) else ahead)
        of_ghosts = _parts([each + 1 for each in live[streams:]])

        def directories(count: int) -> float:
            distinct = (known * count // held if held else count for known in keys)
            return self._entry * sum(windows.footprint.directory_size(each) for each in distinct)

        def tuples(rows: int) -> float:
            return sum(
                slot * ring_size(int(rows * part) + more)
                for slot, part, more in zip(slots, parts, ahead, strict=False)
            )

        def ghosts(count: int) -> float:
            return sum(
                slot * ring_size(int(count * part) + 1)
                for slot, part in zip(slots[streams:], of_ghosts, strict=True)
            )

        a_ghost = sum(slot * part for slot, part in zip(slots[streams:], of_ghosts, strict=True))
        least = ghosts(0)

        of_shed = sum(live[streams:])
        awaited = of_shed * (_GROWTH + 1) // _GROWTH + sum(ahead) + FEW_GHOSTS
        if windows.count == streams:
            awaited = 0
        by_part = int(limit // _GHOSTS_PART / (_ROUNDED_UP * a_ghost + _INDEXED * self._entry))

        def with_rows(rows: int) -> float:
            left = min(max(rows // _TUPLES_A_GHOST, by_part), awaited) if self.has_shed else 0
            of_them = max(left * a_ghost * _ROUNDED_UP, least)
            return self._fixed + tuples(rows) + of_them + directories(rows + left)

        if not of_shed and self._holds_all(limit, slots, live, ahead):
            few = max(self._last.ghosts, FEW_GHOSTS)
            return Fitting(sum(live[:streams]) + sum(ahead), few)
        rows = _largest(with_rows, limit, limit, self._last.rows)
        base = self._fixed + tuples(rows)
        most = _MOST_GHOSTS * rows
        left = _largest(
            lambda count: base + ghosts(count) + directories(rows + count),
            limit,
            most,
            self._last.ghosts,
        )
        self._last = Fitting(rows, max(left, FEW_GHOSTS))
        return self._last

    def _holds_all(self, limit: int, slots: list[float], live: list[int], ahead: list[int]) -> bool:
        """Whether nothing has to go for a chunk with `ahead` tuples of each stream, if they bring
        new keys at the rate at which those that are there did."""
        windows = self.windows
        coming = ahead + [0] * (windows.count - len(ahead))
        rings = self._fixed + sum(
            slot * ring_size(count + more)
            for slot, count, more in zip(slots, live, coming, strict=True)
        )
        held, more = sum(live), sum(ahead)
        entries = (limit - rings) / self._entry
        keys = {
            number: known + (known * more // held if held else more)
            for number, known in windows.footprint.live_keys.items()
        }
        needed = sum(directory_size(each, tight=True) for each in keys.values())
        if needed > entries:
            return False
        # Near the limit there is less to spare in them, and they are made anew the more often.
        spared = {number: int(each * entries / needed) for number, each in keys.items()}
        windows.most_keys.update(spared)
        return True


def _parts(counts: list[int]) -> list[float]:
    total = max(sum(counts), 1)
    return [count / total for count in counts]


def _largest(needed: Callable[[int], float], limit: int, most: int, guess: int) -> int:
    """About the largest number, up to `most`, that does not need more than the limit. If a guess is
    about that, it is taken: numbers that change a little all the time would cost tuples."""
    least = 0
    if 0 < guess < most:
        step = max(guess >> _EXACT, 1)
        if needed(guess) <= limit:
            if needed(guess + step) > limit:
                return guess
            least = guess
        else:
            most = guess
            least = guess - step if needed(guess - step) <= limit else 0
    if needed(most) <= limit:
        return most
    while most - least > max(least >> _EXACT, 1):
        middle = (least + most) // 2
        least, most = (middle, most) if needed(middle) <= limit else (least, middle)
    return least
