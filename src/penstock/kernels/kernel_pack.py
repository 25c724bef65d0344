"""Compiled kernels as one file, for machines of the same kind: a cluster compiles once.

    manifest.json       what made it: penstock's kernels, numba and Python by their fingerprint, the
                        processor by its name and features; and the SHA-256 of each file
    penstock....        the files of the cache (`kernel_files`)

A pack that does not fit, is damaged, or could have been written by somebody else is refused with a
warning, and kernels are compiled as without it: its machine code is unpickled, so it is trusted as
much as penstock itself. Only its owner, or root, may be able to write to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import warnings
import zipfile
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from numba.core.registry import cpu_target

from penstock.errors import PlanWarning, StateError
from penstock.kernels.jit import kernel_cache
from penstock.kernels.kernel_files import checked_body

__all__ = ["PACK_NAME", "kernel_files", "processor", "processor_name", "take_pack", "write_pack"]

PACK_NAME: Final = "penstock-kernels.zip"
_MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1
_PREFIX: Final = "penstock."  # of the names of kernels, and so of files


class _Refused(Exception):
    """Why a pack is not taken."""


def processor() -> str:
    """What machine code depends on: the kind, the name and the features of the processor."""
    return repr(cpu_target.target_context.codegen().magic_tuple())


def processor_name() -> str:
    """The kind and the name of the processor, without its hundred features."""
    kind, name, _ = cpu_target.target_context.codegen().magic_tuple()
    return f"{name}, {kind}"


def kernel_files() -> list[Path]:
    """The compiled kernels of this version on this machine."""
    cache = kernel_cache()
    return [] if cache is None else sorted(cache.glob(f"{_PREFIX}*"))


def write_pack(target: Path) -> int:
    """Pack all compiled kernels of this version. Returns how many."""
    cache = kernel_cache()
    if cache is None:
        raise StateError(
            "compiled kernels cannot be kept, so there is nothing to pack; set XDG_CACHE_HOME to a "
            "directory of your own that can be written to"
        )
    whole = {file.name: file.read_bytes() for file in kernel_files()}
    whole = {name: data for name, data in whole.items() if checked_body(data) is not None}
    manifest = {
        "format": _FORMAT,
        "kernels": cache.name,
        "processor": processor(),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in whole.items()},
    }
    partial = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as pack:
            pack.writestr(_MANIFEST, json.dumps(manifest, indent=2))
            for name, data in whole.items():
                pack.writestr(name, data)
        partial.chmod(0o600)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return len(whole)


def take_pack(source: Path) -> int:
    """Put the kernels of a pack into this machine's cache. Returns how many were not there.

    One that is refused is warned of, and 0 is returned.
    """
    cache = kernel_cache()
    if cache is None:
        return 0
    try:
        return _taken(source, cache)
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError, _Refused) as error:
        warnings.warn(
            f"the compiled kernels in {str(source)!r} are not used: {error}; kernels are compiled "
            "here instead; make the pack anew with: penstock kernels pack",
            PlanWarning,
            stacklevel=2,
        )
        return 0


def _taken(source: Path, cache: Path) -> int:
    with source.open("rb") as file:
        _check_owner(os.fstat(file.fileno()))
        with zipfile.ZipFile(file) as pack:
            files = _checked(json.loads(pack.read(_MANIFEST)), cache)
            missing = {name: pack.read(name) for name in files if not (cache / name).exists()}
    for name, data in missing.items():
        if hashlib.sha256(data).hexdigest() != files[name] or checked_body(data) is None:
            raise _Refused(f"{name!r} in it is damaged")
    for name, data in missing.items():
        partial = cache / f".{name}.{uuid4().hex}"
        partial.write_bytes(data)
        partial.replace(cache / name)
    return len(missing)


def _check_owner(status: os.stat_result) -> None:
    if status.st_uid not in (os.getuid(), 0):
        raise _Refused(f"it belongs to user {status.st_uid}, not to {os.getuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise _Refused(f"others may write to it, its mode is {mode:o}; set it to 600")


def _checked(manifest: Any, cache: Path) -> dict[str, str]:
    """The files of a pack that fits, with their digests."""
    if manifest["format"] != _FORMAT:
        raise _Refused(f"its format is {manifest['format']!r}, not {_FORMAT}")
    if manifest["kernels"] != cache.name:
        raise _Refused("it was made by another version of penstock, numba or Python")
    if manifest["processor"] != processor():
        raise _Refused(f"it was made for another processor, {manifest['processor']}")
    files: dict[str, str] = manifest["files"]
    for name in files:
        if not name.startswith(_PREFIX) or "/" in name:
            raise _Refused(f"{name!r} is no name of a kernel")
    return files
