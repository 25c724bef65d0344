"""The policies as kernels see them: a number each."""

from __future__ import annotations

from typing import Final

__all__ = ["AGE", "EXPECTED_LIFE", "KINDS", "LIFE", "OLDEST", "PROB", "RANDOM"]

RANDOM: Final = 0
OLDEST: Final = 1
PROB: Final = 2
LIFE: Final = 3
EXPECTED_LIFE: Final = 4
AGE: Final = 5

KINDS: Final = {
    "random": RANDOM, "oldest": OLDEST, "prob": PROB, "life": LIFE,
    "expected_life": EXPECTED_LIFE, "age": AGE,
}  # fmt: skip
