"""Which recognised texts are believed: the table of rules, and what must pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.recognizer import recognition
from voice.asr.guards import GuardReason, PreviousUtterance, breaks_off, is_echo, judge

if TYPE_CHECKING:
    from voice.asr.port import Recognition


@pytest.mark.parametrize(
    ("heard", "speech_s", "reason"),
    [
        (recognition("We leave at nine."), 1.5, None),
        (recognition("Yes."), 0.3, None),
        (recognition("No, no, no, no!"), 1.2, None),
        (recognition("Thank you."), 0.8, None),
        (recognition("Hm."), 1.9, None),
        (recognition("今天我们去吃饭"), 3.0, None),
        (recognition("Ah, also.", mean_logprob=-0.99), 1.0, None),
        # Nothing that sounds
        (recognition(""), 1.0, GuardReason.EMPTY),
        (recognition(" ... ♪♪ – "), 1.0, GuardReason.EMPTY),
        # Silence: both of Whisper's signs together
        (recognition("Good night.", mean_logprob=-1.1, no_speech_probability=0.8), 1.0, GuardReason.NO_SPEECH),
        (recognition("Good night.", mean_logprob=-0.3, no_speech_probability=0.8), 1.0, None),
        (recognition("Да, also.", mean_logprob=-1.39), 1.0, GuardReason.LOW_CONFIDENCE),
        (recognition("la la la", compression_ratio=2.41), 1.0, GuardReason.REPETITIVE),
        (recognition("la la la", compression_ratio=2.4), 1.0, None),
        (recognition("I am here. I am here. I am here. I am here."), 4.0, GuardReason.REPETITIVE),
        (recognition("no " * 8), 4.0, GuardReason.REPETITIVE),
        # Four characters a second, over two seconds
        (recognition("Oh yes"), 2.0, GuardReason.TOO_SPARSE),
        (recognition("Oh yes?!"), 2.0, None),
        (recognition("Oh yes"), 1.99, None),
        # Phantoms only with low confidence
        (recognition("Thanks for watching!", mean_logprob=-0.6), 1.0, GuardReason.PHANTOM_PHRASE),
        (recognition("Thank you.", no_speech_probability=0.5), 1.0, GuardReason.PHANTOM_PHRASE),
        (recognition("Thank you for the milk.", mean_logprob=-0.6), 1.0, None),
    ],
)
def test_rules(heard: Recognition, speech_s: float, reason: GuardReason | None) -> None:
    """Each rule at its edge."""
    assert judge(heard, speech_s=speech_s) is reason


@pytest.mark.parametrize(
    ("before", "logprob", "reason"),
    [
        (PreviousUtterance("We leave at nine.", 2.0), -0.6, GuardReason.REPEATED),
        (PreviousUtterance("we leave at NINE!", 2.0), -0.6, GuardReason.REPEATED),
        (PreviousUtterance("We leave at nine.", 2.0), -0.2, None),
        (PreviousUtterance("We leave at nine.", 30.0), -0.6, None),
        (PreviousUtterance("We leave at ten.", 2.0), -0.6, None),
    ],
)
def test_repeats(before: PreviousUtterance, logprob: float, reason: GuardReason | None) -> None:
    """The same text again is an echo of the recogniser when it is unsure, and insistence when it is sure."""
    heard = recognition("We leave at nine", mean_logprob=logprob)
    assert judge(heard, speech_s=1.5, before=before) is reason


OWN = "The lantern belongs to Bo. He lent it to Ada in May, and she has not given it back since."


@pytest.mark.parametrize(
    "heard",
    [
        "The lantern belongs to Bo.",
        "he lent it to Ada in May and she",
        # Two words misheard by the loudspeaker's owner's microphone.
        "Plan turn belongs to Bo. He lent it to Ada in May",
    ],
)
def test_the_bots_own_words_are_an_echo(heard: str) -> None:
    """Most of it, in order, a word here and there heard wrong."""
    assert is_echo(heard, OWN)
    assert judge(recognition(heard), speech_s=2.0, own_words=OWN) is GuardReason.OWN_VOICE


@pytest.mark.parametrize(
    "heard",
    [
        "To Bo?",
        "No, wait, it belongs to Cleo.",
        "Ada has the lantern, and Bo has not.",
        "I lent it to somebody else in June.",
        "",
    ],
)
def test_who_speaks_over_the_bot_is_heard(heard: str) -> None:
    """Short words, other words, and the bot's words in another order are somebody's own."""
    assert not is_echo(heard, OWN)


def test_nobody_echoes_a_silent_bot() -> None:
    """Quoting it later is no echo: what it was saying at that time is nothing."""
    assert judge(recognition("The lantern belongs to Bo."), speech_s=2.0) is None


@pytest.mark.parametrize(
    ("heard", "speech_s", "is_broken"),
    [
        ("Room", 1.95, True),
        ("Roomtone", 1.95, True),
        ("Roomtone, when does the concert start?", 1.95, False),
        ("Roomtone?", 0.9, False),
        ("Yes.", 0.5, False),
        # One sign of a script without letters stands for several.
        ("今日は雨が降っている", 2.0, False),
    ],
)
def test_half_a_sentence_is_known_by_its_length(heard: str, speech_s: float, is_broken: bool) -> None:
    """Fewer letters than anybody's slowest speech has; a word said alone is as short as its sound."""
    assert breaks_off(heard, speech_s=speech_s) is is_broken
