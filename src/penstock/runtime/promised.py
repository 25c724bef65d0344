"""What a running join says of promises: those that were broken, and those that it makes itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from penstock.engine.intake import MIN_TS
from penstock.engine.release import Released
from penstock.errors import InputError
from penstock.model.amount import amount
from penstock.model.query import Query

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["check_kept", "propagated_table"]

_AT: Final = pa.field("at", pa.timestamp("us"))


def check_kept(query: Query, released: Mapping[int, Released]) -> None:
    """Refuse a batch with tuples that break a promise."""
    for stream, each in released.items():
        if each.broken is not None:
            key = {name: each.broken.column(name)[0].as_py() for name in query.keys[stream]}
            raise InputError(
                f"stream {query.names[stream]!r} had promised not to bring "
                f"{amount(len(each.broken), 'tuple')} of this batch, the first with the key {key}; "
                "mend the promise, or start the join with promises='drop'"
            )


def propagated_table(join: Join) -> pa.Table:
    """The keys that have been propagated since the last call, as the first stream that is known
    has them."""
    keys, schemas = join.query.keys, join.driver.binding.schemas
    types = [pa.null()] * len(keys[0])
    for key, schema in zip(reversed(keys), reversed(schemas), strict=True):
        if schema is not None:
            types = [schema.field(name).type for name in key]
    columns = [pa.field(name, each) for name, each in zip(keys[0], types, strict=True)]
    promises = join.driver.promises
    parts = [] if promises is None else promises.told.drained()
    batches = []
    for part in parts:
        values = [_as(column, each) for column, each in zip(part.columns, types, strict=True)]
        at = pa.array(np.maximum(part.at, MIN_TS)).cast(_AT.type)
        batches.append(pa.RecordBatch.from_arrays([*values, at], schema=pa.schema([*columns, _AT])))
    return pa.Table.from_batches(batches, pa.schema([*columns, _AT]))


def _as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Values of a key in the type that a stream has them in."""
    if pa.types.is_dictionary(wanted):
        return column.cast(wanted.value_type).dictionary_encode().cast(wanted)
    return column.cast(wanted)
