"""What is likely wrong with a file that cannot be read, and what its owner can do about it.

Arrow says what it stumbled over, not what to do. The advice here is picked by what Arrow said
and by how the file begins.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa

from penstock.files.compression import inner_name, open_text

__all__ = ["separator_advice", "time_advice", "unreadable_advice"]

# The kinds of text, and what to do where one is empty.
_TEXT: Final = {
    "CSV": "a CSV file without rows still needs a header line that names its columns",
    "JSON lines": "a JSON lines file without rows has no columns; "
    "for no rows give a CSV file with only a header line",
}
_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}
_PEEKED_BYTES: Final = 4096
_RAGGED: Final = re.compile(r"Expected \d+ columns, got \d+")
_DAY_FIRST: Final = re.compile(r"'\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}\b")


def unreadable_advice(path: Path, kind: str, problem: str) -> str:
    """What to do about a file of this kind of which Arrow says that it has this problem."""
    if kind in _TEXT:
        beginning = _beginning(path)
        if beginning is None:
            return f"is it compressed, as its ending {path.suffix!r} says? if not, rename it"
        if not beginning.strip():
            return _TEXT[kind]
        advise = _csv_advice if kind == "CSV" else _json_advice
        return advise(path, beginning, problem)
    if path.stat().st_size == 0:
        return f"the file is empty, and no {kind} file; write it again"
    return f"is its content {kind}, and whole? its ending says so; write it again, or rename it"


def separator_advice(header: str) -> str | None:
    """What to do about a CSV file with this header line, where that has no commas."""
    if "," in header:
        return None
    for mark, name in _SEPARATORS.items():
        if mark in header:
            return f"its header is separated by {name}; penstock reads commas: save it with those"
    return None


def time_advice(problem: str) -> str:
    """What to do about a time that Arrow cannot read, and says so."""
    if "zone offset" in problem:
        return "some times have a zone and others none; end all of them in one, such as Z, or none"
    if _DAY_FIRST.search(problem):
        return "write the year first, then month and day: 2024-12-31, or 2024-12-31 23:59:59"
    return "write times in ISO 8601, such as 2024-12-31 23:59:59 or 2024-12-31T23:59:59Z"


def _json_advice(path: Path, beginning: str, problem: str) -> str:
    start = beginning.lstrip()[0]
    if start == "[":
        return (
            "it holds a JSON array; penstock reads JSON lines, an object on each line: "
            f"convert it, for example with jq -c '.[]' {inner_name(path).name}"
        )
    # An empty name is that of the line as a whole.
    if start != "{" or "Column()" in problem or "Invalid value" in problem:
        return 'write one JSON object on each line, such as {"key": 1, "time": "2024-12-31"}'
    if "changed from" in problem:
        return "a field has one type in all lines of a file; write its values alike"
    return _text_advice(problem)


def _csv_advice(path: Path, beginning: str, problem: str) -> str:
    separator = separator_advice(beginning.lstrip("\r\n").splitlines()[0])
    if separator:
        return separator
    if _RAGGED.search(problem):
        return (
            "every row needs as many values as the header line; "
            'put values that hold commas in quotes, such as "1,5"'
        )
    if "zone offset" in problem:
        return time_advice(problem)
    return _text_advice(problem)


def _text_advice(problem: str) -> str:
    if "UTF8" not in problem and "conversion error" in problem:
        return (
            "the types of a text file are guessed from its beginning: if this row is right, "
            "make it a parquet or Arrow file, which carry their types"
        )
    return "is it text, in UTF-8, and whole? write it again as such"


def _beginning(path: Path) -> str | None:
    """The first characters of a text file; None where it cannot be decompressed."""
    with suppress(pa.ArrowException, OSError):
        stream, _ = open_text(path)
        with stream:
            return bytes(stream.read(_PEEKED_BYTES)).decode("utf-8-sig", "replace")
    return None
