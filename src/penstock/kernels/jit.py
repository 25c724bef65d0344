"""The one way to make a kernel.

Kernels are compiled once per machine (`compiler`) and kept in a private directory of the user's
cache (`kernel_files`). Compiled code is good for the sources of all kernels, not only for its own:
the directory carries a fingerprint of them. `kernel_pack` brings it to other machines.
Kernels never allocate and never raise: they return a status, and the caller makes room.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from penstock.kernels.compiler import Kernel, TypeQuestion
from penstock.kernels.kernel_files import KernelCache

__all__ = [
    "EntryPoint",
    "announce_compilation",
    "asks_type",
    "entry_point",
    "kernel",
    "kernel_cache",
    "outlined",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_KERNELS: Final = Path(__file__).resolve().parent
_KEPT_CACHES: Final = 4
_ENTRY_POINTS: Final[dict[Hashable, Any]] = {}  # by kernel and form of its arguments


@functools.cache
def kernel_cache() -> Path | None:
    """The directory of compiled kernels, made if need be; None if none can be made."""
    made_by = f"{numba.__version__} {sys.implementation.cache_tag} {platform.python_version()}"
    fingerprint = hashlib.sha256(made_by.encode())
    for source in sorted(_KERNELS.glob("**/*.py")):
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
    written = {}
    for cache in base.glob("kernels-*"):
        with contextlib.suppress(FileNotFoundError):  # another process may do the same
            written[cache] = cache.stat().st_mtime
    for cache in sorted(written, key=written.__getitem__)[:-_KEPT_CACHES]:
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
        f"penstock: compiling kernels for {joins}, once: 10 to 40 seconds",
        file=sys.stderr,
        flush=True,
    )
    if cache:
        with contextlib.suppress(OSError):  # it may have been removed meanwhile
            (cache / f"for {joins}").touch()


def kernel(function: _Function) -> _Function:
    """Compile `function`; it sees arrays and integers only.

    Without numba's runtime there is no reference counting, which took half the time of the
    loop, and allocation does not compile. Calls are inlined, since passing a `State` to a
    real call costs more than most kernels do.
    """
    return _compiled(function, inlined=True)


def asks_type(field: str, *, is_none: bool) -> Callable[[_Function], _Function]:
    """A kernel that says whether a field of its argument is None, or is not. It is answered when
    kernels are compiled: if the answer is no, what stands behind it is left out."""
    return lambda function: _compiled(function, True, TypeQuestion(field, is_none))


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
    # To work out the types of an arena takes longer than a small batch: once is enough.
    key = (compiled, _form(arguments))
    if key not in _ENTRY_POINTS:
        dispatcher: Any = compiled
        types = tuple(dispatcher.typeof_pyval(each) for each in arguments)
        _ENTRY_POINTS[key] = dispatcher.compile(types)
    code: _Function = _ENTRY_POINTS[key]
    return code


class EntryPoint:
    """The same of the types that a kernel is first called with."""

    def __init__(self, compiled: Callable[..., Any]) -> None:
        self._compiled = compiled
        self._code: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Call it, with arguments of the same types always."""
        if self._code is None:
            self._code = entry_point(self._compiled, arguments)
        return self._code(*arguments)


def _form(argument: Any) -> Hashable:
    """All that numba's type of an argument depends on."""
    if isinstance(argument, tuple):
        return (type(argument), *map(_form, argument))
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        layout = (flags.c_contiguous, flags.f_contiguous, flags.aligned, flags.writeable)
        return (argument.dtype, argument.ndim, layout)
    if isinstance(argument, int):
        return (type(argument), -(1 << 63) <= argument < 1 << 63)  # more is unsigned to numba
    return (type(argument), getattr(argument, "dtype", None))


def _compiled(
    function: _Function, inlined: bool, question: TypeQuestion | None = None
) -> _Function:
    if numba.config.DISABLE_JIT:
        return _quiet(function)
    compiled = Kernel(function, inlined, question)
    cache = kernel_cache()
    if cache is not None:
        compiled.keep_in(KernelCache(function, cache))
    return cast(_Function, compiled)


def _quiet(function: _Function) -> _Function:
    # Hashing relies on 64-bit wrap-around, of which plain numpy warns.
    @functools.wraps(function)
    def wrapped(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return wrapped  # type: ignore[return-value]  # same call, same result
