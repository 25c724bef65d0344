"""How many tuples a probe, an insert and a removal touch, by structure and by model.

Three models of the same five structures:

    kang2003   Kang, Naughton and Viglas (ICDE 2003), equations (3) to (6). A hash table of
               buckets whose chains are in order of arrival: the oldest tuple is at hand.
    kang2002   their earlier version. Only hash differs: a removal scans the bucket for its tuple.
    penstock   the structures of `penstock.kernels`, as measured. A chain for each distinct
               key, so that a probe touches what it finds. A removal leaves the links alone: it
               touches the record at the tail of the ring, and only trees do more.
               The way down a tree is a binary search, whatever its nodes: it compares with log2 of
               the window, and the matches are walked through. A scan reads tuples by eights, and
               those among which there is a match once more, one by one.

Symbols of the papers: B is `tuples`, |B| is tuples / bucket, N is `node`.

Departures from what is printed:

- The T-tree's update in (6) and (7) reads 2*1.5*(height - 1) + log2 N for insert and removal
  together. Table 3 of the paper comes out only with 2*(1.5*(height - 1) + log2 N), so both insert
  and removal touch what a probe does.
- A T-tree of one node has a height of 0 in the paper, and less than no node above the one that is
  looked for. Here it is none.
- Removal on probe is printed for the scan alone: log2(pile) + 1 for the pile of tuples that
  expired since the last probe. It is used from a pile of one on; below, where it would fall below
  zero, each tuple is touched once. The rest is derived (`removal_touched`), and so is all of
  periodic removal.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, isfinite, log2
from typing import Any, Final

from penstock.errors import PlanError
from penstock.model.plan import INDEXES
from penstock.planning.weights import STRUCTURES

__all__ = [
    "EXPIRE_MODES", "MODELS", "NODE_ENTRIES", "Structure", "insert_scattered", "insert_touched",
    "number", "probe_scattered", "probe_touched", "removal_scattered", "removal_touched",
]  # fmt: skip

MODELS: Final = ("kang2003", "kang2002", "penstock")
EXPIRE_MODES: Final = ("eager", "on_probe", "periodic")
NODE_ENTRIES: Final = 125  # of a node of the trees of penstock.kernels

_EIGHT: Final = 8
_DIGITS: Final = 9  # rate times time is seldom whole where it should be


def number(value: Any, what: str, *, positive: bool = False) -> float:
    """A value that is checked to be a finite number, at least zero or above it."""
    least = "above zero" if positive else "at least zero"
    if (
        isinstance(value, bool | str)
        or not hasattr(value, "__float__")
        or not isfinite(value)
        or value < 0
        or (positive and value == 0)
    ):
        raise PlanError(f"{what} must be a finite number {least}, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class Structure:
    """What a window is kept in. tuples: in the window. bucket: tuples for each bucket. node:
    entries of a tree's node."""

    index: str
    tuples: float
    bucket: float = 10.0
    node: int = 100

    def __post_init__(self) -> None:
        if self.index not in STRUCTURES:
            raise PlanError(f"no index is called {self.index!r}; choose from {STRUCTURES}")
        number(self.tuples, "a window, in tuples,")
        number(self.bucket, "the tuples of a bucket", positive=True)
        number(self.node, "the entries of a node", positive=True)
        if self.node != int(self.node) or self.node < 2:
            raise PlanError(
                f"a node of a tree has a whole number of entries, 2 or more, got {self.node!r}"
            )

    @property
    def is_empty(self) -> bool:
        """Whether the stream gets no memory: nothing is kept, looked for or removed."""
        return self.tuples == 0

    @property
    def is_tree(self) -> bool:
        """Whether tuples are found from a root."""
        return INDEXES[self.index].tree

    @property
    def buckets(self) -> float:
        """How many buckets there are."""
        return self.tuples / self.bucket


def _ceiling(value: float) -> int:
    return ceil(round(value, _DIGITS))


def _levels(nodes: int, fanout: int) -> int:
    """The logarithm of a number of nodes, rounded up."""
    levels, reached = 0, 1
    while reached < nodes:
        levels, reached = levels + 1, reached * fanout
    return levels


def _descent(structure: Structure, kept: float, model: str) -> float:
    """Tuples that are compared with on the way to a key's place in a tree."""
    if model == "penstock":
        return log2(kept + 1)
    node = int(structure.node)
    nodes = max(_ceiling(kept / node), 1)
    within = _levels(node, 2)  # a binary search
    if structure.index == "bplus_tree":
        return float((_levels(nodes, node + 1) + 1) * within)
    return 1.5 * max(_levels(nodes, 2) - 1, 0) + within


def probe_touched(structure: Structure, model: str, matches: float, kept: float) -> float:
    """By one probe. matches: of a key in the window. kept: tuples in the structure, those
    included that have expired and are still there."""
    if structure.is_empty:
        return 0.0
    swollen = kept / structure.tuples
    if structure.index == "scan":
        return kept + (_EIGHT * matches * swollen if model == "penstock" else 0.0)
    if structure.is_tree:
        walked = matches * swollen if model == "penstock" else 0.0
        return _descent(structure, kept, model) + walked
    if structure.index == "hash" and model == "penstock":
        return matches * swollen
    return structure.bucket * swollen


def insert_touched(structure: Structure, model: str, kept: float) -> float:
    """By the insertion of one tuple: itself, or the way to its place."""
    if not structure.is_tree:
        return 1.0
    return _descent(structure, kept, model) + (model == "penstock")


def removal_touched(
    structure: Structure, model: str, expire: str, pile: float, kept: float
) -> float:
    """By the removal of one tuple, when `pile` of them have expired since the last removal.

    eager: one at a time. on_probe: what has expired since the last probe of the window, or, with
    hash, of the bucket; each of these holds as many as one probe finds expired in all, since it is
    probed and fed at the same share of the rates. periodic: what has expired in an interval.

    scan: the pile is cut off where a binary search finds its end. hash: each tuple of the pile is
    at the old end of its chain, and touched once. Where chains have no order (kang2002), a removal
    scans its bucket; on probe it was scanned anyhow, and only the expired are touched besides; a
    periodic one scans each bucket no more than once. trees: each tuple is looked for.
    """
    if pile == inf:  # nobody probes, so nobody removes
        return 0.0
    if structure.is_tree:
        return insert_touched(structure, model, kept)
    if model == "penstock":
        return 1.0
    if structure.index == "scan":
        return 1.0 if pile <= 1 else (log2(pile) + 1) / pile
    if model == "kang2003" or expire == "on_probe":
        return 1.0
    scanned = structure.bucket * kept / structure.tuples
    return scanned if expire == "eager" else scanned * min(1.0, structure.buckets / pile)


def probe_scattered(structure: Structure, model: str, matches: float, kept: float) -> float:
    """Of the tuples that a probe touches, those that may be far. In a scan one is behind the
    other, so that to be far is cheap there, and not free."""
    if structure.is_empty:
        return 0.0
    if structure.is_tree:  # the end of the way down, and the tuples that it leads to
        return 1.0 + matches * kept / structure.tuples
    if structure.index == "scan":
        return kept
    return probe_touched(structure, model, matches, kept)


def insert_scattered(structure: Structure) -> float:
    """Of what an insertion touches, what is anywhere: the place in the index."""
    return 0.0 if structure.index == "scan" else 1.0


def removal_scattered(structure: Structure) -> float:
    """The same of a removal, by which only trees change."""
    return 1.0 if structure.is_tree else 0.0
