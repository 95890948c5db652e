"""Which texts are recognised a second time, and which of two texts is kept."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fakes.recogniser import recognition
from voice.asr.guards import GuardReason
from voice.asr.second_pass import LEADING_SILENCE, SECOND_PASSES, Doubt, doubt_about, is_mended


@pytest.mark.parametrize(
    ("text", "logprob", "fault", "speech_s", "doubt"),
    [
        ("We leave at nine tomorrow.", -0.2, None, 2.0, None),
        # However unsure of it the model is: an answer waits for a second pass, which gains nothing here.
        ("We leave at nine tomorrow.", -0.99, None, 2.0, None),
        ("Room", -0.1, None, 2.0, Doubt.BROKEN_OFF),
        ("Room", -0.1, None, 0.8, None),
        ("la la la la", -0.1, GuardReason.REPETITIVE, 2.0, Doubt.DROPPED),
        ("Oh", -0.1, GuardReason.TOO_SPARSE, 3.0, Doubt.DROPPED),
        ("MNNNNNNNN", -0.1, GuardReason.GIBBERISH, 2.0, Doubt.DROPPED),
        ("Anything.", -1.2, GuardReason.LOW_CONFIDENCE, 2.0, Doubt.UNSURE),
        ("Ada, Ben.", -0.5, GuardReason.GLOSSARY, 1.0, Doubt.GLOSSARY),
        # Noise, phantoms and echoes are dropped for good.
        ("", -0.1, GuardReason.EMPTY, 2.0, None),
        ("Thank you.", -0.7, GuardReason.PHANTOM_PHRASE, 1.0, None),
        ("Good night.", -1.2, GuardReason.NO_SPEECH, 1.0, None),
        ("what the bot said", -0.7, GuardReason.OWN_VOICE, 2.0, None),
    ],
)
def test_what_is_doubtful(
    text: str, logprob: float, fault: GuardReason | None, speech_s: float, doubt: Doubt | None
) -> None:
    """Only texts that cannot be complete, or that a guard drops though somebody spoke, are heard again."""
    assert doubt_about(recognition(text, mean_logprob=logprob), fault, speech_s=speech_s) is doubt


@pytest.mark.parametrize(
    ("doubt", "second", "logprob", "fault", "mended"),
    [
        (Doubt.DROPPED, "anything credible", -0.9, None, True),
        (Doubt.DROPPED, "MNNNNNNNN", -0.1, GuardReason.GIBBERISH, False),
        (Doubt.GLOSSARY, "Ada, Ben.", -0.9, None, True),
        (Doubt.GLOSSARY, "oh", -1.9, GuardReason.NO_SPEECH, False),
        (Doubt.BROKEN_OFF, "more letters than before", -0.9, None, True),
        (Doubt.BROKEN_OFF, "less", -0.1, None, False),
        (Doubt.UNSURE, "sure", -0.79, None, True),
        (Doubt.UNSURE, "still not sure", -0.81, None, False),
        (Doubt.UNSURE, "Thank you.", -0.55, GuardReason.PHANTOM_PHRASE, False),
    ],
)
def test_which_text_is_kept(doubt: Doubt, second: str, logprob: float, fault: GuardReason | None, mended: bool) -> None:
    """The second text is kept only where it mends what was doubtful, and never if a guard would drop it."""
    first = recognition("first one", mean_logprob=-1.2)
    assert is_mended(first, recognition(second, mean_logprob=logprob), doubt, fault) is mended


@pytest.mark.parametrize(
    ("first", "second", "mended"),
    [
        ("Room Room Room Room Room", "Roomtone, who is it?", True),
        ("No, no, no, no.", "No, no, no.", False),
        ("Room Room Room", "Room Room Room Room", False),
    ],
)
def test_a_longer_stammer_is_no_longer_text(first: str, second: str, mended: bool) -> None:
    """Words that only repeat the one before do not count."""
    assert is_mended(recognition(first), recognition(second), Doubt.BROKEN_OFF, None) is mended


def test_the_sound_is_another_one_unless_it_is_heard_carefully() -> None:
    """A greedy model gives the same text for the same sound, so a second pass changes the sound or the search."""
    pcm = np.ones(800, np.int16)
    for ways in SECOND_PASSES.values():
        for way in ways:
            assert way.careful or len(way.sound(pcm)) == len(pcm) + len(LEADING_SILENCE)
