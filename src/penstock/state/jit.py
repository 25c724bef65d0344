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
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

__all__ = ["announce_compilation", "entry_point", "kernel", "kernel_cache", "outlined"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Of an array: how it lies in memory (C, Fortran), and whether it is aligned and may be written.
_TYPED_FLAGS: Final = 0x1 | 0x2 | 0x100 | 0x400
_ENTRY_POINTS: Final[dict[Any, Any]] = {}  # by kernel and kinds of arguments
_PACKAGE: Final = Path(__file__).resolve().parent.parent
_KEPT_CACHES: Final = 4


@functools.cache
def kernel_cache() -> Path | None:
    """The directory of compiled kernels, made if need be; None where none can be made."""
    # The path, because numba looks for the kernels of one path only.
    made_by = f"{numba.__version__} {sys.version} {_PACKAGE}"
    fingerprint = hashlib.sha256(made_by.encode())
    for package in ("state", "stats", "shedding", "engine", "offline"):
        for source in sorted(_PACKAGE.glob(f"{package}/**/*.py")):
            fingerprint.update(source.read_bytes())
    given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    base = Path(given).expanduser() / "penstock"
    cache = base / f"kernels-{fingerprint.hexdigest()[:16]}"
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        cache.mkdir(mode=0o700, exist_ok=True)
        # Compiled code is loaded by unpickling it: nobody else may own it.
        if cache.stat().st_uid != os.getuid() or not os.access(cache, os.W_OK):
            return None
        cache.touch()
        _remove_old(base)
    except OSError:
        return None
    return cache


def _remove_old(base: Path) -> None:
    """Keep the kernels of the last few versions only."""
    caches = sorted(base.glob("kernels-*"), key=lambda each: each.stat().st_mtime)
    for cache in caches[:-_KEPT_CACHES]:
        shutil.rmtree(cache, ignore_errors=True)


@functools.cache
def announce_compilation(joins: str) -> None:
    """Say once, on standard error, that the first run on a machine compiles.

    joins: which ones, for kernels are compiled apart for plain joins and for others.
    """
    cache = kernel_cache()
    if numba.config.DISABLE_JIT or (cache and (cache / f"for {joins}").exists()):
        return
    print(
        f"penstock: compiling kernels for {joins}, once: up to a minute",
        file=sys.stderr,
        flush=True,
    )
    if cache:
        (cache / f"for {joins}").touch()


def kernel(function: _Function) -> _Function:
    """Compile `function`; it sees arrays and integers only.

    Without numba's runtime there is no reference counting, which took half the time of the
    loop, and allocation does not compile. Calls are inlined, since passing a `State` to a
    real call costs more than most kernels do.
    """
    return _compiled(function, inlined=True)


def outlined(function: _Function) -> _Function:
    """A kernel that stays a call of its own, for what is long and not always done.

    It takes an array and records at most, which cost little to pass.
    """
    return _compiled(function, inlined=False)


def entry_point(compiled: _Function, arguments: tuple[Any, ...]) -> _Function:
    """The code of a kernel for arguments of these types, and of no others.

    Numba looks up the types of all arguments in every call. With an arena that takes longer than
    to work on one tuple. The caller sees to it that they are always the same.
    """
    if not isinstance(compiled, Dispatcher):
        return compiled  # a plain function, without the JIT, or around a kernel that is timed
    # Numba works a type out anew for each value: milliseconds for an arena, and on Spark every
    # bucket has one in every batch.
    kinds = (compiled, _kind(arguments))
    if kinds not in _ENTRY_POINTS:
        dispatcher: Any = compiled
        types = tuple(dispatcher.typeof_pyval(each) for each in arguments)
        _ENTRY_POINTS[kinds] = dispatcher.compile(types)
    code: _Function = _ENTRY_POINTS[kinds]
    return code


def _kind(value: Any) -> Any:
    """All that numba's type of a value depends on."""
    if isinstance(value, tuple):
        return type(value), tuple(_kind(each) for each in value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num & _TYPED_FLAGS
    return type(value)


def _compiled(function: _Function, inlined: bool) -> _Function:
    if numba.config.DISABLE_JIT:
        return _quiet(function)
    cache = kernel_cache()
    users = numba.config.CACHE_DIR
    try:
        # Only while a kernel is made: other functions of this process have their own place.
        numba.config.CACHE_DIR = str(cache or users)
        compiled: _Function = numba.njit(
            cache=cache is not None,
            nogil=True,
            error_model="numpy",
            _nrt=False,
            forceinline=inlined,
        )(function)
    finally:
        numba.config.CACHE_DIR = users
    return compiled


def _quiet(function: _Function) -> _Function:
    # Hashing relies on 64-bit wrap-around, of which plain numpy warns.
    @functools.wraps(function)
    def wrapped(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return wrapped  # type: ignore[return-value]  # same call, same result
