"""Which promises the tuples of streams keep, and what a join would save by them.

`unique`, `clustered` and `increasing` are looked at for each stream: how many of its tuples would
break them and, of those that none breaks, how many tuples all windows would hold on average. The
count is exact (runtime.lifetimes), over the first tuples of each stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.engine.promises.lines import come_back, go_back
from penstock.engine.residual import bound
from penstock.errors import QueryError, SchemaError
from penstock.kernels.arena import Words
from penstock.model.binding import Binding
from penstock.model.query import Query
from penstock.model.stream import Stream
from penstock.model.window import Window
from penstock.runtime.lifetimes import Lifetimes, Line

__all__ = ["PossiblePromise", "PromiseProfile", "profiled_promises"]


@dataclass(frozen=True)
class PossiblePromise:
    """A promise that a stream could make. tuples: of the stream that were looked at; is_cut:
    whether there are more. broken: those that would break it. live: tuples in all windows, on
    average over time, with this promise alone; None if it is broken or cannot be measured.
    is_proposed: whether it holds, and saves something beside those that save more."""

    stream: str
    promise: str
    tuples: int
    is_cut: bool
    broken: int
    live: float | None
    is_proposed: bool


@dataclass(frozen=True)
class PromiseProfile:
    """live: tuples in all windows, on average over time, without promises; live_proposed: with all
    that are proposed. None if not all streams were given, or they span no time. hints: by stream,
    what to write for those that are proposed."""

    possible: tuple[PossiblePromise, ...]
    live: float | None
    live_proposed: float | None
    hints: Mapping[str, str]


def _repeated(_: Words, words: Words) -> int:
    return int((np.diff(np.sort(words)) == 0).sum())


# How many tuples, in order of time, break each.
_BROKEN: Final[Mapping[str, Callable[[Words, Words], int]]] = {
    "unique": _repeated,
    "clustered": lambda ts, words: int(come_back(ts, words).sum()),
    "increasing": lambda ts, words: int(go_back(ts, words).sum()),
}
_IMPLIED_BY: Final = {"clustered": ("unique", "increasing")}


def profiled_promises(binding: Binding, lines: Mapping[int, Line]) -> PromiseProfile:
    """What the streams could promise. lines: by number of stream, those that were given."""
    query = binding.query
    broken = {
        (stream, promise): _BROKEN[promise](ts, words)
        for stream, line in lines.items()
        if len(line) > 1
        for ts, words in [line.in_time_order()]
        for promise in _BROKEN
        if _can_promise(binding, stream, promise)
    }
    kept = [each for each, count in broken.items() if not count]
    saving = _saving(_lifetimes(query, lines), kept)
    return PromiseProfile(
        tuple(
            PossiblePromise(
                query.names[stream],
                promise,
                len(lines[stream]),
                lines[stream].is_cut,
                count,
                saving.alone.get((stream, promise)),
                promise in saving.proposed.get(stream, ()),
            )
            for (stream, promise), count in broken.items()
        ),
        saving.live,
        saving.live_proposed,
        {
            query.names[stream]: _hint(query.streams[stream], promises)
            for stream, promises in saving.proposed.items()
        },
    )


def _can_promise(binding: Binding, stream: int, promise: str) -> bool:
    """Whether a join of these streams could use it."""
    streams = list(binding.query.streams)
    streams[stream] = _promising(streams[stream], [promise])
    known = {at: each for at, each in enumerate(binding.schemas) if each is not None}
    try:
        bound(Binding.of(replace(binding.query, streams=streams)), known)
    except (QueryError, SchemaError):
        return False
    return True


def _lifetimes(query: Query, lines: Mapping[int, Line]) -> Lifetimes | None:
    """Those of all streams, if all were given and span some time."""
    if len(lines) < len(query.streams) or query.counts:
        return None
    lifetimes = Lifetimes([lines[stream] for stream in range(len(lines))], query.windows)
    return lifetimes if lifetimes.spans_time else None


class _Saving(NamedTuple):
    """What promises that are kept save. alone: live tuples with each of them."""

    proposed: dict[int, tuple[str, ...]]
    alone: dict[tuple[int, str], float]
    live: float | None
    live_proposed: float | None


def _saving(lifetimes: Lifetimes | None, kept: Sequence[tuple[int, str]]) -> _Saving:
    """The promise that saves the most comes first, and others if they save more beside it. If that
    cannot be measured, all that others do not imply."""
    proposed: dict[int, tuple[str, ...]] = {}
    if lifetimes is None:
        for stream, promise in kept:
            if not any((stream, other) in kept for other in _IMPLIED_BY.get(promise, ())):
                proposed[stream] = (*proposed.get(stream, ()), promise)
        return _Saving(proposed, {}, None, None)
    alone = {each: lifetimes.average_live({each[0]: each[1:]}) for each in kept}
    live = least = lifetimes.average_live()
    for stream, promise in sorted(kept, key=alone.__getitem__):
        more = {**proposed, stream: (*proposed.get(stream, ()), promise)}
        if (fewer := lifetimes.average_live(more)) < least:
            proposed, least = more, fewer
    return _Saving(proposed, alone, live, least)


def _promising(stream: Stream, promises: Sequence[str]) -> Stream:
    promised: dict[str, Any] = dict.fromkeys(promises, True)
    return replace(stream, **promised)


def _hint(stream: Stream, promises: Sequence[str]) -> str:
    """A stream as it is written, with promises that it did not make before."""
    promising = _promising(stream, promises)
    given = [
        (each.name, getattr(promising, each.name))
        for each in fields(promising)
        if each.init and each.name != "name" and getattr(promising, each.name) != _default(each)
    ]
    parts = [_written(stream.name), *(f"{name}={_written(value)}" for name, value in given)]
    return f"ps.Stream({', '.join(parts)})"


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _written(value: Any) -> str:
    if isinstance(value, Window):
        value = str(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
