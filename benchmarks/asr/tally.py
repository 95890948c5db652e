"""Adds up what one recogniser made of many recordings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.heard_words import HeardWords

if TYPE_CHECKING:
    from benchmarks.asr.ours import MeasuredText
    from benchmarks.report import Json


@dataclass(slots=True)
class Tally:
    """What one recogniser heard, its CPU and wall time, and the length of every recording in seconds."""

    words: HeardWords = field(default_factory=HeardWords)
    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    audio_s: list[float] = field(default_factory=list)

    def add(self, reference: str, heard: MeasuredText, audio_s: float) -> None:
        """Add one recording."""
        self.words.add(reference, heard.text)
        self.cpu_s.append(heard.cpu_s)
        self.wall_s.append(heard.wall_s)
        self.audio_s.append(audio_s)

    def figures(self) -> dict[str, Json]:
        """Return the figures for the report."""
        count, audio_s = len(self.audio_s), sum(self.audio_s)
        return {
            **self.words.figures(),
            "audio_s_mean": round(audio_s / max(1, count), 2),
            "cpu_ms_mean": round(1000 * sum(self.cpu_s) / max(1, count), 1),
            "cpu_s_for_1_s": round(sum(self.cpu_s) / audio_s, 4) if audio_s else None,
            "real_time_factor": round(sum(self.wall_s) / audio_s, 4) if audio_s else None,
        }


def count_at(tally: Tally, shortest_s: float, longest_s: float) -> int:
    """Return how many recordings have this length."""
    return sum(shortest_s <= audio_s <= longest_s for audio_s in tally.audio_s)


def ratio_at(ours: Tally, other: Tally, shortest_s: float, longest_s: float) -> float | None:
    """Return our CPU time as a share of the other's, over the recordings of this length; None without any."""
    chosen = [at for at, audio_s in enumerate(ours.audio_s) if shortest_s <= audio_s <= longest_s]
    theirs = sum(other.cpu_s[at] for at in chosen)
    return sum(ours.cpu_s[at] for at in chosen) / theirs if theirs else None
