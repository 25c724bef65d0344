"""The measures that need no distance, one by one: each is what `compare` gives under its name.

E is the exact answer and A the approximate one. They are bags: E ∩ A has each row as often as it is
in both. The arguments are those of `compare`; so is the time, O(rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.errors import InputError
from penstock.lab.measures.comparison import compare

__all__ = [
    "cosine",
    "dice",
    "jaccard",
    "matching",
    "max_subset",
    "overlap",
    "precision",
    "recall",
    "symmetric_difference",
]

Names = Sequence[str] | None


def max_subset(exact: Any, approximate: Any, *, columns: Names = None) -> float:
    """|A| / |E| for A that is a part of E, which is what shedding gives: the part that came out.

    0 to 1. 1 when nothing is missing, so also when nothing was due; 0 when nothing came out. The
    paper counts the missing rows, |E - A|, and maximizes |A|: the same order of answers. Where A
    has rows that E has not it means nothing, and is refused: `recall`, `precision` and
    `symmetric_difference` are defined there.
    """
    told = compare(exact, approximate, columns=columns)
    if told.max_subset is None:
        raise InputError(
            f"MAX-subset is for an approximate answer that is a part of the exact one, but "
            f"{told.extra:,} of its {told.approximate:,} rows are not in the exact one, so the "
            "missing rows alone no longer tell the error; use symmetric_difference, which counts "
            "both, or recall and precision, which tell them apart"
        )
    return told.max_subset


def recall(exact: Any, approximate: Any, *, columns: Names = None) -> float:
    """|E ∩ A| / |E|: the part of what was due that came out.

    0 to 1. 1 when nothing is missing, so also when nothing was due; 0 when nothing in common.
    """
    return compare(exact, approximate, columns=columns).recall


def precision(exact: Any, approximate: Any, *, columns: Names = None) -> float:
    """|E ∩ A| / |A|: the part of what came out that was due.

    0 to 1. 1 when nothing is there in excess, so also when nothing came out; 0 when nothing in
    common.
    """
    return compare(exact, approximate, columns=columns).precision


def symmetric_difference(exact: Any, approximate: Any, *, columns: Names = None) -> int:
    """|E - A| + |A - E|: the rows that only one of the answers has.

    0 to |E| + |A|. 0 for equal bags. The number of missing rows where A is a part of E.
    """
    return compare(exact, approximate, columns=columns).symmetric_difference


def matching(exact: Any, approximate: Any, *, columns: Names = None) -> int:
    """|E ∩ A|, the matching coefficient: a number of rows, not a part of anything.

    0 to min(|E|, |A|). 0 when they have nothing in common, or one is empty.
    """
    return compare(exact, approximate, columns=columns).matching


def dice(exact: Any, approximate: Any, *, columns: Names = None) -> float:
    """2 |E ∩ A| / (|E| + |A|), the Dice coefficient.

    0 to 1. 1 for equal bags, empty ones included; 0 when they have nothing in common.
    """
    return compare(exact, approximate, columns=columns).dice


def jaccard(exact: Any, approximate: Any, *, columns: Names = None) -> float:
    """|E ∩ A| / (|E| + |A| - |E ∩ A|), the Jaccard coefficient: d / (2 - d) for a Dice one of d.

    Under the line is their union, which has each row as often as the answer with more of it.
    0 to 1. 1 for equal bags, empty ones included; 0 when they have nothing in common.
    """
    return compare(exact, approximate, columns=columns).jaccard


def cosine(exact: Any, approximate: Any, *, columns: Names = None) -> float:
    """|E ∩ A| / √(|E| |A|), the cosine coefficient: √(recall * precision).

    0 to 1. 1 for equal bags, empty ones included; 0 when they have nothing in common. The paper
    prints a sum under the root, by which equal bags of other sizes would have other values; the
    product is what the coefficient is.
    """
    return compare(exact, approximate, columns=columns).cosine


def overlap(exact: Any, approximate: Any, *, columns: Names = None) -> float:
    """|E ∩ A| / min(|E|, |A|), the overlap coefficient.

    0 to 1. 1 when one is a part of the other, so for everything that shedding gives, and when one
    is empty; 0 when neither is empty and they have nothing in common.
    """
    return compare(exact, approximate, columns=columns).overlap
