"""Word errors and CPU time are added up, and two recognisers are compared over the same recordings."""

from __future__ import annotations

import pytest

from benchmarks.asr.ours import MeasuredText
from benchmarks.asr.tally import Tally, ratio_at


def _tally(*cpu_s: float) -> Tally:
    tally = Tally()
    for at, seconds in enumerate(cpu_s):
        tally.add("we leave at nine", MeasuredText("we leave at nine", seconds, seconds), 5.0 + at)
    return tally


def test_errors_and_lost_recordings_are_counted() -> None:
    """A recording without any text counts with all its words, and is told apart."""
    tally = Tally()
    tally.add("we leave at nine", MeasuredText("We leave at five.", 0.2, 0.1), 2.0)
    tally.add("we leave at nine", MeasuredText("", 0.1, 0.3), 2.0)
    figures = tally.figures()
    assert tally.words.rate == pytest.approx(5 / 8)
    assert (figures["recordings"], figures["words"], figures["without_text"]) == (2, 8, 1)
    assert figures["cpu_ms_mean"] == 150.0
    assert figures["real_time_factor"] == 0.1


def test_texts_unlike_what_was_said_are_counted() -> None:
    """A text in which no word is right is told apart from a recording without text and from a misheard word."""
    tally = Tally()
    for heard in ("MNNNNNNNN", "", "we leave at five"):
        tally.add("we leave at nine", MeasuredText(heard, 0.1, 0.1), 2.0)
    assert (tally.figures()["unlike_what_was_said"], tally.words.lost) == (1, 1)


def test_cpu_time_is_compared_for_one_length() -> None:
    """Only recordings of the given length count; without any there is no ratio."""
    ours, other = _tally(1.0, 1.0, 9.0), _tally(5.0, 10.0, 9.0)
    assert ratio_at(ours, other, 5.5, 6.5) == pytest.approx(0.1)
    assert ratio_at(ours, other, 5.0, 6.5) == pytest.approx(2 / 15)
    assert ratio_at(ours, other, 20.0, 30.0) is None
