"""One utterance becomes text: whose language is expected, what is recognised again, and which text is refused."""

from __future__ import annotations

import pytest

from bot import events
from tests.bot.room.conversation.test_hearing import ADA, BO, Bench
from tests.fakes.brain import until
from voice.asr.second_pass import LEADING_SILENCE, Doubt
from voice.errors import RecogniserError, RecogniserOverloadedError

ENGLISH = "We leave tomorrow at nine, says Ben."
GERMAN = "Wir gehen morgen um neun Uhr los, sagt Ben."
WHOLE = "Roomtone, what do we take to the mountains on Saturday?"
BUSY = RecogniserOverloadedError("Finished speech waits.")


@pytest.mark.asyncio
async def test_a_language_once_sure_is_expected() -> None:
    """A person's language is detected in the first utterance and then kept until they leave. A fixed language is never
    detected.
    """
    bench = Bench()
    async with bench.running():
        await bench.say(ADA, seconds=3.0)
        await bench.say(ADA, seconds=3.0)
        bench.transcriber.forget(ADA)
        await bench.say(ADA, seconds=3.0)
        await until(lambda: len(bench.texts) == 3)
    assert [language for _, language, _ in bench.recogniser.asked] == [None, "en", None]
    fixed = Bench(language="de")
    async with fixed.running():
        await fixed.say(ADA)
        await until(lambda: bool(fixed.recogniser.asked))
    assert fixed.recogniser.asked[0][1] == "de"


@pytest.mark.asyncio
async def test_two_people_are_heard_in_their_languages_and_followed() -> None:
    """Each person is heard in their own language and answered in it. Somebody who changes it is followed."""
    bench = Bench()
    asked = bench.recogniser.asked
    async with bench.running():
        await _heard(bench, ADA)
        assert bench.transcriber.reply_language(ADA) == ""
        bench.recogniser.languages[BO] = "de"
        await _heard(bench, BO)
        assert (bench.transcriber.reply_language(BO), bench.transcriber.reply_language(ADA)) == ("de", "en")
        # Ada goes on in German, which makes no sense as English.
        bench.recogniser.languages[ADA] = "de"
        for _ in range(8):
            await _heard(bench, ADA)
        await _heard(bench, BO)
        assert bench.transcriber.reply_language(ADA) == "de"
    assert [language for speaker, language, _ in asked if speaker == BO] == [None, "de"]
    languages = [language for speaker, language, _ in asked if speaker == ADA]
    assert list(dict.fromkeys(languages[1:])) == ["en", None, "de"]
    assert languages.count(None) == 3


@pytest.mark.asyncio
async def test_where_detection_is_unsure_the_servers_language_is_heard() -> None:
    """What was heard in the recogniser's fallback is heard again in the language of the server. That settles nothing:
    the next words are detected anew.
    """
    bench = Bench("It comes the Iceland.", GERMAN, "Und wer nimmt die lange Leiter mit?")
    bench.recogniser.unsure, bench.assumed_language = {ADA}, "de"
    async with bench.running():
        await _heard(bench, ADA)
        bench.recogniser.unsure, bench.recogniser.languages[ADA] = set(), "de"
        await _heard(bench, ADA)
    assert [language for _, language, _ in bench.recogniser.asked] == [None, "de", None]
    assert [spoken.recognition.language for spoken in bench.texts] == ["de", "de"]
    assert bench.texts[0].text == GERMAN


@pytest.mark.asyncio
@pytest.mark.parametrize("assumed", ["", "en"])
async def test_an_unsure_text_stays_where_nothing_else_is_to_be_assumed(assumed: str) -> None:
    """A server without a language, or with the one that was assumed anyway, costs no second recognition."""
    bench = Bench(ENGLISH)
    bench.recogniser.unsure, bench.assumed_language = {ADA}, assumed
    async with bench.running():
        await _heard(bench, ADA)
    assert [language for _, language, _ in bench.recogniser.asked] == [None]


