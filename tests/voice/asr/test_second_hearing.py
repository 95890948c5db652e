"""Which sounds are heard a second time, and which text is used then."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.recogniser import recognition
from voice.asr.guards import GuardReason, judge
from voice.asr.second_hearing import Hearings, hear, is_doubtful, is_mended
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from voice.asr.port import Recognition

SPEECH_S = 2.0
GOOD = "Roomtone, who waters the tomatoes?"


@pytest.mark.parametrize(
    ("text", "logprob", "fault", "speech_s", "doubtful"),
    [
        (GOOD, -0.2, None, 2.0, False),
        (GOOD, -0.31, None, 2.0, True),
        # The name alone, of which the model is sure; the sentence twice; a stammer.
        ("Roomtone.", -0.13, None, 2.0, True),
        (f"{GOOD} {GOOD}", -0.1, None, 2.0, True),
        # One word says nothing by its length, nor does a described sound.
        ("Yes.", -0.1, None, 0.7, False),
        ("Unbelievable!", -0.1, None, 0.5, False),
        ("[ha]", -0.9, None, 2.0, False),
        # A figure and a sign of a script without letters stand for several letters.
        ("Room Room Room", -0.1, None, 1.95, True),
        ("0151 2345678", -0.1, None, 3.6, False),
        ("今日は雨が降っている", -0.1, None, 2.0, False),
        # What a guard drops though somebody spoke.
        ("la la la la", -0.1, GuardReason.REPETITIVE, 2.0, True),
        ("Oh", -0.1, GuardReason.TOO_SPARSE, 3.0, True),
        ("MNNNNNNNN", -0.1, GuardReason.GIBBERISH, 2.0, True),
        (GOOD, -1.2, GuardReason.LOW_CONFIDENCE, 2.0, True),
        ("Ada, Ben.", -0.5, GuardReason.GLOSSARY, 1.0, True),
        # Noise, phantoms, echoes and repetitions are dropped for good.
        ("", -0.9, GuardReason.EMPTY, 2.0, False),
        ("Thank you.", -0.7, GuardReason.PHANTOM_PHRASE, 1.0, False),
        ("Good night.", -1.2, GuardReason.NO_SPEECH, 1.0, False),
        ("what the bot said", -0.7, GuardReason.OWN_VOICE, 2.0, False),
    ],
)
def test_what_is_heard_again(
    text: str, logprob: float, fault: GuardReason | None, speech_s: float, *, doubtful: bool
) -> None:
    """A text that does not fit its speech, of which the model is unsure, or that a guard drops though people spoke."""
    assert is_doubtful(recognition(text, mean_logprob=logprob), fault, speech_s=speech_s) is doubtful


@dataclass(frozen=True, slots=True)
class Heard:
    """One hearing. `careful`: it was the second one."""

    recognition: Recognition | None
    careful: bool


def guard(heard: Heard) -> GuardReason | None:
    assert heard.recognition is not None, "what has no text is not judged"
    return judge(heard.recognition, speech_s=SPEECH_S, glossary=("Ada", "Ben"))


def hear_twice(first: Recognition | None, second: Recognition | RecogniserError | None) -> tuple[Hearings[Heard], int]:
    """Return what comes of these hearings, and how many there were."""
    asked: list[bool] = []

    async def recognise(careful: bool) -> Heard:
        asked.append(careful)
        answer = second if careful else first
        if isinstance(answer, RecogniserError):
            raise answer
        return Heard(answer, careful)

    hearings = asyncio.run(hear(recognise, guard, speech_s=SPEECH_S))
    assert asked == [False, True][: len(asked)]
    return hearings, len(asked)


TEXTS = st.builds(
    recognition,
    st.sampled_from([GOOD, "Room", "[ha]", "", "Ada, Ben.", "no " * 8, "MNNNN"]),
    mean_logprob=st.sampled_from([-0.2, -0.4, -0.9, -1.1]),
)
FAILURES = st.sampled_from([None, RecogniserError("It broke."), RecogniserOverloadedError("Others wait.")])


@settings(max_examples=60)
@given(TEXTS, TEXTS | FAILURES)
def test_a_doubtful_text_is_heard_once_more(first: Recognition, second: Recognition | RecogniserError | None) -> None:
    """There is a second hearing exactly where the first is doubtful. Its text is used if no guard drops it. A second
    hearing that fails costs nothing of the first.
    """
    hearings, count = hear_twice(first, second)
    fault = guard(Heard(first, careful=False))
    doubtful = is_doubtful(first, fault, speech_s=SPEECH_S)
    assert (hearings.was_doubtful, count) == (doubtful, 1 + doubtful)
    text = None if second is None or isinstance(second, RecogniserError) else second
    mends = (
        doubtful
        and text is not None
        and is_mended(first, text, fault, guard(Heard(text, careful=True)), speech_s=SPEECH_S)
    )
    assert (hearings.mended, hearings.used.careful) == (mends, mends)
    assert guard(hearings.used) is None or not mends


@pytest.mark.parametrize(
    ("first", "fault", "logprob", "second_fault", "mended"),
    [
        (GOOD, None, -0.39, None, True),
        (GOOD, None, -0.41, None, False),
        # What does not fit its speech is wrong, however sure the model is.
        ("Room", None, -0.95, None, True),
        ("Room", None, -0.1, GuardReason.GIBBERISH, False),
        ("Ada, Ben.", GuardReason.GLOSSARY, -0.79, None, True),
        # What was dropped comes back only if the model is sure.
        (GOOD, GuardReason.LOW_CONFIDENCE, -0.81, None, False),
        (GOOD, GuardReason.LOW_CONFIDENCE, -0.55, GuardReason.PHANTOM_PHRASE, False),
    ],
)
def test_which_text_is_used(
    first: str, fault: GuardReason | None, logprob: float, second_fault: GuardReason | None, *, mended: bool
) -> None:
    """The second text, if no guard drops it and the model is surer of it."""
    one, other = recognition(first, mean_logprob=-0.4), recognition(GOOD, mean_logprob=logprob)
    assert is_mended(one, other, fault, second_fault, speech_s=SPEECH_S) is mended


def test_without_a_first_text_nothing_is_heard_again() -> None:
    """Whoever opted out meanwhile is not heard again."""
    assert hear_twice(None, None) == (Hearings(Heard(None, careful=False)), 1)
