"""Which texts are recognised a second time, which of two texts is kept, and how the search for a better one ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.recogniser import recognition
from voice.asr.guards import GuardReason, judge
from voice.asr.second_pass import (
    FIRST_PASS,
    LEADING_SILENCE,
    SECOND_PASSES,
    Doubt,
    PassResults,
    RecognitionPass,
    doubt_about,
    is_mended,
    recognise_with_second_passes,
)
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from voice.asr.port import Recognition

SPEECH_S = 2.5


@pytest.mark.parametrize(
    ("text", "logprob", "fault", "speech_s", "doubt"),
    [
        ("We leave at nine tomorrow.", -0.2, None, 2.0, None),
        # However unsure of it the model is: an answer waits for a second pass, which gains nothing here.
        ("We leave at nine tomorrow.", -0.99, None, 2.0, None),
        ("Room", -0.1, None, 2.0, Doubt.BROKEN_OFF),
        ("Room", -0.1, None, 0.8, None),
        # A described sound is short and whole.
        ("[ha]", -0.1, None, 2.0, None),
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


@dataclass(frozen=True, slots=True)
class Heard:
    """What one pass gave, told from all others by its number."""

    recognition: Recognition | None
    number: int


class ScriptedPasses:
    """Makes passes that give what `answers` say, in order; an error is raised. Remembers which were made."""

    def __init__(self, *answers: Recognition | RecogniserError | None) -> None:
        self._answers = answers
        self.made: list[RecognitionPass] = []

    def search(self) -> PassResults[Heard]:
        return asyncio.run(recognise_with_second_passes(self._recognise, guard, speech_s=SPEECH_S))

    async def _recognise(self, way: RecognitionPass) -> Heard:
        answer = self._answers[len(self.made)]
        self.made.append(way)
        if isinstance(answer, RecogniserError):
            raise answer
        return Heard(answer, len(self.made) - 1)


def guard(heard: Heard) -> GuardReason | None:
    assert heard.recognition is not None, "a pass without a text is not judged"
    return judge(heard.recognition, speech_s=SPEECH_S, glossary=("Ada", "Ben"))


TEXTS = st.builds(
    recognition,
    st.sampled_from(["We leave at nine tomorrow.", "We leave at", "Room", "[ha]", "", "Ada, Ben.", "no " * 8, "MNNNN"]),
    mean_logprob=st.sampled_from([-0.2, -0.9, -1.1]),
)
FAILURES = st.sampled_from([None, RecogniserError("It broke."), RecogniserOverloadedError("Others wait.")])


@given(TEXTS, st.lists(TEXTS | FAILURES, min_size=2, max_size=2))
def test_the_first_mended_text_ends_the_search(
    first: Recognition, answers: list[Recognition | RecogniserError | None]
) -> None:
    """Passes are made in their order until one mends the text, and no more. Without one the first text is used."""
    passes = ScriptedPasses(first, *answers)
    results = passes.search()
    doubt = doubt_about(first, guard(Heard(first, 0)), speech_s=SPEECH_S)
    ways = SECOND_PASSES[doubt] if doubt else ()
    mends = [
        not isinstance(answer, RecogniserError)
        and answer is not None
        and doubt is not None
        and is_mended(first, answer, doubt, guard(Heard(answer, 0)))
        for answer in answers[: len(ways)]
    ]
    tried = mends.index(True) + 1 if True in mends else len(ways)
    assert results.doubt is doubt
    assert passes.made == [FIRST_PASS, *ways[:tried]]
    assert results.mended is any(mends)
    assert results.used.number == (tried if any(mends) else 0)


@given(TEXTS, st.lists(TEXTS | FAILURES, min_size=2, max_size=2))
def test_a_failed_pass_is_as_good_as_none(
    first: Recognition, answers: list[Recognition | RecogniserError | None]
) -> None:
    """Whether it raises or has no text: the text that is used is the same, and what it gave is told if it returned."""
    silent = ScriptedPasses(first, *(None if isinstance(each, RecogniserError) else each for each in answers)).search()
    raising = ScriptedPasses(first, *(each or RecogniserError("It broke.") for each in answers)).search()
    assert (raising.doubt, raising.mended, raising.used) == (silent.doubt, silent.mended, silent.used)
    assert raising.second == tuple(each for each in silent.second if each.recognition is not None)


def test_a_first_pass_without_a_text_ends_the_search() -> None:
    """Whoever opted out meanwhile is not heard again; a model that fails at once raises."""
    assert ScriptedPasses(None).search() == PassResults(Heard(None, 0))
    with pytest.raises(RecogniserError):
        ScriptedPasses(RecogniserError("It broke.")).search()
