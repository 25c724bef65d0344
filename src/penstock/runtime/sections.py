"""The sections of a snapshot: named Arrow tables in one envelope.

The body is one Arrow IPC stream of a table [name, content], each content an Arrow IPC
stream of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.ipc

from penstock.runtime.envelope import seal, unseal

__all__ = ["pack_sections", "unpack_sections"]


def _ipc(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def pack_sections(
    sections: Mapping[str, pa.Table], of: str, compression: str | None = None
) -> bytes:
    """The bytes of named tables; `of` describes what they are of, for the fingerprint."""
    contents = pa.table(
        {
            "name": pa.array(list(sections), pa.string()),
            "content": pa.array([_ipc(table) for table in sections.values()], pa.large_binary()),
        }
    )
    return seal(_ipc(contents, compression), of)


def unpack_sections(data: bytes, what: str = "snapshot") -> dict[str, pa.Table]:
    """The named tables of such bytes; `what` they are called when they are damaged."""
    contents = pa.ipc.open_stream(unseal(data, what)).read_all()
    return {
        name.as_py(): pa.ipc.open_stream(content.as_buffer()).read_all()
        for name, content in zip(contents["name"], contents["content"], strict=True)
    }
