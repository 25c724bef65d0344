"""Join types: which tuples come out of a join, beside or instead of those that match."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["JOIN_TYPES", "JoinType"]


class JoinType(NamedTuple):
    """What comes out of a join. preserved: the streams whose tuples come out when they match
    nothing. matches: whether combinations come out. left_only: whether only tuples of the left
    come out, each once."""

    preserved: tuple[int, ...] = ()
    matches: bool = True
    left_only: bool = False


JOIN_TYPES: Final[dict[str, JoinType]] = {
    "inner": JoinType(),
    "left": JoinType((0,)),
    "right": JoinType((1,)),
    "full": JoinType((0, 1)),
    "semi": JoinType(left_only=True),
    "anti": JoinType((0,), matches=False, left_only=True),
}