@pytest.mark.asyncio
async def test_whose_language_is_known_keeps_it_where_a_confirmation_is_unsure() -> None:
    """An unsure confirmation is heard in the person's own language, whatever the server's is."""
    bench = Bench()
    bench.recogniser.languages[ADA], bench.assumed_language = "fr", "de"
    async with bench.running():
        await _heard(bench, ADA)
        bench.transcriber.on_refused(ADA)
        bench.recogniser.unsure = {ADA}
        await _heard(bench, ADA)
        await _heard(bench, ADA)
    assert [language for _, language, _ in bench.recogniser.asked] == [None, None, "fr", "fr"]
    assert {spoken.recognition.language for spoken in bench.texts} == {"fr"}


@pytest.mark.asyncio
async def test_a_text_of_an_unsure_language_stays_when_the_recogniser_is_busy() -> None:
    """If the recogniser refuses to hear it again, the first text is judged."""
    bench = Bench(ENGLISH, BUSY, eager_recognition=False)
    bench.recogniser.unsure, bench.assumed_language = {ADA}, "de"
    async with bench.running():
        await _heard(bench, ADA)
    assert [(spoken.text, spoken.recognition.language) for spoken in bench.texts] == [(ENGLISH, "en")]


@pytest.mark.asyncio
async def test_nothing_stays_of_who_left_in_mid_sentence() -> None:
    """The last words of somebody who has left become text, and neither they nor the language are remembered."""
    bench = Bench(GERMAN, ENGLISH, GERMAN)
    bench.recogniser.languages[ADA] = "de"
    bench.recogniser.gate.clear()
    async with bench.running():
        await bench.say(ADA, seconds=3.0)
        bench.left.add(ADA)
        bench.transcriber.forget(ADA)
        bench.recogniser.gate.set()
        await until(lambda: len(bench.texts) == 1)
        await _heard(bench, BO)
        assert bench.transcriber.reply_language(BO) == ""
        # Whoever comes back may say the same again.
        bench.left.discard(ADA)
        await _heard(bench, ADA)
    assert [spoken.text for spoken in bench.texts] == [GERMAN, ENGLISH, GERMAN]


async def _heard(bench: Bench, user_id: int) -> None:
    """Let a person say something, and wait until it has become text or was dropped."""
    before = len(bench.texts) + len(bench.dropped)
    await bench.say(user_id, seconds=3.0)
    await until(lambda: len(bench.texts) + len(bench.dropped) > before)


@pytest.mark.asyncio
async def test_the_bots_own_voice_is_nobodys_words() -> None:
    """If a microphone picks up the bot's own speech, the utterance is dropped."""
    bench = Bench("The lantern belongs to Bo.")
    bench.own_words = "Just now, Ada said: the lantern belongs to Bo."
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.dropped))
    assert bench.dropped == ["own_voice"]


@pytest.mark.asyncio
async def test_a_sentence_that_broke_off_is_heard_again() -> None:
    """A small model sometimes stops after one word of a clear sentence. The sound is recognised again
    behind a silence.
    """
    bench = Bench("Room", "Roomtone, what do we take to the mountains on Saturday?")
    async with bench.running():
        await bench.say(ADA, seconds=3.0)
        await until(lambda: bool(bench.texts))
    assert [spoken.text for spoken in bench.texts] == ["Roomtone, what do we take to the mountains on Saturday?"]
    assert bench.dropped == []
    first, second = bench.recogniser.sounds
    assert len(second) - len(first) == len(LEADING_SILENCE)
    assert not second[: len(LEADING_SILENCE)].any()


