"""What a command cannot do for its user: shown as one line, never as a traceback."""

from __future__ import annotations

from penstock.errors import PenstockError

__all__ = ["CommandError", "first_line"]


class CommandError(PenstockError):
    """A command was asked for something that does not work: a file, a column, an option."""


def first_line(error: BaseException) -> str:
    """What an error of Arrow or of the system says, without the rest of its story."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
