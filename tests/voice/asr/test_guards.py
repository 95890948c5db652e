"""Which recognised texts are accepted, which are rejected, and which sounds are heard a second time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.recogniser import recognition
from voice.asr.guards import GuardReason, PreviousUtterance, is_echo, judge
from voice.asr.port import Recognition
from voice.asr.second_hearing import Hearings, hear, is_doubtful, is_mended
from voice.errors import RecogniserError, RecogniserOverloadedError


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
        # Texts without any letter
        (recognition(""), 1.0, GuardReason.EMPTY),
        (recognition(" ... ♪♪ – "), 1.0, GuardReason.EMPTY),
        # Silence needs both of Whisper's signs together
        (recognition("Good night.", mean_logprob=-1.1, no_speech_probability=0.8), 1.0, GuardReason.NO_SPEECH),
        (recognition("Good night.", mean_logprob=-0.3, no_speech_probability=0.8), 1.0, None),
        (recognition("Да, also.", mean_logprob=-1.39), 1.0, GuardReason.LOW_CONFIDENCE),
        (recognition("MNNNNNNNNNN", compression_ratio=1.1), 2.0, GuardReason.GIBBERISH),
        (recognition("la la la", compression_ratio=2.41), 1.0, GuardReason.REPETITIVE),
        (recognition("la la la", compression_ratio=2.4), 1.0, None),
        (recognition("I am here. I am here. I am here. I am here."), 4.0, GuardReason.REPETITIVE),
        (recognition("no " * 8), 4.0, GuardReason.REPETITIVE),
        # What Whisper writes for a hum or laughter where a glossary is expected
        (recognition("B-B-B-B-B-B-B-B-B-B-B-", mean_logprob=-0.53), 0.5, GuardReason.REPETITIVE),
        (recognition("O.O.O.O.O.O.O.O.O.O.O", mean_logprob=-0.5), 0.8, GuardReason.REPETITIVE),
        (recognition("Ha-ha-ha-ha-ha-ha-ha!"), 1.2, None),
        (recognition("The host is 10.10.10.10."), 1.2, None),
        # Somebody dictates a number or tries a microphone
        (recognition("1-1-1-1-1-1-1-1"), 3.0, None),
        (recognition("1, 2, 1, 2, 1, 2, 1, 2."), 3.0, None),
        (recognition("1-1-1-1-1-1-1-1-1-1-1-1-1-1-1", compression_ratio=2.5), 3.0, GuardReason.REPETITIVE),
        # Fewer than four characters a second, from two seconds on
        (recognition("Oh yes"), 2.0, GuardReason.TOO_SPARSE),
        (recognition("Oh yes?!"), 2.0, None),
        (recognition("Oh yes"), 1.99, None),
        # A figure is a word: twelve of them, read out, took 3.6 s
        (recognition("0151-2345678."), 3.6, None),
        (recognition("4 42 7"), 3.5, None),
        (recognition("1"), 2.1, GuardReason.TOO_SPARSE),
        # So is a letter of a word that is spelled; a hum has one letter again and again
        (recognition("W-L-A-N.", mean_logprob=-0.26), 2.1, None),
        (recognition("S, M, I, T, H."), 4.0, None),
        (recognition("B-B-B-B", mean_logprob=-0.5), 2.5, GuardReason.TOO_SPARSE),
        (recognition("It's us."), 2.1, GuardReason.TOO_SPARSE),
        # Phantom phrases are rejected only if the confidence is low
        (recognition("Thanks for watching!", mean_logprob=-0.6), 1.0, GuardReason.PHANTOM_PHRASE),
        (recognition("Thank you.", no_speech_probability=0.5), 1.0, GuardReason.PHANTOM_PHRASE),
        (recognition("Thank you for the milk.", mean_logprob=-0.6), 1.0, None),
    ],
)
def test_rules(heard: Recognition, speech_s: float, reason: GuardReason | None) -> None:
    """Each rule is tested just inside and just outside its limit."""
    assert judge(heard, speech_s=speech_s) is reason


GLOSSARY = ("Roomtone", "I hate all of you", "Ben", "Ada Lovelace")


@pytest.mark.parametrize(
    ("text", "glossary", "reason"),
    [
        # What Whisper makes of a hum, a breath or another name where somebody is called so.
        ("I hate all of you, Ben.", GLOSSARY, GuardReason.GLOSSARY),
        ("I hate all of you. I hate all of you.", GLOSSARY, GuardReason.GLOSSARY),
        ("Roomtone, I hate all of you.", GLOSSARY, GuardReason.GLOSSARY),
        ("Ada Lovelace!", GLOSSARY, GuardReason.GLOSSARY),
        # The recogniser was told nothing that it could repeat.
        ("I hate all of you, Ben.", (), None),
        # A call.
        ("Roomtone?", GLOSSARY, None),
        ("Ben!", GLOSSARY, None),
        # A vowel sign belongs to its letter, and ends no word.
        ("प्रिया!", ("प्रिया",), None),
        ("प्रिया शर्मा!", ("प्रिया शर्मा",), GuardReason.GLOSSARY),
        ("Hey Ben, Roomtone!", GLOSSARY, None),
        ("Roomtone, who is Ada Lovelace?", GLOSSARY, None),
        ("I hate all of you too.", GLOSSARY, None),
    ],
)
def test_names_that_the_recogniser_was_told_and_nothing_else(
    text: str, glossary: tuple[str, ...], reason: GuardReason | None
) -> None:
    """Members choose what they are called, so it must not become somebody else's words."""
    assert judge(recognition(text), speech_s=1.0, glossary=glossary) is reason


