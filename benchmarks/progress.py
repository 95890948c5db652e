"""How a benchmark says where it is, without knowing who shows it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Where a benchmark tells its progress. The command line shows it; tests collect it."""

    def step(self, name: str, *, total: int) -> None:
        """Begin a step of `total` equal pieces; the step before it is over."""

    def advance(self, count: int = 1) -> None:
        """Say that so many pieces of the step are done."""

    def say(self, line: str) -> None:
        """Tell one plain sentence."""


class NoProgress:
    """Progress that nobody watches."""

    def step(self, name: str, *, total: int) -> None:
        """Show nothing."""

    def advance(self, count: int = 1) -> None:
        """Show nothing."""

    def say(self, line: str) -> None:
        """Show nothing."""
