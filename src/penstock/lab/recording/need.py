"""What the exact join needs: the most tuples that are live at once.

A tuple is live from its instant to the end of its window; in a semi join a left one only until it
has come out. Live tuples are counted after each instant, as limits are kept. So a memory of this
size sheds nothing, but for tuples that have ended and are not gone yet: a window lets go of those
when its own stream brings the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.kernels.arena import Words
from penstock.lab.recording.key_sample import Floats, Groups
from penstock.model.query import Query
from penstock.model.window import Window
from penstock.runtime.lifetimes import ends_of

__all__ = ["ComeOut", "Entering", "Need", "most_live"]


class Entering(NamedTuple):
    """The tuples of a stream that enter its window, in order of time: when, and of which group."""

    ts: Words
    groups: Groups


class ComeOut(NamedTuple):
    """Left tuples of a semi join that came out: when they arrived, when they left, their group."""

    since: Words
    out: Words
    groups: Groups


class Need(NamedTuple):
    """rows: the most live tuples at once, by estimate. streams: how many of these are of each
    stream, by the first estimate."""

    rows: Floats
    streams: Floats


class _Change(NamedTuple):
    """Tuples of a stream begin to be live, or end it (sign -1)."""

    stream: int
    at: Words
    sign: int
    groups: Groups


def most_live(
    query: Query, entering: Sequence[Entering], weights: Floats, come_out: ComeOut | None = None
) -> Need:
    """The most live tuples at once. weights: by estimate and group, what a tuple counts for."""
    changes = []
    for stream, (ts, groups) in enumerate(entering):
        changes.append(_Change(stream, ts, 1, groups))
        changes.append(_Change(stream, _after(query.windows[stream], ts), -1, groups))
    if come_out is not None:
        since, out, groups = come_out
        changes.append(_Change(0, _after(query.windows[0], since), 1, groups))
        changes.append(_Change(0, out, -1, groups))
    at = np.concatenate([each.at for each in changes])
    if not len(at):
        return Need(np.zeros(len(weights)), np.zeros(len(entering)))
    order = np.argsort(at, kind="stable")
    counts = [len(each.at) for each in changes]
    signs = np.repeat([each.sign for each in changes], counts)[order]
    streams = np.repeat([each.stream for each in changes], counts)[order]
    groups = np.concatenate([each.groups for each in changes])[order]
    instant_ends = np.append(np.diff(at[order]) > 0, True)
    peaks, highest = np.zeros(len(weights)), 0
    for estimate in reversed(range(len(weights))):
        live = np.where(instant_ends, np.cumsum(signs * weights[estimate][groups]), 0.0)
        highest = int(live.argmax())
        peaks[estimate] = live[highest]
    until = slice(0, highest + 1)
    in_all = (signs * weights[0][groups])[until]
    parts = np.bincount(streams[until], in_all, minlength=len(entering))
    return Need(peaks, parts.astype(np.float64))


def _after(window: Window, ts: Words) -> Words:
    """When tuples are no longer live. Bounds on a difference may end one before it comes: it is
    then never live."""
    return np.maximum(ends_of(window, ts) + 1, ts)
