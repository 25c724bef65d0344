"""Packages that only some programs need: imported where they are used, or an error that says what
to install.

    with extra("lab", "the exact optimum"):
        from ortools.graph.python import min_cost_flow
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from penstock.errors import MissingExtraError

__all__ = ["EXTRAS", "check_extra", "extra"]

EXTRAS: Final = {
    "lab": ("ortools", "plotly", "scipy"),
    "spark": ("google", "grpc", "pandas", "py4j", "pyspark"),
}


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Around imports of an extra's packages. what: it is for, the subject of the message."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS[name]:
            raise  # not a missing extra, but something broken
        raise MissingExtraError(
            f"{what} needs {package}, which is not installed; "
            f"install it with: pip install 'penstock[{name}]'",
            name=error.name,
        ) from error


def check_extra(name: str, what: str, package: str) -> None:
    """Refuse before long work what would fail after it. package: that it is going to import."""
    with extra(name, what):
        import_module(package)
