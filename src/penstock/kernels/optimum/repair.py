"""A feasible decision near given prices: hold what arrives; when there is no room, drop the least.

The walk goes over the instants in order. Of a tuple held at t with the next meeting `now`, what is
still to be had is the best over later meetings m of

    value[m] - before[now] + line[t]

(see choices). The last term is the same for all that are held, and the others change only when the
tuple has a meeting: so a heap over chains, by the first tuple of each, has the next to drop on top,
and it is mended once for each meeting of a chain. O((tuples + meetings) log chains), for chains of
one tuple also O(their meetings log chains).

Nothing is dropped while there is room, whatever the prices; so prices decide only between tuples,
and the walk with poor ones is still a sensible policy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.arena import Words
from penstock.kernels.jit import kernel
from penstock.kernels.optimum.chains import Chains
from penstock.kernels.optimum.choices import Peaks, peak

__all__ = ["Walk", "repair"]

_NONE = -1
_NOT_DUE = -2


class Walk(NamedTuple):
    """What the walk knows of each chain, and which chains have a meeting when."""

    head: Words  # tuples head to tail are held
    tail: Words
    now: Words  # the next meeting
    best: Words  # after which its first tuple would best leave
    left: Words  # what that tuple still has to earn, less the price
    heap: Words  # chains that hold any, the one with the least `left` on top
    place: Words  # of each chain in the heap, or none
    following: Words  # the next chain with a meeting at the same instant; none, or not due
    due: Words  # the first chain with a meeting at each instant, or none

    @classmethod
    def of(cls, chains: Chains) -> Walk:
        """Room for these chains."""
        number = int(chains.chain[-1]) + 1 if len(chains.chain) else 0
        arrays = [np.empty(number, np.int64) for _ in cls._fields[:-1]]
        arrays.append(np.empty(len(chains.room), np.int64))
        return cls(*arrays)


@kernel
def _mend(walk: Walk, place: int, size: int) -> None:
    """Move the chain at a place of the heap to where it belongs."""
    heap, left = walk.heap, walk.left
    chain = heap[place]
    while place > 0 and left[heap[(place - 1) >> 1]] > left[chain]:
        heap[place] = heap[(place - 1) >> 1]
        walk.place[heap[place]] = place
        place = (place - 1) >> 1
    while True:
        child = 2 * place + 1
        if child + 1 < size and left[heap[child + 1]] < left[heap[child]]:
            child += 1
        if child >= size or left[heap[child]] >= left[chain]:
            break
        heap[place] = heap[child]
        walk.place[heap[place]] = place
        place = child
    heap[place] = chain
    walk.place[chain] = place


@kernel
def _settle(chains: Chains, peaks: Peaks, walk: Walk, chain: int, size: int) -> int:
    """Put a chain in its place after a change, or out of the heap if it holds none. Returns how
    many chains are in the heap."""
    head, now, place = walk.head[chain], walk.now[chain], walk.place[chain]
    if head < walk.tail[chain]:
        if place == _NONE:
            place = size
            size += 1
            walk.heap[place] = chain
            walk.best[chain] = now
        # Ends of a chain do not fall, so neither does the best, but for meetings that are over.
        best = peak(peaks, max(walk.best[chain], now), chains.end[head])
        walk.best[chain] = best
        walk.left[chain] = peaks.value[best] - chains.before[now]
        _mend(walk, place, size)
    elif place != _NONE:
        size -= 1
        walk.place[chain] = _NONE
        if place < size:
            walk.heap[place] = walk.heap[size]
            _mend(walk, place, size)
    return size


@kernel
def _expect(chains: Chains, walk: Walk, chain: int) -> None:
    """Have a chain come up at its next meeting."""
    instant = chains.meets[walk.now[chain]]
    walk.following[chain] = walk.due[instant]
    walk.due[instant] = chain


@kernel
def _meet(chains: Chains, walk: Walk, chain: int, instant: int, until: Words) -> int:
    """All meetings of a chain at an instant. Returns how many tuples leave after them."""
    head, tail, now = walk.head[chain], walk.tail[chain], walk.now[chain]
    gone = 0
    while head < tail and chains.meets[now] == instant:
        now += 1
        while head < tail and chains.end[head] <= now:
            until[head] = now
            head += 1
            gone += 1
    walk.head[chain], walk.now[chain] = head, now
    return gone


@kernel
def repair(chains: Chains, peaks: Peaks, walk: Walk, until: Words) -> None:
    """Fill `until` with a feasible decision."""
    walk.due[:] = _NONE
    walk.place[:] = _NONE
    walk.following[:] = _NOT_DUE
    walk.head[:] = 0
    walk.tail[:] = 0
    size = held = arrival = 0
    for instant in range(len(chains.room)):
        # 1. Who is held has met, and leaves after the last meeting.
        chain = walk.due[instant]
        while chain != _NONE:
            following = walk.following[chain]
            walk.following[chain] = _NOT_DUE
            held -= _meet(chains, walk, chain, instant, until)
            size = _settle(chains, peaks, walk, chain, size)
            if walk.head[chain] < walk.tail[chain]:
                _expect(chains, walk, chain)
            chain = following
        # 2. Arrivals are held.
        while arrival < len(chains.arrivals) and chains.at[chains.arrivals[arrival]] == instant:
            row = chains.arrivals[arrival]
            chain = chains.chain[row]
            held += 1
            arrival += 1
            if walk.head[chain] == walk.tail[chain]:
                walk.head[chain] = row
            walk.tail[chain] = row + 1
            if walk.following[chain] == _NOT_DUE:
                walk.now[chain] = chains.first[row]
                _expect(chains, walk, chain)
            if walk.place[chain] == _NONE:
                size = _settle(chains, peaks, walk, chain, size)
        # 3. As many go as there is no room for.
        while held > chains.room[instant]:
            chain = walk.heap[0]
            until[walk.head[chain]] = walk.now[chain]
            walk.head[chain] += 1
            held -= 1
            size = _settle(chains, peaks, walk, chain, size)