@pytest.mark.asyncio
async def test_what_a_glossary_spoils_is_heard_without_it() -> None:
    """Usernames in the glossary sometimes make the model stutter. The sound is then recognised again without a
    glossary.
    """
    bench = Bench("Ada, Ada, Ada, Ada, Ada, Ada, Ada, Ada,", "Margaret said that she would come.")
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.texts))
    assert [spoken.text for spoken in bench.texts] == ["Margaret said that she would come."]
    assert [glossary for _, _, glossary in bench.recogniser.asked] == [("Roomtone", "Ada"), ()]
    assert bench.dropped == []
    again = [event for event in bench.seen if isinstance(event, events.SpeechHeardAgain)]
    assert [(event.speaker_id, event.doubt, event.outcome) for event in again] == [
        (ADA, Doubt.DROPPED, events.HeardAgain.MENDED)
    ]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("second_logprob", "texts", "mended"),
    [(-0.4, ["Lobster from Newberg."], True), (-0.9, [], False)],
)
async def test_a_dropped_unsure_text_is_heard_again_carefully(
    second_logprob: float, texts: list[str], mended: bool
) -> None:
    """A text that a guard drops for its low probability comes back if a careful pass is sure, which is counted."""
    bench = Bench("Lobsters all new.", "Lobster from Newberg.")
    bench.recogniser.mean_logprobs = [-1.1, second_logprob]
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.texts or bench.dropped))
    assert [spoken.text for spoken in bench.texts] == texts
    assert bench.dropped == ([] if mended else ["low_confidence"])
    assert bench.recogniser.careful == [False, True]
    assert [glossary for _, _, glossary in bench.recogniser.asked] == [("Roomtone", "Ada")] * 2
    again = [event for event in bench.seen if isinstance(event, events.SpeechHeardAgain)]
    outcome = events.HeardAgain.MENDED if mended else events.HeardAgain.KEPT
    assert [(event.doubt, event.outcome) for event in again] == [(Doubt.UNSURE, outcome)]


@pytest.mark.asyncio
async def test_an_unsure_text_that_stands_is_not_waited_for() -> None:
    """A text that no guard drops is used at once, because an answer would wait a second for nothing better."""
    bench = Bench("Lobsters all new.", "Lobster from Newberg.")
    bench.recogniser.mean_logprobs = [-0.9, -0.3]
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.texts))
    assert [spoken.text for spoken in bench.texts] == ["Lobsters all new."]
    assert bench.recogniser.careful == [False]


@pytest.mark.asyncio
async def test_a_broken_text_stays_when_the_recogniser_refuses_another() -> None:
    """If the recogniser refuses the second pass because others wait, the first text is used, and the sound does not
    count as heard again.
    """
    bench = Bench("Roomtone, what", BUSY, eager_recognition=False)
    async with bench.running():
        await bench.say(ADA, seconds=3.0)
        await until(lambda: bool(bench.texts))
    assert [spoken.text for spoken in bench.texts] == ["Roomtone, what"]
    assert bench.recogniser.careful == [False, False]
    assert bench.dropped == []
    again = [event for event in bench.seen if isinstance(event, events.SpeechHeardAgain)]
    assert [(event.doubt, event.outcome) for event in again] == [(Doubt.BROKEN_OFF, events.HeardAgain.REFUSED)]


@pytest.mark.asyncio
async def test_gibberish_that_stays_gibberish_is_dropped() -> None:
    """A run of one letter is heard again twice, the second time carefully; if nothing better comes, it is dropped."""
    bench = Bench("MNNNNNNNNNNNN", "MNNNNNNNNNNN", "MMMMMMMMMMMMMM")
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.dropped))
    assert bench.dropped == ["gibberish"]
    assert bench.texts == []
    assert bench.recogniser.careful == [False, False, True]


@pytest.mark.asyncio
@pytest.mark.parametrize("refused", [1, 2])
async def test_one_refused_way_of_two_is_a_second_hearing_still(refused: int) -> None:
    """Gibberish is heard again in two ways. It counts as refused only if the recogniser takes neither."""
    answers = ["MNNNNNNNNNNN", BUSY] if refused == 1 else [BUSY, BUSY]
    bench = Bench("MNNNNNNNNNNNN", *answers, eager_recognition=False)
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.dropped))
    again = [event for event in bench.seen if isinstance(event, events.SpeechHeardAgain)]
    outcome = events.HeardAgain.KEPT if refused == 1 else events.HeardAgain.REFUSED
    assert [event.outcome for event in again] == [outcome]


