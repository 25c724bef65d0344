"""The option --stream of `penstock explain`: one stream and what is known of it, as text.

    orders,rate=1000,window=10 minutes,distinct=60000,bytes=80,index=hash,probes=payments+refunds
    payments,rate=10,window=1 hour,distinct=30000,punctuation_rate=5

Only the name must be there; what is left out is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.files.command_error import CommandError
from penstock.model.workload.workload import Workload

__all__ = ["StreamOption", "given_workload", "parse_selectivities", "parse_streams"]

_NUMBERS: Final = {
    "rate": "rates", "distinct": "distinct", "bytes": "row_bytes",
    "punctuation_rate": "punctuation_rates",
}  # fmt: skip
_FIELDS: Final = (*_NUMBERS, "window", "index", "probes")
_EXAMPLE: Final = "orders,rate=1000,window=10 minutes,distinct=60000"


@dataclass(frozen=True)
class StreamOption:
    """A stream. told: the other fields, as they were written."""

    name: str
    told: dict[str, str]

    @property
    def is_measured(self) -> bool:
        """Whether it says what the stream is like, as a workload does."""
        return not self.told.keys().isdisjoint(_NUMBERS)


def parse_streams(texts: Sequence[str]) -> list[StreamOption]:
    """All streams that are given by hand."""
    streams = [_parsed(text) for text in texts]
    names = [stream.name for stream in streams]
    for name in names:
        if names.count(name) > 1:
            raise CommandError(f"--stream gives {name!r} twice; give each stream once")
    return streams


def _parsed(text: str) -> StreamOption:
    name, *parts = (part.strip() for part in text.split(","))
    if not name or "=" in name:
        raise CommandError(f"--stream begins with a name, got {text!r}; write {_EXAMPLE!r}")
    told: dict[str, str] = {}
    for part in parts:
        field, equals, value = (each.strip() for each in part.partition("="))
        if field not in _FIELDS or not equals or not value:
            raise CommandError(
                f"cannot read {part!r} in --stream {text!r}; it takes "
                f"{', '.join(f'{each}=' for each in _FIELDS)}"
            )
        if field in told:
            raise CommandError(f"--stream {text!r} gives {field}= twice; give it once")
        told[field] = value
    return StreamOption(name, told)


def given_workload(
    streams: Sequence[StreamOption], selectivities: dict[tuple[str, str], float] | None
) -> Workload | None:
    """What is known of streams; None when it is nothing at all."""
    fields: dict[str, Any] = {}
    for field, of_workload in _NUMBERS.items():
        told = {
            stream.name: _number(stream.told[field], field, stream.name)
            for stream in streams
            if field in stream.told
        }
        if told:
            fields[of_workload] = told
    if not fields and not selectivities:
        return None
    missing = [stream.name for stream in streams if "rate" not in stream.told]
    if missing:
        raise CommandError(
            f"the rate of {missing} is not known; give rate= with every --stream, or with none"
        )
    return Workload(**fields, selectivities=selectivities)


def parse_selectivities(texts: Sequence[str]) -> dict[tuple[str, str], float] | None:
    """By pair of streams: from a,b=0.01."""
    found = {}
    for text in texts:
        pair, equals, share = text.partition("=")
        names = [name.strip() for name in pair.split(",")]
        if not equals or len(names) != 2 or not all(names):
            raise CommandError(f"cannot read --selectivity {text!r}; write for example a,b=0.01")
        found[names[0], names[1]] = _number(share, "selectivity", pair)
    return found or None


def _number(text: str, field: str, whose: str) -> float:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        raise CommandError(f"{field} of {whose} must be a number, got {text!r}") from None
