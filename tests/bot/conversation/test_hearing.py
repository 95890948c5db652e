"""From sound to text in one room: the queue, the guards, and that every dropped utterance is reported."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot import events
from bot.brain.reply_life import ReplyStage
from bot.conversation import hearing
from bot.conversation.hearing import SoundDelay, UtteranceBacklog
from tests.bot.conversation.hearing import ADA, BO, HearingBench
from tests.fakes.brain import until
from tests.fakes.hearing import speech
from voice.audio import LISTEN_RATE_HZ
from voice.errors import RecogniserError
from voice.listening.pause import PauseVerdict
from voice.listening.utterance import Utterance
from voice.transport.audio_events import SpeakerLeft, SpeechFrames


async def test_speech_becomes_text_with_its_times() -> None:
    """A recognised utterance has its speaker, its text, when the speech began and ended, and when the text
    was ready.
    """
    bench = HearingBench("Bo brings the lantern.")
    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.texts))
    spoken = bench.texts[0]
    assert (spoken.utterance.user_id, spoken.recognition.text) == (ADA, "Bo brings the lantern.")
    assert spoken.utterance.ended_at <= spoken.begun_at <= spoken.text_at <= spoken.complete_at
    assert spoken.utterance.closed_at == spoken.complete_at
    heard = [event for event in bench.seen if isinstance(event, events.UtteranceTranscribed)]
    assert [(event.utterance_id, event.text) for event in heard] == [(spoken.utterance.id, spoken.recognition.text)]
    assert bench.recogniser.asked == [(ADA, None, ("Roomtone", "Ada"))]


async def test_who_opts_out_in_mid_sentence_is_not_recognised() -> None:
    """Speech that was received before an opt-out and waits for the recogniser is dropped, and its text never seen."""
    bench = HearingBench("My secret.", "It rains.")
    async with bench.running():
        started = bench.clock.monotonic()
        await bench.pass_time(2.0)
        bench.hearing.hear(speech(ADA, at=started, seconds=2.0))
        bench.opted_out.add(ADA)
        await bench.pass_time(1.5)
        await until(lambda: bool(bench.dropped))
    assert bench.dropped == ["opted_out"]
    assert bench.texts == []
    assert bench.recogniser.asked == []


async def test_whatever_is_dropped_is_logged_with_its_reason_and_counted() -> None:
    """Each dropped utterance is counted and logged once, with its speaker and duration but without its words."""
    # An utterance whose recognition in the pause fails is recognised again at its end, so the error is needed twice.
    bench = HearingBench("We leave the house at nine.", *[RecogniserError("It broke.")] * 2)
    with capture_logs() as lines:
        async with bench.running():
            for seconds in (0.1, 2.0, 2.0):
                await bench.say(ADA, seconds=seconds)
            await until(lambda: len(bench.dropped) == 2)
    logged = [line for line in lines if line["event"] == "utterance_dropped"]
    assert sorted(str(line["reason"]) for line in logged) == sorted(bench.dropped)
    assert bench.hearing.dropped == {"too_short": 1, "recogniser_failed": 1}
    assert all(line["speaker_id"] == ADA and line["duration_s"] > 0 for line in logged)
    assert "nine" not in str(lines)


async def test_of_a_crowd_only_the_rule_of_the_backlog_drops() -> None:
    """A hundred people speak three times together, and the recogniser keeps up with none of it. What the backlog has no
    room for is given up, reported and counted, everything else becomes text, and everybody's last words are among it as
    far as there is room.
    """
    bench = HearingBench()
    bench.recogniser.gate.clear()
    people = range(1, 101)
    async with bench.running():
        for _ in range(3):
            started = bench.clock.monotonic()
            await bench.pass_time(0.5)
            for user_id in people:
                bench.hearing.hear(speech(user_id, at=started, seconds=0.5))
            await bench.pass_time(1.5)
        kept = hearing.UTTERANCES_WAITING + hearing.RECOGNISED_AT_ONCE
        assert Counter(bench.dropped) == {"overloaded": 300 - kept}
        queue = bench.hearing.queues[0]
        assert (queue.waiting, queue.capacity, queue.dropped) == (kept, kept, {"overloaded": 300 - kept})
        bench.recogniser.gate.set()
        await until(lambda: bench.hearing.queues[0].waiting == 0)
        assert bench.hearing.dropped == {"overloaded": 300 - kept}
    transcribed = [event for event in bench.seen if isinstance(event, events.UtteranceTranscribed)]
    assert len(transcribed) == kept
    # Those of the beginning are what the recogniser already had.
    last = [event for event in transcribed if event.started_at >= started]
    assert len({event.speaker_id for event in last}) == len(last) == hearing.UTTERANCES_WAITING


async def test_last_words_that_have_a_text_are_kept_where_others_have_none() -> None:
    """Ada's words wait for those of Bo, at which the recogniser hangs. Then the room ends."""
    bench = HearingBench("Ada brings the lantern.")
    async with bench.running():
        await bench.pass_time(4.0)
        bench.hearing.hear(speech(BO, at=bench.clock.monotonic() - 1.0, seconds=4.0)[:1])
        await bench.say(ADA)
        await until(lambda: any(isinstance(event, events.UtteranceTranscribed) for event in bench.seen))
        bench.recogniser.gate.clear()
        assert bench.texts == []
        await bench.hearing.finish([ADA, BO], within_s=0.05)
    assert [spoken.text for spoken in bench.texts] == ["Ada brings the lantern."]


