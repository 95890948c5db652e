"""One utterance becomes text: whose language is expected, what is recognised again, and which text is refused."""

from __future__ import annotations

import pytest

from bot import events
from tests.bot.conversation.hearing import ADA, BO, HearingBench
from tests.fakes.brain import until
from voice.asr.port import UsualLanguage
from voice.errors import RecogniserError, RecogniserOverloadedError

ENGLISH = "We leave tomorrow at nine, says Ben."
GERMAN = "Wir gehen morgen um neun Uhr los, sagt Ben."
WHOLE = "Roomtone, what do we take to the mountains on Saturday?"
BUSY = RecogniserOverloadedError("Finished speech waits.")


async def test_a_language_once_sure_is_expected() -> None:
    """A person's language is detected in the first utterance and then kept until they leave. A fixed language is never
    detected.
    """
    bench = HearingBench()
    async with bench.running():
        await bench.say(ADA, seconds=3.0)
        await bench.say(ADA, seconds=3.0)
        bench.transcriber.forget(ADA)
        await bench.say(ADA, seconds=3.0)
        await until(lambda: len(bench.texts) == 3)
    assert [language for _, language, _ in bench.recogniser.asked] == [None, UsualLanguage("en"), None]
    fixed = HearingBench(languages=("de",))
    async with fixed.running():
        await fixed.say(ADA)
        await until(lambda: bool(fixed.recogniser.asked))
    assert fixed.recogniser.asked[0][1] == "de"


async def test_a_language_is_detected_among_those_that_are_spoken() -> None:
    """Those of the server, which it may narrow while people talk."""
    bench = HearingBench(languages=("en", "de", "fr"))
    async with bench.running():
        bench.recogniser.languages[ADA] = "fr"
        await _heard(bench, ADA)
        await _heard(bench, ADA)
        bench.expected.spoken = ("en", "de")
        await _heard(bench, ADA)
    known = UsualLanguage("fr", ("en", "de", "fr"))
    assert [language for _, language, _ in bench.recogniser.asked] == [("en", "de", "fr"), known, ("en", "de")]


async def test_two_people_are_heard_in_their_languages_and_followed() -> None:
    """Each person is heard in their own language and answered in it. Somebody who changes it is followed, also where
    the recogniser hears everything in the language that it is told.
    """
    bench = HearingBench()
    asked = bench.recogniser.asked

    def answered_in(user_id: int) -> str:
        last = [spoken for spoken in bench.texts if spoken.user_id == user_id][-1]
        return bench.transcriber.reply_language(last)

    async with bench.running():
        await _heard(bench, ADA)
        assert answered_in(ADA) == ""
        bench.recogniser.languages[BO] = "de"
        await _heard(bench, BO)
        assert (answered_in(BO), answered_in(ADA)) == ("de", "en")
        # Ada goes on in German, which makes no sense as English.
        bench.recogniser.languages[ADA] = "de"
        for _ in range(8):
            await _heard(bench, ADA)
        await _heard(bench, BO)
        assert answered_in(ADA) == "de"
    assert [language for speaker, language, _ in asked if speaker == BO] == [None, UsualLanguage("de")]
    languages = [language for speaker, language, _ in asked if speaker == ADA]
    assert list(dict.fromkeys(languages[1:])) == [UsualLanguage("en"), None, UsualLanguage("de")]
    assert languages.count(None) == 3


@pytest.mark.parametrize("among", [(), ("en", "de")])
async def test_who_changes_their_language_is_heard_in_it_at_once(among: tuple[str, ...]) -> None:
    """A recogniser that hears another language is not told to hear their usual one, and they are answered in it. One
    sentence does not change what they usually speak.
    """
    bench = HearingBench(ENGLISH, GERMAN, languages=among)
    bench.recogniser.obeys = False
    async with bench.running():
        await _heard(bench, ADA)
        bench.recogniser.languages[ADA] = "de"
        await _heard(bench, ADA)
        assert bench.transcriber.reply_language(bench.texts[-1]) == "de"
        await _heard(bench, ADA)
        await _heard(bench, ADA)
    usual = [UsualLanguage("en", among)] * 2 + [UsualLanguage("de", among)]
    assert [language for _, language, _ in bench.recogniser.asked] == [among or None, *usual]


