"""What a bucket gives out, as rows again: results; and if they are asked for, late rows, those that
broke a promise, and keys that are over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from penstock.model.binding import Binding
from penstock.spark.rows.blobs import BROKEN, OVER, RESULT, blob_schema, read_blob

__all__ = ["KIND", "Unpacker", "of_kind", "output_schema", "stream_rows", "with_kind"]

KIND: Final = "kind"
_OUTPUT_KINDS: Final = {RESULT: "result", OVER: "punctuation"}  # in the columns of the output


def output_schema(binding: Binding, kind: bool) -> StructType:
    """The columns that come out."""
    schema = from_arrow_schema(binding.output_schema(), prefer_timestamp_ntz=True)
    fields = [StructField(field.name, field.dataType) for field in schema.fields]
    return StructType([StructField(KIND, StringType()), *fields] if kind else fields)


@dataclass(frozen=True)
class Unpacker:
    """Output blobs back to rows; made for `mapInArrow`."""

    binding: Binding
    kind: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for stream, data in zip(
                batch.column("stream").to_pylist(), batch.column("data"), strict=True
            ):
                if not data.is_valid:
                    continue
                what, rows = self._read(stream, data.as_buffer())
                yield of_kind(rows, what) if self.kind else rows

    def _read(self, stream: int, data: pa.Buffer) -> tuple[str, pa.RecordBatch]:
        """The kind of some rows, and the rows in the columns of the output."""
        if stream in _OUTPUT_KINDS:
            return _OUTPUT_KINDS[stream], read_blob(data, self.binding.output_schema())
        what, number = ("late", stream) if stream < BROKEN else ("broken", stream - BROKEN)
        rows = read_blob(data, blob_schema(self.binding, number))
        return what, stream_rows(self.binding, number, rows)


def with_kind(schema: pa.Schema) -> pa.Schema:
    """The columns of the output with that of its kind."""
    return schema.insert(0, pa.field(KIND, pa.string()))


def of_kind(batch: pa.RecordBatch, what: str) -> pa.RecordBatch:
    """Rows of the output with their kind."""
    column = pa.repeat(pa.scalar(what, pa.string()), len(batch))
    return pa.RecordBatch.from_arrays([column, *batch.columns], schema=with_kind(batch.schema))


def stream_rows(binding: Binding, stream: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of a stream in the columns of the output, those of other streams null."""
    columns = [
        rows.column(out.column) if out.stream == stream else pa.nulls(len(rows), out.type)
        for out in binding.output
    ]
    time = rows.column(binding.query.streams[stream].time_column)
    schema = binding.output_schema()
    return pa.RecordBatch.from_arrays([*columns, time.cast(binding.event_time)], schema=schema)
