"""Frequencies that the user gives, in the place of learned ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import SchemaError
from penstock.kernels.arena import State, Words
from penstock.kernels.stats.tables import give
from penstock.model.binding import Binding
from penstock.windows.key_words import key_words

__all__ = ["fill_table", "given_words"]


def given_words(binding: Binding, stream: int, keys: list[Any]) -> Words:
    """The words of keys that a user gives, one value each, or a tuple for several columns."""
    schema, names = binding.schemas[stream], binding.query.keys[stream]
    assert schema is not None, "asked for bound streams only"
    try:
        columns = [keys] if len(names) == 1 else list(zip(*keys, strict=True))
        arrays = [
            pa.array(list(values), schema.field(name).type)
            for values, name in zip(columns, names, strict=True)
        ]
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaError(
            f"frequencies= of stream {binding.query.names[stream]!r} has keys that are no values "
            f"of {list(names)}: {error}; give them in the type of the column"
        ) from error
    words, _ = key_words(arrays, binding.key_kinds, len(keys))
    return words


def fill_table(
    state: State, binding: Binding, stream: int, given: Mapping[Any, float] | None
) -> None:
    """Write what is given of a stream to its table, once the stream is bound."""
    path = int(state.windows["paths"][stream])
    if given is None or binding.schemas[stream] is None or state.tables[path].given:
        return
    if not state.tables[path].places:  # neither what goes nor what is lost depends on them
        return
    words = given_words(binding, stream, list(given))
    weights = np.array(list(given.values()), np.float64)
    order = np.argsort(weights, kind="stable")
    # All of them zero: none of these keys ever comes.
    give(state, path, words[order], weights[order] / (weights.sum() or 1.0))