async def test_where_detection_is_unsure_the_servers_language_is_heard() -> None:
    """What was heard in the recogniser's fallback is heard again in the language of the server. That settles nothing:
    the next words are detected anew.
    """
    bench = HearingBench("It comes the Iceland.", GERMAN, "Und wer nimmt die lange Leiter mit?")
    bench.recogniser.unsure, bench.expected.assumed = {ADA}, "de"
    async with bench.running():
        await _heard(bench, ADA)
        bench.recogniser.unsure, bench.recogniser.languages[ADA] = set(), "de"
        await _heard(bench, ADA)
    assert [language for _, language, _ in bench.recogniser.asked] == [None, "de", None]
    assert [spoken.recognition.language for spoken in bench.texts] == ["de", "de"]
    assert bench.texts[0].text == GERMAN


async def test_nothing_stays_of_who_left_in_mid_sentence() -> None:
    """The last words of somebody who has left become text, and neither they nor the language are remembered."""
    bench = HearingBench(GERMAN, ENGLISH, GERMAN)
    bench.recogniser.languages[ADA] = "de"
    bench.recogniser.gate.clear()
    async with bench.running():
        await bench.say(ADA, seconds=3.0)
        bench.expected.left.add(ADA)
        bench.transcriber.forget(ADA)
        bench.recogniser.gate.set()
        await until(lambda: len(bench.texts) == 1)
        await _heard(bench, BO)
        assert bench.transcriber.reply_language(bench.texts[-1]) == ""
        # Whoever comes back may say the same again.
        bench.expected.left.discard(ADA)
        await _heard(bench, ADA)
    assert [spoken.text for spoken in bench.texts] == [GERMAN, ENGLISH, GERMAN]


async def _heard(bench: HearingBench, user_id: int) -> None:
    """Let a person say something, and wait until it has become text or was dropped."""
    before = len(bench.texts) + len(bench.dropped)
    await bench.say(user_id, seconds=3.0)
    await until(lambda: len(bench.texts) + len(bench.dropped) > before)


async def test_the_bots_own_voice_is_nobodys_words() -> None:
    """If a microphone picks up the bot's own speech, the utterance is dropped."""
    bench = HearingBench("The lantern belongs to Bo.")
    bench.expected.said_by_bot = "Ada said: the lantern belongs to Bo."
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.dropped))
    assert bench.dropped == ["own_voice"]


@pytest.mark.parametrize(
    ("first", "second", "heard", "dropped", "outcome"),
    [
        ("Room", WHOLE, WHOLE, None, events.SecondHearing.MENDED),
        ("Ada, Ada, Ada, Ada, Ada, Ada, Ada, Ada,", WHOLE, WHOLE, None, events.SecondHearing.MENDED),
        ("Roomtone, what", "MNNNNNNNNNNN", "Roomtone, what", None, events.SecondHearing.KEPT),
        ("MNNNNNNNNNNNN", "MNNNNNNNNNNN", None, "gibberish", events.SecondHearing.KEPT),
        ("Roomtone, Ada.", "Roomtone, Ada.", None, "glossary", events.SecondHearing.KEPT),
        ("Roomtone, what", BUSY, "Roomtone, what", None, events.SecondHearing.REFUSED),
        ("Roomtone, what", RecogniserError("It broke."), "Roomtone, what", None, events.SecondHearing.REFUSED),
    ],
)
async def test_a_doubtful_text_is_heard_again(
    first: str, second: str | RecogniserError, heard: str | None, dropped: str | None, outcome: events.SecondHearing
) -> None:
    """The sound of a doubtful text is recognised once more, carefully. A text that nobody said stays dropped, and one
    that stands is not lost where the recogniser is busy or fails. What came of it is counted.
    """
    bench = HearingBench(first, second)
    async with bench.running():
        await _heard(bench, ADA)
    assert [spoken.text for spoken in bench.texts] == ([] if heard is None else [heard])
    assert bench.dropped == ([] if dropped is None else [dropped])
    assert bench.recogniser.careful == [False, True]
    again = [event for event in bench.seen if isinstance(event, events.SecondHearingEnded)]
    assert [(event.speaker_id, event.outcome) for event in again] == [(ADA, outcome)]


@pytest.mark.parametrize(("text", "dropped"), [(WHOLE, []), (ENGLISH, ["repeated"])])
async def test_who_was_misheard_asks_again(text: str, dropped: list[str]) -> None:
    """The same unsure words at once again are a recogniser's loop, but a question with the bot's name is never one."""
    bench = HearingBench(text, text, text, text)
    bench.recogniser.mean_logprob = -0.6
    async with bench.running():
        await _heard(bench, ADA)
        await _heard(bench, ADA)
    assert bench.dropped == dropped
