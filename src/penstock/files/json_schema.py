"""The columns of a JSON lines file: all that any of its lines has.

Arrow takes the columns of a file from its first block, and fails at a field that first appears
after it. So a file of more than a block is read twice: once, block by block, for its columns,
which are those of all blocks together, and then for its rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.json

__all__ = ["json_schema"]

_ROW: Final = re.compile(r"\bin row (\d+)")


def json_schema(stream: Any, block_bytes: int) -> pa.Schema:
    """The schema of a stream of JSON lines, in which text is text, also where it looks like a time:
    the parser would drop its zone. What is null throughout is text, too."""
    schema, seen = pa.schema([]), 0
    for block in _blocks(stream, block_bytes):
        options = pa.json.ReadOptions(block_size=len(block))
        try:
            table = pa.json.read_json(pa.BufferReader(block), options)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(_of_file(str(error), seen)) from error
        rows = f"rows {seen + 1:,} to {seen + table.num_rows:,}"
        schema = _unified(schema, _mapped_schema(table.schema, _text_of_time), rows)
        seen += table.num_rows
    return _mapped_schema(schema, _text_of_null)


def _blocks(stream: Any, size: int) -> Iterator[bytes]:
    """Whole lines, of about `size` bytes together. A file without any is one empty block, of which
    Arrow says what is wrong with it."""
    kept = [b""]
    is_first = True
    while read := stream.read(size):
        end = read.rfind(b"\n") + 1
        if end:
            yield b"".join([*kept, read[:end]])
            is_first, kept = False, []
        kept.append(read[end:])
    rest = b"".join(kept)
    if rest or is_first:
        yield rest


def _unified(before: pa.Schema, block: pa.Schema, rows: str) -> pa.Schema:
    """Both together; whole numbers give way to fractions, and nulls to anything."""
    try:
        return pa.unify_schemas([before, block], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        for field in block:
            was = before.field(field.name) if field.name in before.names else field
            try:
                pa.unify_schemas(
                    [pa.schema([was]), pa.schema([field])], promote_options="permissive"
                )
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise pa.ArrowInvalid(
                    f"JSON parse error: field {field.name!r} changed from {was.type} to "
                    f"{field.type} in {rows}"
                ) from error
        raise


def _of_file(problem: str, seen: int) -> str:
    """What Arrow says of a row of a block, counted from the beginning of the file and from one."""
    return _ROW.sub(lambda found: f"in row {seen + int(found[1]) + 1:,}", problem)


def _mapped_schema(schema: pa.Schema, changed: Callable[[pa.DataType], pa.DataType]) -> pa.Schema:
    return pa.schema([(field.name, _mapped(field.type, changed)) for field in schema])


def _mapped(kind: pa.DataType, changed: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type with the types in it changed, at any depth; the parser makes only these kinds."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _mapped(field.type, changed)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_mapped(kind.value_type, changed))
    return changed(kind)


def _text_of_time(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _text_of_null(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_null(kind) else kind
