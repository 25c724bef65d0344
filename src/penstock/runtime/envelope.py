"""An envelope for bytes that are kept: they can be trusted or refused.

    PENSTOCK | version | checksum | length | body

The checksum (BLAKE2b over the body) finds truncation and corruption before anything in the
body is believed. Bodies are Arrow IPC or JSON, never pickles: reading one runs no code of it.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

from penstock.errors import SnapshotError

__all__ = ["VERSION", "seal", "unseal"]

MAGIC: Final = b"PENSTOCK"
VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sI16sQ")


def seal(body: bytes) -> bytes:
    """The body in its envelope."""
    return _HEADER.pack(MAGIC, VERSION, _checksum(body), len(body)) + body


def unseal(data: bytes, what: str) -> memoryview:
    """The body of an envelope; `what` it should be, for errors."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SnapshotError(f"{what} is bytes, got a {type(data).__name__}; pass it unchanged")
    view = memoryview(data)
    if len(view) < _HEADER.size or bytes(view[: len(MAGIC)]) != MAGIC:
        raise SnapshotError(f"these {len(view):,} bytes are no {what} of penstock's")
    _, version, checksum, length = _HEADER.unpack_from(view)
    if version != VERSION:
        raise SnapshotError(
            f"the {what} has version {version}, this penstock reads version {VERSION}; "
            "read it with the release that wrote it"
        )
    body = view[_HEADER.size :]
    if len(body) != length or _checksum(body) != checksum:
        raise SnapshotError(
            f"the {what} is damaged: {len(body):,} of {length:,} bytes, or some changed; "
            "use another copy"
        )
    return body


def _checksum(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()
