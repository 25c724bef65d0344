"""The words of tuples: what kernels see of them beside their time, one for each path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.residual import in_order
from penstock.kernels.arena import Flags, Words
from penstock.model.access import Equal
from penstock.model.binding import Binding
from penstock.windows.key_words import key_words
from penstock.windows.order import order_words

__all__ = ["TupleWords", "tuple_words"]


class TupleWords(NamedTuple):
    """words: words[w], those for path w. keyed: which have a key, and all else that must equal
    something. ordered: which have a value for all that is compared by order. None: all."""

    words: Words
    keyed: Flags | None
    ordered: Flags | None


def tuple_words(
    binding: Binding, stream: int, columns: Mapping[str, pa.Array], rows: int
) -> TupleWords:
    """The words of a stream's tuples with these columns, in kept types."""
    paths = binding.query.access.words[stream]
    words: list[Words] = []
    keyed: Flags | None = None
    ordered: Flags | None = None
    for path in paths:
        if isinstance(path, Equal):
            of_path, present = key_words(
                [columns[name] for name in path.columns], binding.kinds[path.group], rows
            )
            if path.null_safe and present is not None:
                # Null equals null: whatever has one somewhere is a candidate for what has one.
                of_path, present = np.where(present, of_path, 0), None
            keyed = _both(keyed, present)
        else:
            values = in_order(path.expression, lambda _, name: columns[name])
            of_path, present = order_words(values, "a side of a comparison in where=")
            ordered = _both(ordered, present)
        words.append(of_path)
    # Nearly every stream has one path, and np.stack takes longer than all else of a small push.
    together = words[0].reshape(1, -1) if len(words) == 1 else np.stack(words)
    return TupleWords(together, keyed, ordered)


def _both(one: Flags | None, other: Flags | None) -> Flags | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
