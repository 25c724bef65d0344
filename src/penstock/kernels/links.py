"""Links: from an index to the newest tuple of a chain, and from each tuple to the next older.

A link is the low 31 bits of a sequence number. It need not be kept right when tuples leave:
whether it still leads to a tuple of the chain is seen when it is followed. It does when that
sequence number is still in the ring, and the record there has the key looked for. A number
that has come round again after 2^31 arrivals fails on the key: a live tuple of the same key
would have been linked in the meantime. Older tuples of a chain have smaller numbers, so the
first link that fails ends the chain.

This is lazy invalidation (Kang et al.'s earlier version): nothing in an index is touched
when a tuple expires, and an arrival touches one record, its own. Linking both ways and
unlinking on expiry made the loop half as fast again once windows outgrew the cache.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.kernels.jit import kernel

__all__ = ["LINK_MASK", "NOWHERE", "follow", "link_to"]

LINK_MASK: Final = 0x7FFF_FFFF
NOWHERE: Final = -1  # no sequence number


@kernel
def link_to(sequence: int) -> int:
    """The link to a tuple."""
    return sequence & LINK_MASK


@kernel
def follow(window: Any, before: int, link: int) -> int:
    """The sequence number below `before` that a link leads to, or NOWHERE.

    `before` is the tuple the link stands in, or the head of the window: a chain never leads
    up, not even by a number that has come round.
    """
    nearest = before - 1
    sequence = nearest - ((nearest - link) & LINK_MASK)
    return sequence if sequence >= window.tail else NOWHERE
