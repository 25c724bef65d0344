"""The snapshot's envelope: named Arrow tables in bytes that can be trusted or refused.

    PENSTOCK | version | checksum | length | body

The body is one Arrow IPC stream of a table [name, content], each content an Arrow IPC
stream of its own. Nothing in it is pickled: reading a snapshot runs no code from it. The
version is that of the sections; the checksum (BLAKE2b over the body) finds truncation and
corruption before anything is believed.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.ipc

from penstock.errors import SnapshotError

__all__ = ["VERSION", "pack_sections", "unpack_sections"]

MAGIC: Final = b"PENSTOCK"
VERSION: Final = 1
_HEADER: Final = struct.Struct("<8sI16sQ")


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def pack_sections(sections: Mapping[str, pa.Table]) -> bytes:
    """The bytes of named tables."""
    contents = pa.table(
        {
            "name": pa.array(list(sections), pa.string()),
            "content": pa.array([_ipc(table) for table in sections.values()], pa.large_binary()),
        }
    )
    body = _ipc(contents)
    return _HEADER.pack(MAGIC, VERSION, _checksum(body), len(body)) + body


def unpack_sections(data: bytes) -> dict[str, pa.Table]:
    """The named tables of such bytes."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SnapshotError(
            f"a snapshot is bytes, got a {type(data).__name__}; pass what snapshot() returned"
        )
    data = bytes(data)
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        raise SnapshotError(
            f"these {len(data):,} bytes are no penstock snapshot; "
            "pass what snapshot() returned, unchanged"
        )
    _, version, checksum, length = _HEADER.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(
            f"the snapshot has version {version}, this penstock reads version {VERSION}; "
            "restore it with the release that wrote it"
        )
    body = data[_HEADER.size :]
    if len(body) != length or _checksum(body) != checksum:
        raise SnapshotError(
            f"the snapshot is damaged: {len(body):,} of {length:,} bytes, or some changed; "
            "use another copy"
        )
    contents = pa.ipc.open_stream(body).read_all()
    return {
        name.as_py(): pa.ipc.open_stream(content.as_buffer()).read_all()
        for name, content in zip(contents["name"], contents["content"], strict=True)
    }


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()
