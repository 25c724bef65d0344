"""What a bucket gives out, as rows again: results, and late rows if they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from penstock.model.binding import Binding
from penstock.spark.rows.blobs import RESULT, blob_schema, read_blob

__all__ = ["KIND", "Unpacker", "output_schema"]

KIND: Final = "kind"


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
        results = self.binding.output_schema()
        for batch in batches:
            for stream, data in zip(
                batch.column("stream").to_pylist(), batch.column("data"), strict=True
            ):
                if not data.is_valid:
                    continue
                if stream == RESULT:
                    yield _of_kind(read_blob(data.as_buffer(), results), "result", self.kind)
                else:
                    schema = blob_schema(self.binding, stream)
                    late = read_blob(data.as_buffer(), schema)
                    yield _of_kind(late_rows(self.binding, stream, late), "late", self.kind)


def _of_kind(batch: pa.RecordBatch, what: str, kind: bool) -> pa.RecordBatch:
    if not kind:
        return batch
    column = pa.repeat(pa.scalar(what, pa.string()), len(batch))
    return pa.RecordBatch.from_arrays([column, *batch.columns], [KIND, *batch.schema.names])


def late_rows(binding: Binding, stream: int, late: pa.RecordBatch) -> pa.RecordBatch:
    """Late rows of a stream in the columns of the output, those of other streams null."""
    columns = [
        late.column(out.column) if out.stream == stream else pa.nulls(len(late), out.type)
        for out in binding.output
    ]
    time = late.column(binding.query.streams[stream].time_column)
    schema = binding.output_schema()
    return pa.RecordBatch.from_arrays([*columns, time.cast(binding.event_time)], schema=schema)
