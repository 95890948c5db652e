"""The options of the recogniser's benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# The recognisers that are measured beside ours, by the names in the report.
QUESTIONS_DIR = Path("data/questions")
OTHERS = ("faster-whisper", "faster-whisper, batched", "whisper.cpp")


@dataclass(frozen=True, slots=True)
class AsrBenchOptions:
    """The options of one run. The defaults are a full run.

    `manifest`: a folder of real recordings with a manifest.json, or that file; without it the audio of the bundled
    scenarios is used. `recordings`: how many are recognised alone and through Opus; 0 means all. `company_recordings`:
    how many are spoken by several people at once, in real time. `loss`: the share of packets that is lost (0-1).
    `peers`: the other recognisers that are measured too; `peers_dir` keeps their environments and what was converted
    for them. `questions_dir` keeps what the voices of the short questions say. `ggml`: a model file for whisper.cpp;
    without it, the measured model is converted. `only`: the parts to measure; empty means all.
    """

    manifest: Path | None = None
    recordings: int = 0
    company_recordings: int = 24
    language: str = "en"
    loss: float = 0.05
    peers: tuple[str, ...] = OTHERS
    peers_dir: Path | None = None
    questions_dir: Path = QUESTIONS_DIR
    ggml: Path | None = None
    only: tuple[str, ...] = ()

    def wants(self, part: str) -> bool:
        """Return whether this part has to be measured."""
        return not self.only or part in self.only

    @property
    def folder(self) -> Path | None:
        """The folder of the recordings; None: the bundled ones."""
        if self.manifest is None or self.manifest.is_dir():
            return self.manifest
        return self.manifest.parent
