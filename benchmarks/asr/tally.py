"""Adds up what one recogniser made of many recordings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rehearsal.words import WordErrors, sum_word_errors, word_errors

if TYPE_CHECKING:
    from benchmarks.asr.ours import MeasuredText
    from benchmarks.report import Json


@dataclass(slots=True)
class Tally:
    """Word errors, CPU and wall time of one recogniser, and the length of every recording in seconds.

    `lost`: recordings without any text. `unlike`: texts with at least as many errors as words were said,
    as gibberish has.
    """

    errors: list[WordErrors] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    audio_s: list[float] = field(default_factory=list)
    lost: int = 0
    unlike: int = 0

    def add(self, reference: str, heard: MeasuredText, audio_s: float) -> None:
        """Add one recording."""
        errors = word_errors(reference, heard.text)
        self.errors.append(errors)
        self.cpu_s.append(heard.cpu_s)
        self.wall_s.append(heard.wall_s)
        self.audio_s.append(audio_s)
        self.lost += not heard.text
        self.unlike += bool(heard.text) and errors.errors >= errors.words

    @property
    def rate(self) -> float:
        """Return the word error rate over all recordings; a lost one counts with all its words."""
        return sum_word_errors(self.errors).rate

    def figures(self) -> dict[str, Json]:
        """Return the figures for the report."""
        count, audio_s = len(self.errors), sum(self.audio_s)
        return {
            "recordings": count,
            "words": sum_word_errors(self.errors).words,
            "word_error_rate": round(self.rate, 4),
            "without_text": self.lost,
            "unlike_what_was_said": self.unlike,
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
