"""What the hot state of queries may look like on disk, at any moment and after any crash."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

# Two are kept; one more is there between a publish and the clean-up that follows it.
_MOST_OF_A_BUCKET = 3


def complaints(scratch: Path) -> list[str]:
    """What is wrong in a scratch directory: what others could read, and what piles up."""
    found = []
    for directory in [*scratch.glob("penstock-*"), *scratch.glob("penstock-*/*")]:
        with suppress(FileNotFoundError):  # the query goes on, or has ended
            mode = directory.stat().st_mode & 0o777
            if mode != 0o700:
                found.append(f"{directory} has mode {mode:o}")
    for query in scratch.glob("penstock-*/*"):
        with suppress(FileNotFoundError):
            states = Counter(each.name.partition(".")[0] for each in query.iterdir())
            states.pop("claimed", None)
            if states and max(states.values()) > _MOST_OF_A_BUCKET:
                found.append(f"{query} has {states}")
    return found


def holding(scratch: Path) -> list[int]:
    """The numbers of the processes that have windows in their hands."""
    return sorted(int(each.name.split(".")[1]) for each in scratch.glob("penstock-*/*/claimed.*"))
