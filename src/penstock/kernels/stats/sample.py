"""How values are spread: a sample of them in order, read as a histogram.

An arrival takes a random place in the sample, the likelier the fewer have come of late, so that
the sample follows the stream. It is put in order again when a part of it is new. What lies between
two values is counted in the sample; for a stretch with few of them the density around it is used.

    add: O(1), and a sort of the sample after a quarter of it has been replaced
    share: O(log sample)
"""

from __future__ import annotations

from typing import Any, Final

from penstock.kernels.arena import Words
from penstock.kernels.jit import kernel

__all__ = ["add", "put_in_order", "share"]

_FEW: Final = 16
_AROUND: Final = 8


@kernel
def add(words: Words, table: Any, word: int, weight: float, fraction: float) -> None:
    """Take an arrival into the sample, perhaps. fraction: drawn at random from [0, 1)."""
    if table.filled < table.places:
        words[table.start + table.filled] = word
        table.filled += 1
    else:
        # A place for each that counts: half of the sample is new when half of what counts is.
        chance = min(1.0, table.places * weight / max(table.total, weight))
        if fraction >= chance:
            return
        words[table.start + int(fraction / chance * table.places)] = word
    table.since += 1
    if 4 * table.since >= table.filled:
        put_in_order(words, table)


@kernel
def put_in_order(words: Words, table: Any) -> None:
    """Have the values of the sample in order, in a copy, by Shell's sort."""
    begin, count = table.start + table.places, table.filled
    for each in range(count):
        words[begin + each] = words[table.start + each]
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for each in range(gap, count):
            word = words[begin + each]
            at = each
            while at >= gap and words[begin + at - gap] > word:
                words[begin + at] = words[begin + at - gap]
                at -= gap
            words[begin + at] = word
        gap //= 3
    table.ordered = count
    table.since = 0


@kernel
def _below(words: Words, begin: int, count: int, word: int) -> int:
    """How many of `count` words in order are below `word`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if words[begin + middle] < word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def share(words: Words, table: Any, low: int, high: int) -> float:
    """Which part of the arrivals has a word from low to high."""
    count = table.ordered
    if count == 0 or low > high:
        return 0.0
    begin = table.start + table.places
    # No word that is asked for is the greatest there is.
    first, stop = _below(words, begin, count, low), _below(words, begin, count, high + 1)
    if stop - first >= _FEW:
        return (stop - first) / count
    left, right = max(0, first - _AROUND), min(count - 1, stop + _AROUND)
    width = float(words[begin + right]) - float(words[begin + left])
    if width <= 0.0:
        return (stop - first) / count
    density = (right - left) / (count * width)
    return min(1.0, max((stop - first) / (4.0 * count), density * (float(high) - float(low) + 1.0)))
