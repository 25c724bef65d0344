"""The steps of a probe: by which path the next window is entered, and with what.

An arrival of a stream probes the other windows in its probe order. Each step has some tuples
chosen, one of each stream before it. Of what links these to the next window, equality comes
first, then the expression that has a bound on both sides. That is what the window's index is
asked for; every other link narrows down what it gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.model.access import Access

__all__ = ["Check", "Step", "linked_order", "steps_of"]

# What a bound says of the target: at least the source, at most it, or both.
_SIDES = {"=": 2, "same": 2, "near": 2, "at least": 1, "at most": 1}


@dataclass(frozen=True)
class Check:
    """What a word of the window must be, by a word of a tuple that is chosen.

    word: of the window. source: the chosen tuple's stream, and its word. op: '=' for equal words
    of a group; of ordered ones 'same', 'at least' (the source), 'at most', 'near' (by epsilon),
    all of them after `shift` has been added to the source.
    """

    word: int
    source: tuple[int, int]
    op: str
    epsilon: float = 0.0
    shift: float = 0.0


@dataclass(frozen=True)
class Step:
    """window: the stream. word: the path; None when all of it has to be read. bounds: what the
    path's word must be. filters: what others must be."""

    window: int
    word: int | None
    bounds: tuple[Check, ...] = ()
    filters: tuple[Check, ...] = ()

    def asks_for_key_of(self, origin: int) -> bool:
        """Whether it asks for the first word of the arrival, and for nothing else."""
        by_key = (Check(self.word or 0, (origin, 0), "="),)
        return self.bounds == by_key and not self.filters


def steps_of(access: Access, origin: int, order: Sequence[int]) -> tuple[Step, ...]:
    """The steps of an arrival of a stream that probes the others in this order."""
    return tuple(
        _step(window, list(_checks(access, window, [origin, *order[:depth]])))
        for depth, window in enumerate(order)
    )


def linked_order(access: Access, origin: int, streams: int) -> tuple[int, ...]:
    """All other streams, each linked to one before it as well as can be, else as they stand."""
    order: list[int] = []
    while len(order) < streams - 1:
        left = [each for each in range(streams) if each != origin and each not in order]
        chosen = [origin, *order]
        best = max(left, key=lambda each: (_worth(access, each, chosen), -each))
        order.append(best)
    return tuple(order)


def _worth(access: Access, window: int, chosen: Sequence[int]) -> int:
    checks = list(_checks(access, window, chosen))
    if any(check.op == "=" for check in checks):
        return 3
    return max((_sides(checks, check.word) for check in checks), default=0)


def _step(window: int, checks: list[Check]) -> Step:
    if not checks:
        return Step(window, None)
    equal = [check for check in checks if check.op == "="]
    if equal:
        rest = tuple(check for check in checks if check is not equal[0])
        return Step(window, equal[0].word, (equal[0],), rest)
    word = max((check.word for check in checks), key=lambda each: (_sides(checks, each), -each))
    bounds = tuple(check for check in checks if check.word == word)
    return Step(window, word, bounds, tuple(check for check in checks if check.word != word))


def _sides(checks: Sequence[Check], word: int) -> int:
    """On how many sides a word is bounded."""
    ops = {check.op for check in checks if check.word == word}
    return max(*(_SIDES[op] for op in ops), len(ops & {"at least", "at most"}))


def _checks(access: Access, window: int, chosen: Sequence[int]) -> Iterator[Check]:
    for group in access.groups:
        if window in group:
            for source in chosen:
                if source in group:
                    yield Check(group[window], (source, group[source]), "=")
                    break
    for relation in access.relations:
        if relation.left[0] == window and relation.right[0] in chosen:
            op, shift = relation.op, relation.shift
            yield Check(relation.left[1], relation.right, op, relation.epsilon, shift)
        elif relation.right[0] == window and relation.left[0] in chosen:
            op = "at least" if relation.op == "at most" else relation.op
            yield Check(relation.right[1], relation.left, op, relation.epsilon, -relation.shift)
