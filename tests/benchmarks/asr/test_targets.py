"""The targets compare our word errors with those of faster-whisper's defaults over the same recordings."""

from __future__ import annotations

import pytest

from benchmarks.asr.bench import OURS, asr_targets
from benchmarks.asr.ours import MeasuredText
from benchmarks.asr.tally import Tally

SAID = "we leave at nine"
THROUGH_OPUS = "word error rate above faster-whisper's defaults, through Opus with loss, points"


def _tally(*texts: str) -> Tally:
    tally = Tally()
    for text in texts:
        tally.add(SAID, MeasuredText(text, 1.0, 1.0), 7.0)
    return tally


@pytest.mark.parametrize(
    ("ours", "defaults", "points", "met"),
    [("we leave at five", "we leave at five", 0.0, True), ("we leave at five", SAID, 25.0, False)],
)
def test_word_errors_through_opus_are_compared_with_the_defaults(
    ours: str, defaults: str, points: float, met: bool
) -> None:
    """The difference through Opus is a target of its own, in points."""
    opus = {OURS: _tally(ours), "faster-whisper": _tally(defaults)}
    (target,) = (each for each in asr_targets({}, {"opus": opus}) if each.name == THROUGH_OPUS)
    assert (target.value, target.met, target.sample) == (points, met, "1 recordings")


def test_without_the_defaults_nothing_is_compared() -> None:
    """A run without the other recogniser measures no difference."""
    targets = {each.name: each for each in asr_targets({}, {"opus": {OURS: _tally(SAID)}})}
    assert targets[THROUGH_OPUS].met is None
