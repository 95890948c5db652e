"""How a benchmark reports its progress, independent of how the progress is shown."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives a benchmark's progress. The command line shows it; tests collect it."""

    def step(self, name: str, *, total: int) -> None:
        """Start a step of `total` equal parts. The previous step is finished."""

    def advance(self, count: int = 1) -> None:
        """Report that `count` more parts of the step are done."""

    def say(self, line: str) -> None:
        """Show one plain sentence."""
