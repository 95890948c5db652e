"""The options of the reply benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReplyBenchOptions:
    """The choices of one run; the defaults are a whole one.

    `speech`: a folder of real recordings with a manifest; without it the bundled scenarios' sound is spoken.
    `recordings`: how many are answered one by one, `crowd_recordings`: how many four people speak at the same time,
    `interruptions`: how many answers are talked over. `pauses_recordings`: how many are cut into utterances faster than
    they are spoken; 0 is all. `rooms`: how many rooms talk at once at last, each number of them for `pacing_s` seconds.
    `first_token_ms`: what the model's server takes for its first token; it is told apart. `only`: the parts to
    measure, all without.
    """

    speech: Path | None = None
    recordings: int = 24
    crowd_recordings: int = 32
    interruptions: int = 8
    pauses_recordings: int = 0
    rooms: int = 10
    pacing_s: float = 12.0
    first_token_ms: float = 0.0
    only: tuple[str, ...] = ()

    @classmethod
    def quick(cls, **chosen: object) -> ReplyBenchOptions:
        """Return a run of a minute or two, for whoever wants to see that everything works."""
        small = {"recordings": 2, "crowd_recordings": 4, "interruptions": 1, "pauses_recordings": 3, "rooms": 2}
        return cls(**{**small, "pacing_s": 3.0, **chosen})  # type: ignore[arg-type]

    def wants(self, part: str) -> bool:
        """Return whether this part is to be measured."""
        return not self.only or part in self.only