@pytest.mark.asyncio
@pytest.mark.parametrize("failure", [BUSY, RecogniserError("It broke.")])
@pytest.mark.parametrize(
    ("ahead", "finished", "text"),
    [
        (["Roomtone, what"], ["Roomtone, what", WHOLE], WHOLE),
        (["Roomtone, what"], [BUSY], "Roomtone, what"),
        (["MNNNNNNNNNNNN", "MNNNNNNNNNNN"], [], None),
    ],
    ids=["heard again", "fails again", "refused carefully alone"],
)
async def test_what_gave_way_in_the_pause_is_heard_again_at_the_end(
    failure: RecogniserError, ahead: list[str], finished: list[str | RecogniserError], text: str | None
) -> None:
    """In a pause the recogniser may refuse a second pass that finished speech gets. So the sound is heard anew when
    its end is certain; without success the first text stays. A careful pass is refused to finished speech too.
    """
    bench = Bench(*ahead, failure, *finished)
    async with bench.running():
        await bench.say(ADA, seconds=3.0)
        await until(lambda: bool(bench.texts or bench.dropped))
    assert [spoken.text for spoken in bench.texts] == ([] if text is None else [text])
    assert bench.recogniser.interims == [True] * (len(ahead) + 1) + [False] * len(finished)
    assert [spoken.early for spoken in bench.texts] == [text != WHOLE] * len(bench.texts)


@pytest.mark.asyncio
async def test_a_language_that_gave_way_in_the_pause_is_heard_at_the_end() -> None:
    """If the hearing in the server's language was refused in the pause, finished speech gets it."""
    bench = Bench("It comes the Iceland.", BUSY, "It comes the Iceland.", GERMAN)
    bench.recogniser.unsure, bench.assumed_language = {ADA}, "de"
    async with bench.running():
        await _heard(bench, ADA)
    assert [(spoken.text, spoken.recognition.language) for spoken in bench.texts] == [(GERMAN, "de")]


@pytest.mark.asyncio
async def test_a_second_pass_whose_language_gave_way_is_made_again_at_the_end() -> None:
    """In the pause it was heard in the recogniser's fallback alone, and not in the server's language."""
    heard = ("Room", "Raum", "Room")
    bench = Bench(*heard, BUSY, *heard, GERMAN)
    bench.recogniser.unsure, bench.assumed_language = {ADA}, "de"
    async with bench.running():
        await _heard(bench, ADA)
    assert [spoken.text for spoken in bench.texts] == [GERMAN]


@pytest.mark.asyncio
@pytest.mark.parametrize(("second", "texts", "dropped"), [("Rome, Ida.", ["Rome, Ida."], []), ("", [], ["glossary"])])
async def test_names_alone_are_heard_again_without_being_told(
    second: str, texts: list[str], dropped: list[str]
) -> None:
    """What people are called is no proof of what somebody said. Heard again without it, a hum is none."""
    bench = Bench("Roomtone, Ada.", second)
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.texts or bench.dropped))
    assert ([text.text for text in bench.texts], bench.dropped) == (texts, dropped)
    outcome = events.HeardAgain.MENDED if texts else events.HeardAgain.KEPT
    again = [event for event in bench.seen if isinstance(event, events.SpeechHeardAgain)]
    assert [(event.doubt, event.outcome) for event in again] == [(Doubt.GLOSSARY, outcome)]
    assert [glossary for _, _, glossary in bench.recogniser.asked] == [("Roomtone", "Ada"), ()]


@pytest.mark.asyncio
async def test_a_call_of_the_bot_by_a_name_of_two_words_is_heard_at_once() -> None:
    """Its names are no member's choice, and whoever calls it often says nothing else."""
    bench = Bench("Hey Robo!")
    bench.own_names = ("Hey Robo",)
    async with bench.running():
        await bench.say(ADA, seconds=1.0)
        await until(lambda: bool(bench.texts or bench.dropped))
    assert [text.text for text in bench.texts] == ["Hey Robo!"]
    assert [glossary for _, _, glossary in bench.recogniser.asked] == [("Hey Robo", "Ada")]
