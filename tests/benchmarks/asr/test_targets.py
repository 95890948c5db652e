"""The targets compare our word errors with those of faster-whisper's defaults over the same recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.asr.bench import OURS, asr_targets
from benchmarks.asr.ours import MeasuredText
from benchmarks.asr.tally import Tally

if TYPE_CHECKING:
    from benchmarks.report import Json

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
    assert (target.value, target.met, target.sample) == (points, met, "seen in 1 recordings")


def test_a_sample_names_how_many_were_compared_and_synthetic_voices() -> None:
    """Each compared figure has the recordings that it is of, and says when nobody spoke them."""
    alone = {OURS: _tally(SAID, SAID), "faster-whisper": _tally(SAID, SAID)}
    targets = asr_targets({}, {"alone": alone, "opus": alone}, real=False)
    assert {each.sample for each in targets if each.met is not None} == {"seen in 2 recordings of synthetic voices"}
    assert {each.sample for each in targets if each.met is None} == {""}


def test_without_the_defaults_nothing_is_compared() -> None:
    """A run without the other recogniser measures no difference."""
    targets = {each.name: each for each in asr_targets({}, {"opus": {OURS: _tally(SAID)}})}
    assert targets[THROUGH_OPUS].met is None


def test_a_share_of_the_cpu_tells_of_how_many_recordings_it_is() -> None:
    """Only recordings of a usual length are compared, so their number is the sample; so are utterances of company."""
    alone = {OURS: _tally(*[SAID] * 60), "faster-whisper": _tally(*[SAID] * 60)}
    for tally in alone.values():
        tally.audio_s[33:] = [12.0] * 27
    company: dict[str, Json] = {"4 people": {"end_certain_to_text_ms": {"p95": 869.0, "count": 24}}}
    found = {each.name: each for each in asr_targets(company, {"alone": alone})}
    assert found["CPU time beside the defaults, 6-9 s of speech"].sample == "seen in 33 recordings"
    assert found["end certain to text, four people at once, P95 ms"].sample == "seen in 24 utterances"
