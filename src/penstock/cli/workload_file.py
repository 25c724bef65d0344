"""A workload in a file: written by `penstock profile`, read where a plan is asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

from penstock.errors import PlanError
from penstock.files.command_error import CommandError, first_line
from penstock.model.workload.workload import Workload

__all__ = ["check_writable", "read_workload", "write_whole", "write_workload"]


def check_writable(path: Path, force: bool) -> None:
    """Refuse a file that cannot be written, before any work."""
    if path.is_dir():
        raise CommandError(f"cannot write {str(path)!r}: it is a directory; name a file in it")
    if path.exists() and not force:
        raise CommandError(f"{str(path)!r} exists already; give --force to replace it")
    if not path.parent.is_dir():
        raise CommandError(f"cannot write {str(path)!r}: there is no directory {path.parent}")


def write_workload(workload: Workload, path: Path) -> None:
    """As JSON."""
    write_whole(json.dumps(workload.to_dict(), indent=2), path)


def write_whole(text: str, path: Path) -> None:
    """Write text as a file of lines, whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(f"{text}\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CommandError(f"cannot write {str(path)!r}: {first_line(error)}") from error


def read_workload(path: Path) -> Workload:
    """What `write_workload` wrote, or a person."""
    try:
        return Workload.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CommandError(
            f"cannot read {str(path)!r}: {first_line(error)}; check the path"
        ) from error
    except ValueError as error:  # also of JSON, of UTF-8, and PlanError
        advice = "" if isinstance(error, PlanError) else "; it must be JSON"
        raise CommandError(f"{path} is no workload: {first_line(error)}{advice}") from error
