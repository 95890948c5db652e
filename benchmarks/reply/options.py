"""The options of the reply benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReplyBenchOptions:
    """The options of one run. The defaults are a full run.

    `speech`: a folder of real recordings with a manifest; without it the audio of the bundled scenarios is used.
    `recordings`: how many recordings are answered one by one; 0 means all. `crowd_recordings`: how many are spoken by
    four people at the same time. `interruptions`: how many answers are interrupted. `first_token_ms`: the delay of the
    model's server before its first token, which is reported separately. `only`: the parts to measure; empty means all.
    """

    speech: Path | None = None
    # Fewer than fifty cases say little about a share or a tail.
    recordings: int = 50
    crowd_recordings: int = 52
    interruptions: int = 50
    first_token_ms: float = 0.0
    only: tuple[str, ...] = ()

    @classmethod
    def quick(cls, **chosen: object) -> ReplyBenchOptions:
        """Return the options for a short run of a minute or two, which only checks that everything works."""
        return cls(**{"recordings": 2, "crowd_recordings": 4, "interruptions": 1, **chosen})  # type: ignore[arg-type]

    def wants(self, part: str) -> bool:
        """Return whether this part has to be measured."""
        return not self.only or part in self.only
