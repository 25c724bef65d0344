"""How errors of ours leave a Python worker of Spark: with their message, and nothing before it.

Spark sends the whole traceback of a worker to the driver, as the text of its own exception. If an
error says what is wrong and what to do, its message is all there is to read. So a variable makes
Spark leave the traceback out: its worker looks at it when an error has come up. The worker ends
with the error, and the variable with the worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from penstock.errors import PenstockError

__all__ = ["plain_errors"]

_HIDE_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Around what a worker runs. Other errors keep their traceback."""
    try:
        yield
    except PenstockError:
        os.environ[_HIDE_TRACEBACK] = "1"
        raise
