"""The best k tuples to keep of both sides together.

What a component gives for p of its nodes is convex in p. So there is a best choice in which all
components but one are whole or empty: of two that are partly kept, nodes can go from one to the
other, in one of the two directions, without loss. That is a 0/1 knapsack (sizes m + n, values
m * n) and one component for what is left. The paper's recurrence tries every p of every component
instead.

Three things make it small:

- Components of one size and smaller side are one kind, with copies.
- Taken as a fraction, a component is worth its average degree m * n / (m + n) for each node. By
  this price of the component at which k is reached, every other choice for a component has a loss,
  and all losses add up to no more than the gap between the fractional optimum and the best that is
  known. So only kinds of small loss, the *core*, are in the knapsack. It begins with a few, which
  gives a better known best, and grows until no kind outside could matter.
- The component that is partly kept must not be among the whole ones. Outside the core that is one
  table for all kinds that are empty, and one for all that are whole. In the core, a kind whose part
  would not give enough even beside all its copies is out of the question; the others, mostly none,
  are left out in turn, by halves.

O(c log c + t * room), t being the kinds in the core and room <= k what those outside leave; the
part left out by halves is at most O(t * room * log t). In the worst case t = c and room = k;
usually t is a few dozen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from penstock.errors import PlanError
from penstock.lab.static.components import Ints, Kinds, bundles, grouped, pairs, split

__all__ = ["best_of_total"]

_CORE: Final = 16  # kinds, to begin with
_GROWTH: Final = 4
_MOST_CELLS: Final = 1 << 33  # kinds times room: some ten seconds
_MOST_ROOM: Final = 1 << 25  # for a table and what comes with it: a gigabyte
_NONE: Final = -1


class _Choice(NamedTuple):
    """Copies to keep whole, by kind; and `nodes` of one more, of kind `partly`."""

    joined: int
    whole: Ints
    partly: int = _NONE
    nodes: int = 0


class _Item(NamedTuple):
    """Copies of a kind, to be taken together or not."""

    kind: int
    copies: int
    size: int
    value: int


def best_of_total(left: Ints, right: Ints, keep: int) -> tuple[Ints, Ints]:
    """How many to keep of each component; those that would join nothing are left out."""
    kept_left, kept_right = np.zeros_like(left), np.zeros_like(right)
    useful = np.flatnonzero((left > 0) & (right > 0))
    if not len(useful) or keep < 2:
        return kept_left, kept_right
    m, n = left[useful], right[useful]
    kinds = grouped(np.minimum(m, n), m + n)
    choice = _Knapsack(kinds, keep).best()

    order = np.argsort(kinds.of, kind="stable")
    begin = np.cumsum(kinds.copies) - kinds.copies
    copy = np.arange(len(order)) - np.repeat(begin, kinds.copies)
    whole = useful[order[copy < np.repeat(choice.whole, kinds.copies)]]
    kept_left[whole], kept_right[whole] = left[whole], right[whole]
    if choice.partly != _NONE:
        one = useful[order[begin[choice.partly] + choice.whole[choice.partly]]]
        kept_left[one], kept_right[one] = split(int(left[one]), int(right[one]), choice.nodes)
    return kept_left, kept_right


class _Knapsack:
    """Kinds of components with their sizes, values and losses, and how many nodes are kept."""

    def __init__(self, kinds: Kinds, keep: int) -> None:
        self.smaller, self.size, self.copies = kinds.first, kinds.second, kinds.copies
        self.value = self.smaller * (self.size - self.smaller)
        self.keep = keep
        order = np.argsort(-(self.value / self.size), kind="stable")
        ends = np.cumsum((self.size * self.copies)[order])
        place = int(np.searchsorted(ends, keep, side="right"))
        self.fits = place == len(order)
        self.whole = np.zeros(len(order), np.bool_)  # all copies of the kind, by average degree
        self.whole[order[:place]] = True
        if self.fits:
            return
        self.last = int(order[place])  # the kind at which `keep` is reached
        self.price = self.value[self.last] / self.size[self.last]
        self.loss = np.abs(self.value - self.price * self.size)
        self.loss[self.last] = 0
        # More than rounding can amount to.
        self.slack = 1e-6 + 1e-12 * (self.value + self.price * self.size)

    def best(self) -> _Choice:
        """The best choice: of all, in the end, though only a core is searched."""
        if self.fits:
            return _Choice(int((self.value * self.copies).sum()), self.copies)
        best = self._greedy()
        rank = np.argsort(self.loss, kind="stable")
        rank = np.concatenate(([self.last], rank[rank != self.last]))
        size = _CORE
        while True:
            best = self._with_core(rank[:size], best)
            needed = int(np.count_nonzero(self.loss <= self._gap(best) + self.slack))
            if needed <= size:
                return best
            size = min(needed, size * _GROWTH)

    def _greedy(self) -> _Choice:
        whole = np.where(self.whole, self.copies, 0)
        left_over = self.keep - int((whole * self.size).sum())
        more, nodes = divmod(left_over, int(self.size[self.last]))
        whole[self.last] = more
        joined = int((whole * self.value).sum()) + int(pairs(int(self.smaller[self.last]), nodes))
        return _Choice(joined, whole, self.last, nodes)

    def _gap(self, best: _Choice) -> float:
        """What a choice that is better, by one pair at least, may lose by the price."""
        whole = np.where(self.whole, self.copies, 0)
        left_over = self.keep - int((whole * self.size).sum())
        return int((whole * self.value).sum()) - best.joined + left_over * float(self.price) - 1

    def _with_core(self, core: Ints, best: _Choice) -> _Choice:
        """The best choice in which kinds outside the core are as they are, but for one copy; or
        the one that is known."""
        outside = np.ones(len(self.size), np.bool_)
        outside[core] = False
        fixed = np.where(outside & self.whole, self.copies, 0)
        base = int((fixed * self.value).sum())
        room = self.keep - int((fixed * self.size).sum())
        ways = room + int(self.size[outside & self.whole].sum())
        refuse_too_large(len(core), ways)
        gains, gainers = self._gains(np.flatnonzero(outside & ~self.whole), room)
        losses, losers = self._losses(np.flatnonzero(outside & self.whole), self._gap(best))

        # 1. All of the core, and one copy from outside it: partly kept, or partly dropped.
        items = list(self._items(core, self.copies[core]))
        table = _table(room + len(losses), items)
        gained = table[room - np.arange(len(gains))] + gains
        lost = table[room + np.arange(len(losses))] - losses
        found = [
            (int(gained.max()), int(gainers[gained.argmax()]), int(gained.argmax())),
            (int(lost.max()), int(losers[lost.argmax()]), -int(lost.argmax())),
        ]
        # 2. One copy of a kind of the core, and the others; but only of kinds with which it could
        # be the best.
        known = max(best.joined - base, max(found)[0])
        open_to = [
            int(self._in_part(kind, table[: room + 1]).max()) > known for kind in core.tolist()
        ]
        candidates, others = core[open_to], core[np.logical_not(open_to)]
        if len(candidates):
            others_only = _table(room, list(self._items(others, self.copies[others])))
            found += self._left_out(candidates, others_only)

        value, partly, nodes = max(found)
        if base + value <= best.joined:
            return best
        partly = partly if nodes else _NONE
        copies = self.copies[core] - (core == partly)
        items = list(self._items(core, copies))
        whole = fixed.copy()
        for item in _taken(room - nodes, items):
            whole[item.kind] += item.copies
        if nodes < 0:
            whole[partly] -= 1
            nodes += int(self.size[partly])
        return _Choice(base + value, whole, partly, nodes)

    def _gains(self, kinds: Ints, room: int) -> tuple[Ints, Ints]:
        """By number of nodes, the most pairs that one component of these kinds gives; and which."""
        widest = min(room, int(self.size[kinds].max(initial=0)))
        by_size = kinds[np.argsort(self.size[kinds], kind="stable")]
        # Of the kinds that have as many nodes, the one with the largest smaller side.
        code = self.smaller[by_size] * len(self.size) + by_size
        suffix = np.maximum.accumulate(code[::-1])[::-1] if len(code) else code
        nodes = np.arange(widest + 1)
        best = suffix[np.searchsorted(self.size[by_size], nodes)] if len(code) else nodes - 1
        which = best % len(self.size)
        return np.where(nodes > 0, pairs(self.smaller[which], nodes), 0), which

    def _losses(self, kinds: Ints, gap: float) -> tuple[Ints, Ints]:
        """By number of nodes that one component of these kinds drops, the fewest pairs lost."""
        kind = np.repeat(kinds, self.size[kinds])
        begin = np.cumsum(self.size[kinds]) - self.size[kinds]
        dropped = np.arange(len(kind)) - np.repeat(begin, self.size[kinds])
        lost = self.value[kind] - pairs(self.smaller[kind], self.size[kind] - dropped)
        near = (dropped > 0) & (lost - self.price * dropped <= gap + self.slack[kind])
        kind, dropped, lost = kind[near], dropped[near], lost[near]
        fewest = np.full(int(dropped.max(initial=0)) + 1, np.iinfo(np.int64).max // 2)
        which = np.zeros(len(fewest), np.int64)
        order = np.argsort(-lost, kind="stable")  # the last one to be written is the best
        fewest[dropped[order]], which[dropped[order]] = lost[order], kind[order]
        fewest[0] = 0
        return fewest, which

    def _left_out(self, core: Ints, table: Ints) -> list[tuple[int, int, int]]:
        """For each kind of the core: the most with one copy of it kept in part, and its nodes."""
        if len(core) > 1:
            half = len(core) // 2
            found = []
            for these, others in ((core[:half], core[half:]), (core[half:], core[:half])):
                with_others = table.copy()
                for item in self._items(others, self.copies[others]):
                    _add(with_others, item)
                found += self._left_out(these, with_others)
            return found
        kind = int(core[0])
        for item in self._items(core, self.copies[core] - 1):
            _add(table, item)
        values = self._in_part(kind, table)
        return [(int(values.max()), kind, int(values.argmax()))]

    def _in_part(self, kind: int, table: Ints) -> Ints:
        """By the number of nodes of one copy that is kept in part, its pairs and the rest's."""
        nodes = np.arange(min(int(self.size[kind]), len(table)))
        return table[::-1][: len(nodes)] + pairs(int(self.smaller[kind]), nodes)

    def _items(self, kinds: Ints, copies: Ints) -> Iterator[_Item]:
        for kind, number in zip(kinds.tolist(), copies.tolist(), strict=True):
            size, value = int(self.size[kind]), int(self.value[kind])
            for part in bundles(number):
                yield _Item(kind, part, part * size, part * value)


