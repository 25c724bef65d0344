"""The access paths of all windows, and the steps of probes, as kernels read them.

What they are is decided by `model.access` and `model.steps`; this writes it into an arena.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from penstock.kernels.arena import Shape, State
from penstock.kernels.index.bounds import OPS
from penstock.kernels.index.indexes import KINDS, SCAN, TREES
from penstock.kernels.index.nodes import NODE_WORDS
from penstock.model.access import Access, Equal
from penstock.model.plan import Index, Plan
from penstock.model.steps import Check, Step

__all__ = ["NODE_BYTES", "Path", "Paths"]

NODE_BYTES: Final = 8 * NODE_WORDS


@dataclass(frozen=True)
class Path:
    """directory: that of its group; -1 if words have an order."""

    window: int
    word: int
    index: Index
    directory: int

    def node_room(self, entries: int) -> int:
        """How many nodes suffice for `entries` tuples; 0 if the index is no tree."""
        tree = TREES.get(KINDS[self.index.name])
        return 0 if tree is None else tree.nodes_for(entries)


class Paths:
    """paths: of all windows, those of one window together, and then those of their ghosts.
    hashed: which directories are used."""

    def __init__(self, access: Access, plan: Plan, has_ghosts: bool) -> None:
        streams = len(access.words)
        own = [
            Path(window, number, index, word.group if isinstance(word, Equal) else -1)
            for window, (words, indexes) in enumerate(zip(access.words, plan.indexes, strict=True))
            for number, (word, index) in enumerate(zip(words, indexes, strict=True))
        ]
        ghosts = [replace(path, window=path.window + streams) for path in own if has_ghosts]
        self.paths = [*own, *ghosts]
        self.hashed = [
            any(path.directory == group and path.index.name == "hash" for path in self.paths)
            for group in range(len(access.groups))
        ]
        self._numbers = {(path.window, path.word): at for at, path in enumerate(self.paths)}
        self._steps = plan.steps
        checks = sum(len(step.bounds) + len(step.filters) for each in plan.steps for step in each)
        self.shape = Shape(
            streams=streams,
            windows=2 * streams if has_ghosts else streams,
            paths=len(self.paths),
            directories=len(access.groups),
            checks=checks,
            tables=0 if plan.limits is None else len(own),
            plain=plan.is_plain,
        )

    def write(self, state: State) -> None:
        """Describe them in a new arena; others write where things are."""
        for number, path in enumerate(self.paths):
            descriptor, window = state.paths[number], state.windows[path.window]
            descriptor.window, descriptor.kind = path.window, KINDS[path.index.name]
            descriptor.directory = path.directory
            descriptor.bucket_count = path.index.buckets
            if path.word == 0:
                window.paths = number
            window.words = path.word + 1
            window.trees += KINDS[path.index.name] in TREES
        written = 0
        for origin, steps in enumerate(self._steps):
            for depth, step in enumerate(steps):
                written = self._write_step(state, origin, depth, step, written)

    def _write_step(self, state: State, origin: int, depth: int, step: Step, written: int) -> int:
        descriptor = state.steps[origin, depth]
        path = self._numbers[step.window, step.word or 0]
        descriptor.window, descriptor.path = step.window, path
        descriptor.kind = SCAN if step.word is None else state.paths[path].kind
        descriptor.keyed = step.asks_for_key_of(origin)
        if self.shape.plain:
            return written
        descriptor.bounds = written
        for check in step.bounds:
            self._write_check(state, step.window, check, written)
            written += 1
        descriptor.filters = written
        for check in step.filters:
            self._write_check(state, step.window, check, written)
            written += 1
        descriptor.stop = written
        return written

    def _write_check(self, state: State, window: int, check: Check, number: int) -> None:
        descriptor = state.checks[number]
        descriptor.path = self._numbers[window, check.word]
        descriptor.source = self._numbers[check.source]
        descriptor.op = OPS[check.op]
        descriptor.epsilon, descriptor.shift = check.epsilon, check.shift