def test_names_alone_that_are_dropped_anyway_keep_their_reason() -> None:
    """The bot's own words stay dropped for good, and seconds of speech that became a name get a careful pass too."""
    own_words = "You could ask Ada Lovelace or Grace Hopper."
    glossary = ("Roomtone", "Ada Lovelace", "Grace Hopper")
    echo = recognition("Ada Lovelace, Grace Hopper.")
    assert judge(echo, speech_s=1.5, own_words=own_words, glossary=glossary) is GuardReason.OWN_VOICE
    assert judge(recognition("Ada Lovelace."), speech_s=5.0, glossary=glossary) is GuardReason.TOO_SPARSE


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
    """A repeated text is rejected when the recogniser is unsure, and accepted when it is sure or the repetition comes
    late.
    """
    heard = recognition("We leave at nine", mean_logprob=logprob)
    assert judge(heard, speech_s=1.5, before=before) is reason


OWN = "The lantern belongs to Bo. He lent it to Ada in May, and she has not given it back since."


@pytest.mark.parametrize(
    ("own", "heard", "is_own"),
    [
        (OWN, "The lantern belongs to Bo.", True),
        (OWN, "he lent it to Ada in May and she", True),
        # Two words were misheard because a microphone recorded the bot from a loudspeaker.
        (OWN, "Plan turn belongs to Bo. He lent it to Ada in May", True),
        # Short texts, other words, and the bot's words in another order are a person's own speech.
        (OWN, "To Bo?", False),
        (OWN, "No, wait, it belongs to Cleo.", False),
        (OWN, "Ada has the lantern, and Bo has not.", False),
        (OWN, "I lent it to somebody else in June.", False),
        (OWN, "", False),
        # Nobody echoes a bot that is silent.
        ("", "The lantern belongs to Bo.", False),
        # Japanese, Chinese and Thai are written without spaces, and compared sign by sign.
        ("今日は天気がいいですね。散歩に行きましょうか。", "今日は天気がいいですね、散歩に行きましょうか。", True),
        ("今日は天気がいいですね。散歩に行きましょうか。", "今日は天気いいですね", True),
        ("三時と四時、どちらがいいですか。", "四時がいいです", False),
        ("三時と四時、どちらがいいですか。", "いいえ、明日にしましょうよ。", False),
        ("今天天气很好,我们去公园散步吧。", "今天天气很好，我们去公园散步吧", True),
        ("今天天气很好,我们去公园散步吧。", "不，我今天要在家里看书。", False),
        ("วันนี้อากาศดี เราไปเดินเล่นกันไหม", "วันนี้อากาศดีเราไปเดินเล่น", True),
        ("วันนี้อากาศดี เราไปเดินเล่นกันไหม", "ไม่ ฉันอยากอยู่บ้านอ่านหนังสือ", False),
        ("The song is called さくら.", "The song is called さくら", True),
    ],
)
def test_the_bots_own_words_are_an_echo(own: str, heard: str, is_own: bool) -> None:
    """A text that mostly repeats the bot's words in their order is an echo, even with a few misheard words."""
    assert is_echo(heard, own) is is_own
    assert (judge(recognition(heard), speech_s=1.0, own_words=own) is GuardReason.OWN_VOICE) is is_own


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