def refuse_too_large(kinds: int, room: int) -> None:
    """So that no call takes hours, or all memory."""
    if kinds * room > _MOST_CELLS or room > _MOST_ROOM:
        raise PlanError(
            f"the best choice would be searched among {kinds:,} kinds of components for {room:,} "
            f"tuples, which takes too long; choose method='average_degree', which is close to it"
        )


def _add(table: Ints, item: _Item) -> None:
    if item.size < len(table):
        np.maximum(table[item.size :], table[: -item.size] + item.value, out=table[item.size :])


def _table(room: int, items: list[_Item]) -> Ints:
    """The most value of items, by the room that they may take."""
    # Twice as fast where the numbers are small.
    small = sum(item.value for item in items) <= np.iinfo(np.int32).max
    table: Ints = np.zeros(room + 1, np.int32 if small else np.int64)
    for item in items:
        _add(table, item)
    return table.astype(np.int64)


def _taken(room: int, items: list[_Item]) -> list[_Item]:
    """The items that have the most value in that room."""
    table = np.zeros(room + 1, np.int64)
    better = []
    for item in items:
        before = table.copy()
        _add(table, item)
        better.append(np.packbits(table > before))
    taken = []
    for item, bits in zip(reversed(items), reversed(better), strict=True):
        if bits[room >> 3] >> (7 - (room & 7)) & 1:
            taken.append(item)
            room -= item.size
    return taken
