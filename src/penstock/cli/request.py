"""What a command was asked for, made whole: its options become the streams of a job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.files.command_error import CommandError
from penstock.files.compression import inner_name
from penstock.jobs.job import JobStream
from penstock.model.limits import Limits

__all__ = [
    "either_side", "for_each_file", "job_streams", "late_path", "memory_limits", "paired_columns",
    "plan_limits", "shared_columns",
]  # fmt: skip

Names = Sequence[str]


def job_streams(
    files: Sequence[Path],
    names: str | None,
    keys: Sequence[Names],
    time: Names,
    within: Names,
) -> list[JobStream]:
    """The streams of a job by the options of a command. keys: the columns of each file's key. Times
    and windows are given once for all files, or once for each."""
    if not time:
        raise CommandError("the files have no time; give --time")
    if not within:
        raise CommandError("the files have no window; give --within, such as '10 minutes'")
    count = len(files)
    return [
        JobStream(*stream)
        for stream in zip(
            files,
            stream_names(files, names),
            keys,
            for_each_file(time, count, "time"),
            for_each_file(within, count, "within"),
            strict=True,
        )
    ]


def either_side(given: Names, left: str | None, right: str | None, option: str) -> list[str]:
    """An option for two files, some of which may be given for one side."""
    if left is None and right is None:
        return list(given)
    both: Sequence[str | None] = for_each_file(given, 2, option) if given else (None, None)
    values = [both[0] if left is None else left, both[1] if right is None else right]
    whole = [value for value in values if value is not None]
    if len(whole) < 2:
        side = "left" if values[0] is None else "right"
        lacks = "window" if option == "within" else option
        raise CommandError(f"the {side} file has no {lacks}; give --{option} once for each file")
    return whole


def paired_columns(on: Names, left_on: Names, right_on: Names) -> list[list[str]]:
    """The key columns of two files: those of `on`, and those given for each side."""
    if len(left_on) != len(right_on):
        raise CommandError(
            f"--left-on and --right-on come in pairs, got {len(left_on)} and {len(right_on)}; "
            "give --on left=right for every column of the key"
        )
    left, right = shared_columns(on, 2)
    return [[*left, *left_on], [*right, *right_on]]


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
