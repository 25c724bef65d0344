"""Compiled kernels as files: one for each entry point and the types of its arguments.

    penstock.kernels.loop.arrive-<digest>     a digest of types, processor and body
        the SHA-256 of what follows
        numba's form of the machine code

Nothing in a file or its name depends on where penstock is installed, so files can be brought from
one machine to another of the same kind. What they are good for is the name of their directory, a
fingerprint of all kernel sources. The machine code is unpickled when it is loaded: see `jit` for
who may own it. A file that is damaged is as good as none.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

__all__ = ["KernelCache", "checked_body"]

_DIGEST_BYTES: Final = 32


def checked_body(data: bytes) -> bytes | None:
    """What a file holds; None if it is damaged."""
    digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return body if hashlib.sha256(body).digest() == digest else None


class KernelCache(_Cache):  # type: ignore[misc]  # numba has no types
    """The files of one kernel, as numba asks for them."""

    def __init__(self, function: Callable[..., Any], directory: Path) -> None:
        self._function = function
        self._directory = directory
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """Where they are."""
        return str(self._directory)

    def enable(self) -> None:
        """Use them."""
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write them."""
        self._enabled = False

    def flush(self) -> None:
        """Remove them."""
        for file in self._directory.glob(f"{self._name}-*"):
            file.unlink(missing_ok=True)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for these types, or None."""
        if not self._enabled:
            return None
        target_context.refresh()
        try:
            body = checked_body(self._file(sig, target_context.codegen()).read_bytes())
        except OSError:
            return None
        if body is None:
            return None
        reduced = pickle.loads(body)  # noqa: S301  # of this user alone: see jit
        return CompileResult._rebuild(target_context, *reduced)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code. If it cannot be written, it is compiled again next time."""
        if not self._enabled:
            return
        if data.library.has_dynamic_globals:
            raise AssertionError(f"{self._name} has addresses of this process in its code")
        body = dumps(data._reduce())
        file = self._file(sig, data.codegen)
        partial = file.with_name(f".{file.name}.{uuid4().hex}")
        try:
            partial.write_bytes(hashlib.sha256(body).digest() + body)
            partial.replace(file)
        except OSError:
            partial.unlink(missing_ok=True)

    @property
    def _name(self) -> str:
        return f"{self._function.__module__}.{self._function.__qualname__}"

    def _file(self, sig: Any, codegen: Any) -> Path:
        body = hashlib.sha256(self._function.__code__.co_code).hexdigest()
        key = repr((str(sig), codegen.magic_tuple(), body, os.name))
        return self._directory / f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}"
