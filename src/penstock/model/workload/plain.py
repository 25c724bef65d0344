"""A workload as values that JSON has, and back.

JSON has no tuples for keys, so numbers by columns or by pairs are a list of records:

    {"version": 1,
     "rates": {"a": 100.0, "b": 20.0},
     "distinct": {"a": 5000.0, "b": [{"columns": ["x", "y"], "distinct": 70.0}]},
     "selectivities": [{"streams": ["a", "b"], "selectivity": 0.01}],
     "windows": {"a": "10 minutes"},
     "punctuation_rates": {"b": 2.0}}

What is not known is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from penstock.errors import PlanError
from penstock.model.duration import duration_us, format_us

__all__ = ["plain_workload", "unplain_fields"]

_VERSION: Final = 1


def plain_workload(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a workload, in plain values."""
    plain: dict[str, Any] = {"version": _VERSION}
    for field, value in fields.items():
        if value is not None:
            plain[field] = _PLAIN.get(field, _same)(value)
    return plain


def unplain_fields(plain: Any, fields: Sequence[str]) -> dict[str, Any]:
    """What a workload of these fields is made of, from plain values."""
    if not isinstance(plain, Mapping) or "rates" not in plain:
        raise PlanError(
            f"a workload is an object with rates, got {_short(plain)}; "
            "write it with `penstock profile --output`, or Workload.to_dict()"
        )
    version = plain.get("version", _VERSION)
    if version != _VERSION:
        raise PlanError(
            f"the workload is of version {version!r}, and this reads version {_VERSION}; "
            "measure it again"
        )
    given = {key: value for key, value in plain.items() if key != "version"}
    unknown = [key for key in given if key not in fields]
    if unknown:
        raise PlanError(f"a workload has no {unknown}; it has {list(fields)}")
    if isinstance(given.get("distinct"), Mapping):
        given["distinct"] = {
            name: _records(each, "columns", "distinct") if isinstance(each, list) else each
            for name, each in given["distinct"].items()
        }
    if isinstance(given.get("selectivities"), list):
        given["selectivities"] = _records(given["selectivities"], "streams", "selectivity")
    return given


def _records(records: Sequence[Any], key: str, value: str) -> dict[tuple[Any, ...], Any]:
    found: dict[tuple[Any, ...], Any] = {}
    for record in records:
        if not isinstance(record, Mapping) or set(record) != {key, value}:
            raise PlanError(f"expected an object with {key!r} and {value!r}, got {_short(record)}")
        names = record[key]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise PlanError(f"{key!r} must be a list of names, got {_short(names)}")
        if tuple(names) in found:
            raise PlanError(f"{value!r} of {names} is given twice; give it once")
        found[tuple(names)] = record[value]
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _same(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _plain_distinct(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {
        name: [{"columns": list(columns), "distinct": count} for columns, count in each.items()]
        if isinstance(each, Mapping)
        else each
        for name, each in value.items()
    }


def _plain_pairs(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return [{"streams": list(pair), "selectivity": share} for pair, share in value.items()]


def _plain_windows(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: str(window) for name, window in value.items()}
    return str(value)


def _plain_horizon(value: Any) -> str:
    return format_us(duration_us(value, "horizon")) if isinstance(value, timedelta) else value


_PLAIN: Final = {
    "distinct": _plain_distinct,
    "selectivities": _plain_pairs,
    "windows": _plain_windows,
    "horizon": _plain_horizon,
}
