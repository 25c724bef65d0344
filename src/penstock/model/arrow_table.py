"""Tables of other libraries, as Arrow's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.errors import InputError

__all__ = ["arrow_table"]


def arrow_table(data: Any, what: str) -> pa.Table | None:
    """What a user gives, as an Arrow table; None if it is nothing that Arrow could import."""
    if isinstance(data, pa.Table):
        return data
    try:
        if hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas: its index is no data
            return pa.Table.from_pandas(data, preserve_index=False)
        if isinstance(data, pa.RecordBatchReader):
            return data.read_all()
        if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
            return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"{what} cannot be imported as Arrow: {error}; convert it to a pyarrow.Table first"
        ) from error
    return None