async def test_unfinished_words_are_told_while_somebody_speaks() -> None:
    """Text of a pause is told as interim while the end is not known, not after it, and not of who opted out."""
    bench = HearingBench("We take the lantern.")

    def interims() -> list[tuple[int, str]]:
        seen = [event for event in bench.seen if isinstance(event, events.InterimTranscribed)]
        return [(event.speaker_id, event.text) for event in seen]

    async with bench.running():
        await bench.say(ADA)
        await until(lambda: bool(bench.texts))
        assert set(interims()) == {(ADA, "We take the lantern.")}
        heard = [type(event) for event in bench.seen]
        assert heard.index(events.InterimTranscribed) < heard.index(events.UtteranceTranscribed)
        bench.opted_out.add(BO)
        await bench.say(BO)
        await until(lambda: bool(bench.dropped))
        assert {speaker for speaker, _ in interims()} == {ADA}


async def test_what_was_recognised_in_vain_is_forgotten() -> None:
    """If the person goes on after a pause, the whole utterance is recognised again and only its text is recorded."""
    bench = HearingBench("I think that", "I think that we should go.")
    async with bench.running():
        at = bench.clock.monotonic()
        bench.hearing.hear(speech(ADA, at=at, seconds=1.0))
        await bench.pass_time(1.4)
        assert bench.recogniser.interims == [True]
        bench.hearing.hear(speech(ADA, at=at + 1.5, seconds=1.0))
        await bench.pass_time(2.5)
        await until(lambda: bool(bench.texts))
    assert [spoken.text for spoken in bench.texts] == ["I think that we should go."]
    previewed = [spoken for spoken in bench.answers.previewed if spoken is not None]
    assert [spoken.text for spoken in previewed] == ["I think that", "I think that we should go."]
    assert bench.answers.withdrawn == [previewed[0].utterance.id]
    assert len([event for event in bench.seen if isinstance(event, events.UtteranceTranscribed)]) == 1


async def test_the_first_sound_of_its_reply_ends_an_utterance() -> None:
    """The words become a turn then, and not before; what is said later is another utterance."""
    bench = HearingBench("Roomtone, who brings it?", "And when?")
    bench.answers.verdict, bench.answers.stage = PauseVerdict.HELD, ReplyStage.READY
    async with bench.running():
        at = bench.clock.monotonic()
        bench.hearing.hear(speech(ADA, at=at, seconds=1.0))
        await bench.pass_time(1.8)
        assert (bench.answers.stage, bench.texts) == (ReplyStage.RELEASED, [])
        bench.answers.stage = ReplyStage.HEARD
        await bench.pass_time(0.1)
        await until(lambda: bool(bench.texts))
        bench.answers.verdict = PauseVerdict.UNANSWERED
        bench.hearing.hear(speech(ADA, at=at + 1.95, seconds=1.0))
        await bench.pass_time(3.0)
        await until(lambda: len(bench.texts) == 2)
    assert [spoken.text for spoken in bench.texts] == ["Roomtone, who brings it?", "And when?"]
    assert bench.answers.withdrawn == []


async def test_who_goes_on_before_the_first_sound_says_one_utterance() -> None:
    """The reply was released, and nothing of it was heard."""
    bench = HearingBench("Roomtone, who brings it", "Roomtone, who brings it and when?")
    bench.answers.verdict, bench.answers.stage = PauseVerdict.HELD, ReplyStage.READY
    async with bench.running():
        at = bench.clock.monotonic()
        bench.hearing.hear(speech(ADA, at=at, seconds=1.0))
        await bench.pass_time(1.8)
        assert bench.answers.stage is ReplyStage.RELEASED
        bench.answers.verdict = PauseVerdict.UNANSWERED
        bench.hearing.hear(speech(ADA, at=at + 1.85, seconds=1.0))
        await bench.pass_time(3.0)
        await until(lambda: bool(bench.texts))
    assert [spoken.text for spoken in bench.texts] == ["Roomtone, who brings it and when?"]
    assert len(bench.answers.withdrawn) == 1


