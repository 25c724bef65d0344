"""Types that cannot be kept as they come, and the types they are kept as instead.

Arrow cannot take rows of text and binary views, at any depth: they are kept as their large
counterparts. Run-end encoding is undone. So is dictionary encoding, or a window would keep
every value that ever was in a dictionary; ordered dictionaries are left alone, since their
order is a part of the type, but for the numbers of their values: these have 64 bits, so that the
values of many batches have room beside each other. All come out again as they came in.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.errors import SchemaError
from penstock.kernels.arena import Words

# The usual ones, to be recognised at a glance: it is done for every column of every batch.
_KEPT_AS_GIVEN: Final = frozenset(
    data_type.id
    for data_type in (
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(),
        pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(),
        pa.date32(), pa.timestamp("us"), pa.string(), pa.large_string(), pa.binary(),
        pa.decimal128(1),
    )
)  # fmt: skip

__all__ = [
    "as_given",
    "as_kept",
    "check_keepable",
    "decoded",
    "empty_array",
    "kept_type",
    "take_rows",
]


def kept_type(data_type: pa.DataType) -> pa.DataType:
    """The type that values of `data_type` are kept as: most often itself."""
    if pt.is_string_view(data_type):
        return pa.large_string()
    if pt.is_binary_view(data_type):
        return pa.large_binary()
    if pt.is_run_end_encoded(data_type) or _is_decoded(data_type):
        return kept_type(data_type.value_type)
    if pt.is_dictionary(data_type):
        return pa.dictionary(pa.int64(), data_type.value_type, data_type.ordered)
    if isinstance(data_type, pa.BaseExtensionType):
        storage = kept_type(data_type.storage_type)
        return data_type if storage == data_type.storage_type else storage
    if pt.is_struct(data_type):
        return pa.struct([_kept_field(field) for field in data_type])
    if pt.is_map(data_type):
        return pa.map_(
            _kept_field(data_type.key_field),
            _kept_field(data_type.item_field),
            keys_sorted=data_type.keys_sorted,
        )
    if pt.is_fixed_size_list(data_type):
        return pa.list_(_kept_field(data_type.value_field), data_type.list_size)
    for is_list, of in (
        (pt.is_list, pa.list_),
        (pt.is_large_list, pa.large_list),
        (pt.is_list_view, pa.list_view),
        (pt.is_large_list_view, pa.large_list_view),
    ):
        if is_list(data_type):
            return of(_kept_field(data_type.value_field))
    return data_type


def _is_decoded(data_type: pa.DataType) -> bool:
    """Whether values of a type are dictionary-encoded, and can be again."""
    if not pt.is_dictionary(data_type) or data_type.ordered:
        return False
    values = kept_type(data_type.value_type)
    tests = (pt.is_primitive, pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary)
    return any(test(values) for test in tests)


def _kept_field(field: pa.Field) -> pa.Field:
    if pt.is_dictionary(field.type) and not _is_decoded(field.type):
        return field  # Arrow cannot number its values anew inside of another type
    return field.with_type(kept_type(field.type))


def decoded(array: pa.Array) -> pa.Array:
    """The values of a dictionary-encoded array, in the type such values are kept as."""
    values = as_kept(array.dictionary)
    return pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()


def as_kept(array: pa.Array) -> pa.Array:
    """An array in the type it is kept as."""
    if array.type.id in _KEPT_AS_GIVEN:
        return array
    if pt.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    elif _is_decoded(array.type):
        array = decoded(array)
    kept = kept_type(array.type)
    if pt.is_dictionary(array.type) and kept != array.type:
        indices = array.indices.cast(kept.index_type)
        return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=kept.ordered)
    if isinstance(array.type, pa.BaseExtensionType) and kept != array.type:
        array = array.storage
    return array if kept == array.type else array.cast(kept)


def as_given(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """An array that was kept, in the type it came in."""
    if array.type == data_type:
        return array
    if pt.is_run_end_encoded(data_type):
        values = as_given(array, data_type.value_type)
        return pc.run_end_encode(values, run_end_type=data_type.run_end_type)
    if _is_decoded(data_type):
        encoded = array.dictionary_encode()
        indices = encoded.indices.cast(data_type.index_type)
        values = as_given(encoded.dictionary, data_type.value_type)
        return pa.DictionaryArray.from_arrays(indices, values)
    if pt.is_dictionary(data_type):
        return _with_used_values(array, data_type)
    if isinstance(data_type, pa.BaseExtensionType):
        storage = as_given(array, data_type.storage_type)
        return pa.ExtensionArray.from_storage(data_type, storage)
    return array.cast(data_type)


def _with_used_values(array: pa.DictionaryArray, data_type: pa.DataType) -> pa.DictionaryArray:
    """With the values that occur, in their order: all there ever were may be too many."""
    used = np.unique(array.indices.drop_null().to_numpy())
    # Nulls stay null, whatever their number was.
    places = np.searchsorted(used, array.indices.fill_null(0).to_numpy())
    null = array.indices.is_null().to_numpy(zero_copy_only=False)
    indices = pa.array(places, mask=null).cast(data_type.index_type)
    values = array.dictionary.take(pa.array(used))
    return pa.DictionaryArray.from_arrays(indices, values, ordered=data_type.ordered)


def check_keepable(schema: pa.Schema, stream: str) -> None:
    """Refuse columns of types that cannot be kept and given out again."""
    for field in schema:
        if field.type.id in _KEPT_AS_GIVEN:
            continue
        if _has_dictionary_inside(field.type):
            raise SchemaError(
                f"column {field.name!r} of stream {stream!r} has type {field.type}, a dictionary "
                "of dictionaries, which Arrow cannot read again once it is saved; decode it first"
            )
        try:
            kept = as_kept(pa.nulls(1, field.type))
            as_given(kept.take(pa.array([0])), field.type)
        except pa.ArrowException as error:
            raise SchemaError(
                f"column {field.name!r} of stream {stream!r} has type {field.type}, of which "
                f"Arrow cannot take rows ({error}); cast it, or drop it"
            ) from error


def _has_dictionary_inside(data_type: pa.DataType, *, inside: bool = False) -> bool:
    """Whether the values of a dictionary have dictionaries in them."""
    if isinstance(data_type, pa.BaseExtensionType):
        return _has_dictionary_inside(data_type.storage_type, inside=inside)
    if pt.is_dictionary(data_type):
        return inside or _has_dictionary_inside(data_type.value_type, inside=True)
    if pt.is_run_end_encoded(data_type):
        return _has_dictionary_inside(data_type.value_type, inside=inside)
    fields = [data_type.field(number) for number in range(data_type.num_fields)]
    return any(_has_dictionary_inside(field.type, inside=inside) for field in fields)


def empty_array(data_type: pa.DataType) -> pa.Array:
    """No values, of any type: `pa.array([], type)` does not know all of them."""
    return pa.nulls(0, data_type)


def take_rows(batch: pa.RecordBatch, rows: Words) -> pa.RecordBatch:
    """Rows of a batch, whatever its types."""
    chosen = pa.array(rows)
    columns = [as_given(as_kept(column).take(chosen), column.type) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
