"""A few joined rows, for people."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
from rich.table import Table

__all__ = ["as_rich"]


def as_rich(table: pa.Table) -> Table:
    """Text to the left, all else to the right; of times only that of the day."""
    shown = Table(box=None, padding=(0, 1), header_style="cyan")
    for column in table.schema:
        is_text = pa.types.is_string(column.type)
        shown.add_column(column.name, justify="left" if is_text else "right", no_wrap=True)
    for row in table.to_pylist():
        shown.add_row(*(_cell(value) for value in row.values()))
    return shown


def _cell(value: datetime | int | str) -> str:
    if isinstance(value, datetime):
        return value.time().isoformat("milliseconds")
    return str(value)
