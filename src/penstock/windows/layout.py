"""Where in an arena all of it stands, and the making of one.

    rings, buckets and nodes of each path      then the directories      then what a budget has

Each part begins at a whole cache line and a whole record. Sizes are in bytes here; an arena says
of itself, in words or records, what is where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from penstock.kernels.arena import RECORD, State, header_bytes, view
from penstock.kernels.index import directory
from penstock.windows.allocator import CACHE_LINE, Allocator
from penstock.windows.paths import NODE_BYTES, Paths
from penstock.windows.provision import Provision

__all__ = ["Layout", "Places"]

_WORD: Final = 8
_HALF: Final = 4
_ALIGNMENT: Final = 3 * CACHE_LINE  # whole cache lines and whole records


class Places(NamedTuple):
    """Of each path its ring, buckets and nodes; the directories; what a budget has; the end."""

    paths: list[tuple[int, int, int]]
    directories: list[int]
    budget: int
    end: int


class Layout:
    """Of the arenas of one join, whatever their sizes."""

    def __init__(self, paths: Paths, provision: Provision | None, streams: int) -> None:
        self.paths = paths
        self._provision = provision
        self._streams = streams

    def places(self, directory_sizes: Sequence[int], sizes: Sequence[int]) -> Places:
        """With directories and rings of these sizes."""
        shape = self.paths.shape
        end = _aligned(header_bytes(shape))
        places = []
        for path in self.paths.paths:
            ring_bytes = sizes[path.window] * RECORD.itemsize
            buckets = _aligned(end + ring_bytes)
            nodes = _aligned(buckets + path.index.buckets * _HALF)
            places.append((end, buckets, nodes))
            end = _aligned(nodes + path.node_room(sizes[path.window]) * NODE_BYTES)
        starts = []
        entry_bytes = int(directory.entry_words(shape.windows)) * _WORD
        for size in directory_sizes:
            starts.append(end)
            end = _aligned(end + size * entry_bytes)
        budget = end
        if self._provision is not None:
            end = _aligned(end + self._provision.words(sizes) * _WORD)
        return Places(places, starts, budget, end)

    def allocate(
        self, memory: Allocator, directory_sizes: Sequence[int], sizes: Sequence[int]
    ) -> State:
        """A zeroed arena, with the places of all in it set."""
        places = self.places(directory_sizes, sizes)
        state = view(memory.allocate(places.end), self.paths.shape)
        state.join["streams"] = self._streams
        self.paths.write(state)
        for number, (path, (ring_start, buckets, nodes)) in enumerate(
            zip(self.paths.paths, places.paths, strict=True)
        ):
            descriptor = state.paths[number]
            descriptor.ring, descriptor.mask = ring_start // RECORD.itemsize, sizes[path.window] - 1
            descriptor.buckets, descriptor.nodes = buckets // _WORD, nodes // _WORD
            descriptor.node_room = path.node_room(sizes[path.window])
        state.windows["ring"] = state.paths["ring"][state.windows["paths"]]
        state.windows["mask"] = np.array(sizes) - 1
        self._place_rest(state, places, directory_sizes, sizes)
        return state

    def with_directories(
        self, memory: Allocator, old: State, directory_sizes: Sequence[int], sizes: Sequence[int]
    ) -> State:
        """An arena with other directories, still empty, and all else as it is in the old one."""
        was = self.places(old.directories["places"].tolist(), sizes)
        places = self.places(directory_sizes, sizes)
        arena = memory.allocate(places.end)
        before, held = min(places.directories, default=places.budget), old.words.view(np.uint8)
        arena[:before] = held[:before]
        arena[places.budget : places.end] = held[was.budget : was.end]
        state = view(arena, self.paths.shape)
        self._place_rest(state, places, directory_sizes, sizes)
        return state

    def _place_rest(
        self, state: State, places: Places, directory_sizes: Sequence[int], sizes: Sequence[int]
    ) -> None:
        state.directories["start"] = np.array(places.directories) // _WORD
        state.directories["places"] = directory_sizes
        if self._provision is not None:
            self._provision.place(state, places.budget // _WORD, sizes)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
