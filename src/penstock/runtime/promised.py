"""What a running join says of promises: those that were broken, and those that it makes itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from penstock.engine.intake import MIN_TS
from penstock.engine.release import Released
from penstock.errors import InputError
from penstock.model.amount import amount
from penstock.model.keys import value_type
from penstock.model.query import Query

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["check_kept", "promised_key", "propagated_table"]

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


def promised_key(
    query: Query, mapping: Mapping[str, Any] | None, columns: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The columns that a punctuation names; refused where no promise can be used."""
    if not query.keys[0] or query.counts:
        why = "its windows count rows or arrivals" if query.counts else "it has no key"
        raise InputError(f"this join cannot use promises: {why}")
    if mapping is not None and not isinstance(mapping, Mapping):
        raise InputError(
            f"punctuate takes the columns of the key as keywords, or as one mapping, got a "
            f"{type(mapping).__name__}; write punctuate(stream, {query.keys[0][0]}=...)"
        )
    twice = [name for name in mapping or () if name in columns]
    if twice:
        raise InputError(f"punctuate was given the columns {twice} twice; give each once")
    return {**(mapping or {}), **columns}


def propagated_table(join: Join) -> pa.Table:
    """The keys that have been propagated since the last call, in a type that those of all streams
    fit into."""
    keys, schemas = join.query.keys, join.driver.binding.schemas
    of_streams = [
        [value_type(schema.field(name).type) for name in key]
        for key, schema in zip(keys, schemas, strict=True)
        if schema is not None
    ]
    kinds = join.driver.binding.key_kinds
    types = [
        each[0] if len(set(each)) == 1 or pa.types.is_timestamp(each[0]) else kind.common
        for each, kind in zip(zip(*of_streams, strict=True), kinds, strict=True)
    ] or [pa.null()] * len(keys[0])
    columns = [pa.field(name, each) for name, each in zip(keys[0], types, strict=True)]
    promises = join.driver.promises
    parts = [] if promises is None else promises.told.drained()
    batches = []
    for part in parts:
        values = [column.cast(each) for column, each in zip(part.columns, types, strict=True)]
        at = pa.array(np.maximum(part.at, MIN_TS)).cast(_AT.type)
        batches.append(pa.RecordBatch.from_arrays([*values, at], schema=pa.schema([*columns, _AT])))
    return pa.Table.from_batches(batches, pa.schema([*columns, _AT]))
