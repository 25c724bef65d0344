"""The definition of punctuations, in plain Python: which are kept, and what follows from them.

A promise (stream, key, at) of a step says that in no later step the stream brings a tuple of the
key with a time of `at` or later. It holds for good once the join's watermark is at `at` or past it.
Of n streams then a live tuple can go, and a key is over, as docs/semantics.md says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from support.oracle import PRESERVED, OracleStream, Outcome, Row, Step, answer, ends

Key = object
KEYS = range(5)  # that rows may have


@dataclass(frozen=True)
class Promise:
    """A punctuation; is_row: a marked row of the stream, whose time moves the watermark. up_to: if
    it is about a range, its other end."""

    step: int
    stream: str
    key: Any
    at: int
    is_row: bool = False
    up_to: Any = None

    def covers(self, key: Any) -> bool:
        """Whether it is about a key."""
        return bool(self.key <= key <= (self.key if self.up_to is None else self.up_to))


@dataclass
class Kept:
    """After a step: the keys that are over and told so far, the live tuples of each stream, and
    those that had come and have expired."""

    told: set[Key] = field(default_factory=set)
    live: dict[str, list[Row]] = field(default_factory=dict)
    expired: list[Row] = field(default_factory=list)


def dropped(
    streams: Sequence[OracleStream],
    steps: Sequence[Step],
    clocked: Sequence[Step],
    bad_of: Callable[[int, str, list[Row]], list[Row]],
) -> tuple[list[Step], dict[str, list[Row]]]:
    """Steps without the rows that break a promise, and these rows: they move the watermark and do
    nothing else. Late rows are late, and break nothing. clocked: the steps as the clock sees them.
    bad_of: which rows of a step and a stream break one, of those that are not late."""
    outcomes = answer(streams, clocked)
    broken: dict[str, list[Row]] = {stream.name: [] for stream in streams}
    left = []
    for number, step in enumerate(steps):
        rows, moved = {}, {}
        for name, of_stream in step.rows.items():
            (lateness_us,) = (each.lateness_us for each in streams if each.name == name)
            late = [row["id"] for row in outcomes[number].late[name]]
            bad = bad_of(number, name, [row for row in of_stream if row["id"] not in late])
            broken[name] += bad
            rows[name] = [row for row in of_stream if row not in bad]
            if bad:
                moved[name] = max(row["ts"] for row in bad) - lateness_us
        left.append(Step(rows, moved, at=step.at))
    return left, broken


def once(
    streams: Sequence[OracleStream], steps: Sequence[Step], unique: str
) -> tuple[list[Step], list[Row]]:
    """Steps with the first row of each key only of one stream, and the others: the first to arrive,
    and in one step the first in time, then in order."""
    seen: set[Key] = set()

    def bad_of(_: int, name: str, rows: list[Row]) -> list[Row]:
        bad = []
        for row in sorted(rows, key=lambda row: row["ts"]) if name == unique else ():
            if row["k"] in seen:
                bad.append(row)
            seen.add(row["k"])
        return bad

    left, broken = dropped(streams, steps, steps, bad_of)
    return left, broken[unique]


@dataclass(frozen=True)
class Promised:
    """Streams, steps and promises. Rows have `ts`, `k` and `id`."""

    streams: Sequence[OracleStream]
    steps: Sequence[Step]
    promises: Sequence[Promise]
    how: str = "inner"

    def breaks(self, stream: str, row: Row, step: int) -> bool:
        """Whether a row of a step breaks a promise of one before."""
        return any(
            each.stream == stream
            and each.step < step
            and each.covers(row["k"])
            and row["ts"] >= each.at
            for each in self.promises
        )

    @property
    def clocked(self) -> list[Step]:
        """The steps as the clock sees them: a marked row moves the watermark of its stream."""
        clocked = []
        for number, step in enumerate(self.steps):
            moved = dict(step.advance)
            for stream in self.streams:
                times = [
                    each.at - stream.lateness_us
                    for each in self.promises
                    if each.step == number and each.is_row and each.stream == stream.name
                ]
                if times:
                    moved[stream.name] = max([*times, moved.get(stream.name, times[0])])
            clocked.append(Step(step.rows, moved, at=step.at))
        return clocked

    def without_broken(self) -> tuple[Promised, dict[str, list[Row]]]:
        """The same without the rows that break a promise, which are given too."""
        steps, broken = dropped(
            self.streams,
            self.steps,
            self.clocked,
            lambda step, name, rows: [row for row in rows if self.breaks(name, row, step)],
        )
        return Promised(self.streams, steps, self.promises, self.how), broken

    def answer(self) -> list[Outcome]:
        """What the join answers: that of the oracle, who knows of no promises."""
        return answer(self.streams, self.clocked, how=self.how)

    def kept(self, lag: int = 0) -> list[Kept]:
        """What holds after each step. lag: how many steps the watermark is behind."""
        outcomes = self.answer()
        matches = answer(self.streams, self.clocked)
        met: set[object] = set()  # tuples that semi and anti joins have done with
        kept, told = [], set[Key]()
        arrived: dict[str, list[Row]] = {stream.name: [] for stream in self.streams}
        for number, step in enumerate(self.steps):
            watermark = outcomes[number - lag].watermark if number >= lag else -inf
            for name, rows in step.rows.items():
                late = [row["id"] for row in outcomes[number].late[name]]
                arrived[name] += [row for row in rows if row["id"] not in late]
            if self.how in ("semi", "anti"):
                met |= {rows[0]["id"] for rows, _ in matches[number].results if rows[0]}
            held = {
                stream.name: [
                    row
                    for row in arrived[stream.name]
                    if ends(stream, row["ts"]) >= watermark and row["id"] not in met
                ]
                for stream in self.streams
            }
            closed = {
                stream.name: {
                    key
                    for key in KEYS
                    for each in self.promises
                    if each.stream == stream.name and each.step <= number and each.at <= watermark
                    if each.covers(key)
                }
                for stream in self.streams
            }
            over = {
                key
                for keys in closed.values()
                for key in keys
                if all(key in of for of in closed.values())
                or any(
                    key in closed[name] and all(row["k"] != key for row in held[name])
                    for name in closed
                )
            }
            preserved = [self.streams[which].name for which in PRESERVED.get(self.how, ())]
            told |= {key for key in over if all(key in closed[name] for name in preserved)}
            live = {
                name: [
                    row
                    for row in rows
                    if row["k"] not in over
                    and not all(row["k"] in closed[other] for other in held if other != name)
                ]
                for name, rows in held.items()
            }
            expired = [
                row
                for stream in self.streams
                for row in arrived[stream.name]
                if ends(stream, row["ts"]) < watermark
            ]
            kept.append(Kept(set(told), live, expired))
        return kept
