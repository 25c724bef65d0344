"""Counts as people read them: with the word for what is counted, in the singular for one."""

from __future__ import annotations

__all__ = ["amount"]


def amount(count: int, noun: str, nouns: str | None = None) -> str:
    """Such as "1 result" and "2,000 results". nouns: the plural, if it is not noun + s."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"
