"""A number with its noun, as reports have it. Pure."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """Return `1 turn`, `2 turns`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
