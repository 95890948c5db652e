"""Progress that nobody watches."""

from __future__ import annotations


class NoProgress:
    """Implements `benchmarks.measuring.Progress`, and shows nothing."""

    def step(self, name: str, *, total: int) -> None:
        """Show nothing."""

    def advance(self, count: int = 1) -> None:
        """Show nothing."""

    def say(self, line: str) -> None:
        """Show nothing."""
