"""The options of the recogniser's benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

QUESTIONS_DIR = Path("data/questions")


@dataclass(frozen=True, slots=True)
class AsrBenchOptions:
    """The options of one run. The defaults are a full run.

    `speech`: a folder of real recordings with a manifest.json; None: the audio of the bundled scenarios. `recordings`:
    how many are recognised; 0 means all. `loss`: the share of packets that is lost (0-1). `questions_dir` keeps what
    the voices of the short questions say. `only`: the parts to measure; empty means all.
    """

    speech: Path | None = None
    recordings: int = 0
    language: str = "en"
    loss: float = 0.05
    questions_dir: Path = QUESTIONS_DIR
    only: tuple[str, ...] = ()

    def wants(self, part: str) -> bool:
        """Return whether this part has to be measured."""
        return not self.only or part in self.only
