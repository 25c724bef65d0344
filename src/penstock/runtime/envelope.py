"""An envelope for bytes that are kept: they can be trusted or refused.

    PENSTOCK | version | fingerprint | checksum | length | body

The fingerprint is of what the body was made for, query and columns: bodies with equal ones
fit each other. The checksum (BLAKE2b over fingerprint and body) finds truncation and
corruption before anything is believed. Bodies are Arrow IPC or JSON, never pickles: reading one
runs no code of it.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

from penstock.errors import SnapshotError

__all__ = ["VERSION", "seal", "unseal"]

MAGIC: Final = b"PENSTOCK"
VERSION: Final = 3
_HEADER: Final = struct.Struct("<8sI16s16sQ")


def seal(body: bytes, of: str) -> bytes:
    """A body in its envelope; `of` is what the fingerprint is taken from."""
    made_for = _digest(of.encode())
    return _HEADER.pack(MAGIC, VERSION, made_for, _digest(made_for, body), len(body)) + body


def unseal(data: bytes, what: str) -> memoryview:
    """The body of an envelope; `what` it should be, for errors."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SnapshotError(f"a {what} is bytes, got a {type(data).__name__}; pass it unchanged")
    view = memoryview(data)
    if len(view) < _HEADER.size or bytes(view[: len(MAGIC)]) != MAGIC:
        raise SnapshotError(
            f"these {len(view):,} bytes are no {what} of penstock's; pass what was saved, unchanged"
        )
    _, version, made_for, checksum, length = _HEADER.unpack_from(view)
    if version != VERSION:
        raise SnapshotError(
            f"the {what} has version {version}, this penstock reads version {VERSION}; "
            "read it with the release that wrote it"
        )
    body = view[_HEADER.size :]
    if len(body) != length or _digest(made_for, body) != checksum:
        raise SnapshotError(
            f"the {what} is damaged: {len(body):,} of {length:,} bytes, or some changed; "
            "use another copy"
        )
    return body


def _digest(*parts: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.digest()
