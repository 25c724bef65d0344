"""JSON lines out of Arrow columns: each column becomes text at once, then rows are joined.

Times are ISO 8601 text, decimals are numbers, and NaN and the infinities are null, for
which JSON has no other word.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["JsonLinesWriter"]

_ROWS: Final = 1 << 16
_NEEDS_ESCAPE: Final = r'["\\\x00-\x1f]'


class JsonLinesWriter:
    """Writes tables of one schema to a stream of bytes, an object on each line."""

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        self._sink = sink
        names = [json.dumps(name, ensure_ascii=False) for name in schema.names]
        self._openings = ["{" + names[0] + ":", *("," + name + ":" for name in names[1:])]

    def write_table(self, table: pa.Table) -> None:
        """Append the rows of `table`."""
        for start in range(0, table.num_rows, _ROWS):
            self._write(table.slice(start, _ROWS).combine_chunks())

    def _write(self, table: pa.Table) -> None:
        parts: list[Any] = []
        for opening, column in zip(self._openings, table.itercolumns(), strict=True):
            parts += [_text(opening), _texts(column.chunk(0))]
        lines = pc.binary_join_element_wise(*parts, _text("}\n"), _text(""))
        # The lines lie end to end in the array's own buffer: that is the file's text.
        _, offsets, characters = lines.buffers()
        length = memoryview(offsets).cast("q")[len(lines)]
        self._sink.write(characters.slice(0, length))

    def close(self) -> None:
        """Nothing is held back: the stream is its owner's to close."""


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _texts(values: pa.Array) -> pa.Array:
    """Each value as JSON, in a large_string array without nulls."""
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        texts = values.cast(pa.large_string())
    elif pa.types.is_floating(kind):
        finite = pc.if_else(pc.is_finite(values), values, None)
        texts = finite.cast(pa.large_string())
    elif pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        texts = values.cast(pa.large_string())
        if pa.types.is_timestamp(kind):
            texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
        texts = _quoted(texts)
    elif _is_text(kind) and not pc.any(pc.match_substring_regex(values, _NEEDS_ESCAPE)).as_py():
        texts = _quoted(values.cast(pa.large_string()))
    else:
        dumped = [json.dumps(_plain(v), ensure_ascii=False) for v in values.to_pylist()]
        texts = pa.array(dumped, pa.large_string())
    return texts.fill_null("null")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_text('"'), texts, _text('"'), _text(""))


def _plain(value: Any) -> Any:
    """A nested value with nothing in it that JSON does not know."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
