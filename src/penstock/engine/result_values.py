"""What results are worth to the user, by the tuples of one stream.

An expression over one stream gives each of its tuples a value: what results with it are worth.
Tuples of other streams count as if all results were worth the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.engine.arrivals import Arrivals
from penstock.engine.residual import evaluated
from penstock.errors import SchemaError
from penstock.model.binding import Binding
from penstock.model.limits import Limits
from penstock.model.predicates.predicate import Expression
from penstock.model.predicates.where import parse_expression
from penstock.model.query import Query

__all__ = ["ResultValues"]

_MOST: Final = 1e30  # products of it and of rates are numbers still


@dataclass(frozen=True)
class ResultValues:
    """expression: over the columns of `stream`."""

    expression: Expression
    stream: int

    @classmethod
    def of(cls, query: Query, limits: Limits | None) -> ResultValues | None:
        """As limits say; None when all results are alike."""
        if limits is None or limits.value is None:
            return None
        expression = parse_expression(limits.value, query.names, "value")
        (stream,) = {column.stream for column in expression.columns}
        return cls(expression, stream)

    def of_tuples(self, stream: int, arrivals: Arrivals) -> npt.NDArray[np.float64]:
        """What results with these tuples are worth: zero if it is null or below zero."""
        if stream != self.stream:
            return np.ones(len(arrivals), np.float64)
        worths = evaluated(self.expression, lambda _, name: arrivals.columns[name])
        floats = pc.fill_null(worths.cast(pa.float64(), safe=False), 0.0).to_numpy()
        return np.clip(np.nan_to_num(floats), 0.0, _MOST).astype(np.float64)

    def check(self, binding: Binding) -> None:
        """Refuse columns that are not kept, or are no numbers."""
        schema, name = binding.schemas[self.stream], binding.query.names[self.stream]
        if schema is None:
            return
        for column in sorted(each.name for each in self.expression.columns):
            what = f"value= needs column {column!r} of stream {name!r}, which"
            if column not in schema.names:
                raise SchemaError(f"{what} is not there; its columns are {schema.names}")
            if column not in binding.kept[self.stream]:
                raise SchemaError(f"{what} is not kept; add it to select=")
            kind = schema.field(column).type
            if not (pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)):
                raise SchemaError(f"{what} has type {kind} and is no number; cast it first")
