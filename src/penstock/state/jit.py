"""The one way to make a kernel.

Kernels are compiled once per machine and kept in a private directory of the user's cache.
Numba looks only at a kernel's own file when it decides whether cached code is still good,
not at the kernels it calls; so the directory carries a fingerprint of all kernel sources.
Kernels never allocate and never raise: they return a status, and the caller makes room.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np

__all__ = ["announce_compilation", "kernel", "kernel_cache"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_PACKAGE = Path(__file__).resolve().parent.parent


@functools.cache
def kernel_cache() -> Path:
    """The directory of compiled kernels: NUMBA_CACHE_DIR, or one of our own."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    fingerprint = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for source in sorted(_PACKAGE.glob("state/*.py")) + sorted(_PACKAGE.glob("engine/*.py")):
        fingerprint.update(source.read_bytes())
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "penstock" / f"kernels-{fingerprint.hexdigest()[:16]}"


def _prepare_cache() -> None:
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    # Compiled code is loaded by unpickling it: nobody else may write there.
    kernel_cache().mkdir(mode=0o700, parents=True, exist_ok=True)
    numba.config.CACHE_DIR = str(kernel_cache())


@functools.cache
def announce_compilation() -> None:
    """Say once, on standard error, that the first run on a machine compiles."""
    if not numba.config.DISABLE_JIT and not any(kernel_cache().rglob("*.nbi")):
        print("penstock: compiling kernels for this machine, once", file=sys.stderr, flush=True)


def kernel(function: _Function) -> _Function:
    """Compile `function`; it sees arrays and integers only.

    Without numba's runtime there is no reference counting, which took half the time of the
    loop, and allocation does not compile. Calls are inlined, since passing a `State` to a
    real call costs more than most kernels do.
    """
    if numba.config.DISABLE_JIT:
        return _quiet(function)
    compiled: _Function = numba.njit(
        cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True
    )(function)
    return compiled


def _quiet(function: _Function) -> _Function:
    # Hashing relies on 64-bit wrap-around, of which plain numpy warns.
    @functools.wraps(function)
    def wrapped(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return wrapped  # type: ignore[return-value]  # same call, same result


_prepare_cache()
