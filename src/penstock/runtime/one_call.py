"""One call at a time: a second one is refused, not queued.

Kernels run without Python's lock, over memory that another call may move or give back. So a call
that finds another in the same object, of another thread or further up in its own, must not begin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from penstock.errors import StateError

__all__ = ["one_at_a_time"]


class _Guarded(Protocol):
    """busy: held while a call is in the object."""

    busy: Lock


_Owner = TypeVar("_Owner", bound=_Guarded)
_Given = ParamSpec("_Given")
_Brought = TypeVar("_Brought")


def one_at_a_time(
    method: Callable[Concatenate[_Owner, _Given], _Brought],
) -> Callable[Concatenate[_Owner, _Given], _Brought]:
    """The same method, refused while another that is guarded so runs on its object."""

    @wraps(method)
    def call(owner: _Owner, /, *args: _Given.args, **keywords: _Given.kwargs) -> _Brought:
        if not owner.busy.acquire(blocking=False):
            raise StateError(
                f"{method.__name__} was called while another call is in this join; wait until that "
                "returns, give each thread its own join, or guard this one with a lock"
            )
        try:
            return method(owner, *args, **keywords)
        finally:
            owner.busy.release()

    return call
