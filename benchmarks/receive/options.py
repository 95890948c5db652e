"""The options of the receive benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReceiveBenchOptions:
    """The options of one run. The defaults are a full run.

    `speakers`: how many speak at once, one number after the other. `bot_speakers`: the same for the whole bot.
    `seconds`: how long they speak. `only`: the parts to measure; empty means all. `node_dir`: where the packages of the
    Node.js peer are kept; by default in a folder that is deleted.
    """

    speakers: tuple[int, ...] = (10, 50, 100, 150)
    bot_speakers: tuple[int, ...] = (50, 100)
    seconds: float = 6.0
    bot_seconds: float = 12.0
    only: tuple[str, ...] = ()
    node_dir: Path | None = None

    @classmethod
    def quick(cls, **chosen: object) -> ReceiveBenchOptions:
        """Return the options for a short run, which only checks that everything works."""
        small = {"speakers": (3,), "bot_speakers": (3,), "seconds": 1.0, "bot_seconds": 2.0}
        return cls(**{**small, **chosen})  # type: ignore[arg-type]

    def wants(self, part: str) -> bool:
        """Return whether this part has to be measured."""
        return not self.only or part in self.only

    @property
    def people(self) -> int:
        """How many people are in the channel."""
        return max((*self.speakers, *(self.bot_speakers if self.wants("bot") else ())))