@pytest.mark.parametrize(("text", "waits"), [("What time is it?", True), ("Roomtone, what time is it?", False)])
async def test_a_reply_waits_for_others_unless_the_bot_was_called(text: str, waits: bool) -> None:
    """Bo speaks on while Ada has asked."""
    bench = HearingBench(text)
    bench.answers.verdict, bench.answers.stage = PauseVerdict.HELD, ReplyStage.READY
    async with bench.running():
        at = bench.clock.monotonic()
        bench.hearing.hear([*speech(BO, at=at, seconds=6.0), *speech(ADA, at=at + 1.0, seconds=1.0)])
        await bench.pass_time(2.9)
        assert (bench.answers.stage is ReplyStage.RELEASED) is not waits


@pytest.mark.parametrize("recognition_s", [(0.0, 9.0, 0.0), (9.0, 0.0, 0.0), (9.0, 4.0, 0.0)])
async def test_a_persons_words_stay_in_order(recognition_s: tuple[float, ...]) -> None:
    """However long each takes to recognise, and though all of them call the bot. Nobody else's words wait for them."""
    texts = [f"Roomtone, take boat number {number}." for number in range(len(recognition_s))]
    bench = HearingBench(*texts, "Roomtone, who rows?")
    async with bench.running():
        for seconds in recognition_s:
            bench.recogniser.recognition_s = seconds
            await bench.say(ADA, seconds=1.0)
        await bench.say(BO, seconds=1.0)
        await until(lambda: any(spoken.user_id == BO for spoken in bench.texts))
        assert len(bench.texts) < 1 + len(texts)
        await bench.pass_time(10.0)
        await until(lambda: len(bench.texts) == 1 + len(texts))
    assert [spoken.text for spoken in bench.texts if spoken.user_id == ADA] == texts


def test_it_is_measured_once_a_second_how_late_sound_comes() -> None:
    """Sound of 20 ms that began 50 ms ago is 30 ms late; sound from the future is not early."""
    delay = SoundDelay()
    sounds = [SpeechFrames(1, 11, at, np.zeros(round(0.02 * LISTEN_RATE_HZ), np.int16)) for at in (10.0, 10.5, 11.1)]
    assert delay.measure([SpeakerLeft(2, 10.0)], 10.0) is None
    measured = [delay.measure([sound], now) for sound, now in zip(sounds, (10.05, 10.55, 11.1), strict=True)]
    assert [None if each is None else pytest.approx(each.delay_s) for each in measured] == [0.03, None, 0.0]


def said(user_id: int, number: int, *, sound_s: float) -> Utterance:
    pcm = np.zeros(round(sound_s * LISTEN_RATE_HZ), np.int16)
    return Utterance(f"{user_id}-{number}", user_id, number, number + 1.0, number + 1.5, pcm)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4) | st.none()), max_size=80),
    st.integers(1, 8),
    st.integers(1, 12),
)
def test_nothing_else_is_lost(steps: list[tuple[int, int | None]], size: int, sound_s: int) -> None:
    """Whatever comes and is taken: each utterance is taken, given up or waiting, once. Who has the most waiting loses
    their oldest one, and among equals who has waited longest; each speaker's stay in order; and both bounds hold.
    """

    def fits() -> bool:
        samples = sum(len(utterance.pcm) for utterance in waiting)
        return len(waiting) <= size and (samples <= sound_s * LISTEN_RATE_HZ or len(waiting) == 1)

    def take(user_id: int) -> None:
        first = next((utterance for utterance in waiting if utterance.user_id == user_id), None)
        assert backlog.take(user_id) is first
        waiting[:] = [utterance for utterance in waiting if utterance is not first]

    backlog, waiting = UtteranceBacklog(size, sound_s=float(sound_s)), list[Utterance]()
    for number, (user_id, seconds) in enumerate(steps):
        if seconds is None:
            take(user_id)
            continue
        new = said(user_id, number, sound_s=float(seconds))
        waiting.append(new)
        for given_up in backlog.add(new):
            assert not fits()
            counts = Counter(utterance.user_id for utterance in waiting)
            assert given_up is next(one for one in waiting if counts[one.user_id] == max(counts.values()))
            waiting.remove(given_up)
        assert fits()
        assert (len(backlog), backlog.waits_since) == (len(waiting), waiting[0].closed_at)
    for utterance in tuple(waiting):
        take(utterance.user_id)
    assert (len(backlog), backlog.waits_since) == (0, None)


async def test_misheard_names_are_written_as_people_write_them() -> None:
    """The names are those of the people who are or were there, and the recogniser was unsure of what it wrote."""
    heard, meant = "I think Senya has it.", "I think Ksenia has it."
    bench = HearingBench(heard, heard, heard)
    bench.recogniser.repeats = True
    async with bench.running():
        for user_id, (names, logprob) in enumerate((((), -0.4), (("Ksenia", "Joris"), -0.2), (("Ksenia",), -0.4)), 1):
            bench.expected.people, bench.recogniser.mean_logprob = names, logprob
            await bench.say(user_id)
    assert [spoken.text for spoken in bench.texts] == [heard, heard, meant]
