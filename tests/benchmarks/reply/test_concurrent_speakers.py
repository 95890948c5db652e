"""Recordings that became no text are counted, because none of the times has them."""

from __future__ import annotations

from benchmarks.reply.concurrent_speakers import without_text
from rehearsal.runner.observations import ObservedUtterance
from rehearsal.runner.record import SpeechSpan

SAID = (SpeechSpan(11, "the first", 1.0, 3.0), SpeechSpan(11, "the second", 5.0, 7.0), SpeechSpan(12, "x", 1.0, 3.0))


def heard(speaker_id: int, started_at: float, ended_at: float) -> ObservedUtterance:
    """Return an utterance that became text."""
    return ObservedUtterance("u", speaker_id, "text", started_at, ended_at, ended_at + 0.5)


def test_a_recording_without_text_is_counted() -> None:
    """Two texts of one recording do not stand for another one, nor does another person's text."""
    assert without_text(SAID, ()) == 3
    assert without_text(SAID, (heard(11, 1.1, 1.9), heard(11, 2.1, 2.9))) == 2
    assert without_text(SAID, (heard(11, 1.1, 2.9), heard(11, 5.1, 6.9), heard(12, 1.1, 2.9))) == 0
