"""What `penstock join` was asked for, made whole: its options become one value for each side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.cli.compression import inner_name
from penstock.cli.errors import CommandError
from penstock.model.limits import Limits

__all__ = ["both_sides", "key_columns", "late_path", "memory_limits", "stream_names"]

Names = Sequence[str]


def both_sides(both: str | None, left: str | None, right: str | None, option: str) -> list[str]:
    """The value of an option for each side, its own or the one for both."""
    values = []
    for side, own in (("left", left), ("right", right)):
        value = both if own is None else own
        if value is None:
            meant = "window" if option == "within" else option
            raise CommandError(
                f"the {side} file has no {meant}; give --{option}, or --{side}-{meant}"
            )
        values.append(value)
    return values


def key_columns(on: Names, left_on: Names, right_on: Names) -> list[list[str]]:
    """The key columns of each side. `on` names a column of both, or `left=right`."""
    if len(left_on) != len(right_on):
        raise CommandError(
            f"--left-on and --right-on come in pairs, got {len(left_on)} and {len(right_on)}; "
            "give one of each for every column of the key"
        )
    pairs = []
    for text in on:
        left, equals, right = text.partition("=")
        if not left or (equals and not right):
            raise CommandError(f"cannot read --on {text!r}; write a column, or left=right")
        pairs.append((left, right if equals else left))
    pairs += zip(left_on, right_on, strict=True)
    if not pairs:
        raise CommandError("the join has no key; give --on, or --left-on and --right-on")
    return [list(columns) for columns in zip(*pairs, strict=True)]


def stream_names(left: Path, right: Path, given: str | None) -> list[str]:
    """The names of the streams, which begin their output columns."""
    if given is not None:
        names = [name.strip() for name in given.split(",")]
        if len(names) != 2 or not all(names) or names[0] == names[1]:
            raise CommandError(
                f"--names needs two different names, got {given!r}; write for example left,right"
            )
        return names
    stems = [inner_name(path).stem for path in (left, right)]
    usable = stems[0] != stems[1] and all(stem.isidentifier() for stem in stems)
    return stems if usable else ["left", "right"]


def memory_limits(memory: str | None, shed: str | None, seed: int | None) -> Limits | None:
    """What the join may hold; None for all that it needs."""
    if memory is not None:
        return Limits(memory, shed="prob" if shed is None else shed, seed=seed or 0)
    for option, value in (("--shed", shed), ("--seed", seed)):
        if value is not None:
            raise CommandError(
                f"{option} {value} says how rows are dropped, and without --memory none are; "
                "give --memory, such as '100000 rows' or '512 MiB', or leave it out"
            )
    return None


def late_path(late: Path, name: str) -> Path:
    """Where the late rows of a stream go: late.csv.gz and orders make late_orders.csv.gz."""
    stem, dot, endings = late.name.partition(".")
    return late.with_name(f"{stem}_{name}{dot}{endings}")
