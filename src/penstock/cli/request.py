"""What a command was asked for, made whole: its options become one value for each file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.files.compression import inner_name
from penstock.files.errors import CommandError
from penstock.model.limits import Limits

__all__ = [
    "both_sides", "for_each_file", "key_columns", "late_path", "memory_limits", "plan_limits",
    "shared_columns", "stream_names",
]  # fmt: skip

Names = Sequence[str]


def both_sides(given: Names, left: str | None, right: str | None, option: str) -> list[str]:
    """The value of an option for each side: its own, or that given for both or for each."""
    shared: Sequence[str | None] = for_each_file(given, 2, option) if given else (None, None)
    values = []
    for side, own, common in (("left", left, shared[0]), ("right", right, shared[1])):
        value = common if own is None else own
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
    left, right = shared_columns(on, 2)
    keys = [[*left, *left_on], [*right, *right_on]]
    if not keys[0]:
        raise CommandError("the join has no key; give --on, or --left-on and --right-on")
    return keys


def shared_columns(on: Names, files: int) -> list[list[str]]:
    """The key columns of each file. `on` names a column of all, or `first=second=...`."""
    keys: list[list[str]] = [[] for _ in range(files)]
    for text in on:
        parts = text.split("=", files - 1) if files > 1 else [text]
        if len(parts) == 1:
            parts *= files
        if len(parts) != files or not all(parts):
            example = "=".join(
                ("left", "right") if files == 2 else (f"file{n + 1}" for n in range(files))
            )
            raise CommandError(f"cannot read --on {text!r}; write a column, or {example}")
        for key, column in zip(keys, parts, strict=True):
            key.append(column)
    return keys


def for_each_file(values: Names, files: int, option: str) -> list[str]:
    """The value of a repeatable option for each file: given once for all, or once for each."""
    if len(values) not in (1, files):
        raise CommandError(
            f"--{option} is given once for all files, or once for each of the {files} in their "
            f"order, got {len(values)} times"
        )
    return list(values) * (files if len(values) == 1 else 1)


_COUNTS: Final = {1: "one name", 2: "two different names"}


def stream_names(paths: Sequence[Path], given: str | None) -> list[str]:
    """The names of the streams, which begin their output columns."""
    usual = ["left", "right"] if len(paths) == 2 else [f"stream{n + 1}" for n in range(len(paths))]
    if given is not None:
        names = [name.strip() for name in given.split(",")]
        if len(names) != len(paths) or not all(names) or len(set(names)) < len(names):
            needed = _COUNTS.get(len(paths), f"{len(paths)} different names")
            raise CommandError(
                f"--names needs {needed}, got {given!r}; write for example {','.join(usual)}"
            )
        return names
    stems = [inner_name(path).stem for path in paths]
    usable = len(set(stems)) == len(stems) and all(stem.isidentifier() for stem in stems)
    return stems if usable else usual


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


def plan_limits(memory: str | None, service_rate: float | None) -> Limits | None:
    """What a join that is planned may hold and do; None for all that it needs."""
    if memory is None and service_rate is None:
        return None
    return Limits(memory, service_rate=service_rate)


def late_path(late: Path, name: str) -> Path:
    """Where the late rows of a stream go: late.csv.gz and orders make late_orders.csv.gz."""
    stem, dot, endings = late.name.partition(".")
    return late.with_name(f"{stem}_{name}{dot}{endings}")
