"""From sound to text in one room: the queue, the guards, and that every dropped utterance is reported."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot import events
from bot.background_task import owned_task
from bot.brain.reply import ReplyStage
from bot.conversation import hearing
from bot.conversation.hearing import TICK_S, Hearing, SoundDelay, UtteranceBacklog
from bot.conversation.transcriber import Transcriber
from rehearsal.roomtone.written.channel import LoudnessDetector
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock
from tests.fakes.hearing import ScriptedRecogniser, speech
from voice.audio import LISTEN_RATE_HZ
from voice.errors import RecogniserError
from voice.listening.listener import RoomListener
from voice.listening.pause import PauseVerdict
from voice.listening.utterance import Utterance
from voice.transport.audio_events import SpeakerLeft, SpeechFrames

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from bot.events import SpokenText
    from voice.asr.port import Recognition
    from voice.audio import Pcm

ADA, BO, CY = 1, 2, 3


class Answers:
    """Has the replies to speech that may go on, whose stage the test sets. See `SpeechAnswers`."""

    def __init__(self) -> None:
        self.previewed: list[SpokenText | None] = []
        self.withdrawn: list[str] = []
        self.verdict = PauseVerdict.UNANSWERED
        self.stage = ReplyStage.BEGUN

    def preview(self, spoken: SpokenText | None, beside: Sequence[SpokenText]) -> PauseVerdict:
        self.previewed.append(spoken)
        del beside
        return self.verdict

    def release(self, spoken: SpokenText, beside: Sequence[SpokenText]) -> PauseVerdict | None:
        self.stage = ReplyStage.RELEASED
        return None

    def stage_of(self, utterance_id: str) -> ReplyStage | None:
        assert utterance_id
        return self.stage

    def withdraw(self, utterance_id: str) -> None:
        self.withdrawn.append(utterance_id)


class SlowRecogniser(ScriptedRecogniser):
    """A scripted recogniser that takes `recognition_s` for everything, on the clock of the test."""

    def __init__(self, clock: FakeClock, recognition_s: float, *texts: str | Exception) -> None:
        super().__init__(*texts)
        self._clock = clock
        self._recognition_s = recognition_s

    async def recognise(self, pcm: Pcm, **asked: Any) -> Recognition:
        """See `Recogniser.recognise`."""
        recognition = await super().recognise(pcm, **asked)
        if self._recognition_s:
            await self._clock.sleep(self._recognition_s)
        return replace(recognition, compute_s=self._recognition_s)


class Bench:
    """Hearing with a scripted recogniser and a clock that the test moves."""

    def __init__(
        self,
        *texts: str | Exception,
        languages: tuple[str, ...] = (),
        recognition_s: float = 0.0,
    ) -> None:
        self.clock = FakeClock()
        self.recogniser = SlowRecogniser(self.clock, recognition_s, *texts)
        self.seen: list[events.Event] = []
        self.groups: list[tuple[SpokenText, ...]] = []
        self.languages = languages
        self.own_words = ""
        self.own_names: tuple[str, ...] = ("Roomtone",)
        self.assumed_language = ""
        self.names: tuple[str, ...] = ()
        self.opted_out: set[int] = set()
        self.left: set[int] = set()
        self.answers = Answers()
        self.transcriber = Transcriber(
            self.recogniser,
            glossary=lambda: (*self.own_names, "Ada"),
            own_names=lambda: self.own_names,
            names=lambda: self.names,
            languages=lambda: self.languages,
            clock=self.clock,
            observe=self.seen.append,
            own_words=lambda since, until: self.own_words,
            drops=lambda user_id, started_at: user_id in self.opted_out,
            is_present=lambda user_id: user_id not in self.left,
            assumed_language=lambda: self.assumed_language,
        )
        self.hearing = Hearing(
            listener=RoomListener(LoudnessDetector()),
            transcriber=self.transcriber,
            clock=self.clock,
            observe=self.seen.append,
            on_group=self._keep,
            answers=self.answers,
            turn_end_detector=self,
            is_urgent=lambda text: "Roomtone" in text,
            drops=lambda user_id, started_at: user_id in self.opted_out,
        )

    async def judge(self, pcm: Pcm) -> float | None:
        """Find that everybody sounds finished. See `TurnEndDetector.judge`."""
        return 0.999 if len(pcm) else None

    async def _keep(self, group: tuple[SpokenText, ...]) -> None:
        self.groups.append(group)

    @property
    def texts(self) -> list[SpokenText]:
        return [spoken for group in self.groups for spoken in group]

    def running(self) -> AbstractAsyncContextManager[object]:
        return owned_task(self.hearing.run(), name="hearing-under-test")

    async def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK_S)):
            await until(lambda: self.clock.sleeping > 0)
            self.clock.advance(TICK_S)
            await asyncio.sleep(0)

    async def say(self, user_id: int, *, seconds: float = 2.0) -> None:
        """Let a person speak now, then be silent until their turn has ended."""
        started = self.clock.monotonic()
        await self.pass_time(seconds)
        self.hearing.hear(speech(user_id, at=started, seconds=seconds))
        await self.pass_time(1.5)

    @property
    def dropped(self) -> list[str]:
        return [event.reason for event in self.seen if isinstance(event, events.SpeechDropped)]


async def test_speech_becomes_text_with_its_times() -> None:
    """A recognised utterance has its speaker, its text, when the speech began and ended, and when the text
    was ready.
    """
    bench = Bench("Bo brings the lantern.")
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
    bench = Bench("My secret.", "It rains.")
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
    bench = Bench("We leave the house at nine.", "We leave the house at nine.", *[RecogniserError("It broke.")] * 2)
    with capture_logs() as lines:
        async with bench.running():
            for seconds in (0.1, 2.0, 2.0, 2.0):
                await bench.say(ADA, seconds=seconds)
            await until(lambda: len(bench.dropped) == 3)
    logged = [line for line in lines if line["event"] == "utterance_dropped"]
    assert sorted(str(line["reason"]) for line in logged) == sorted(bench.dropped)
    assert bench.hearing.dropped == {"too_short": 1, "duplicate": 1, "recogniser_failed": 1}
    assert all(line["speaker_id"] == ADA and line["duration_s"] > 0 for line in logged)
    assert "nine" not in str(lines)


async def test_of_a_crowd_only_the_rule_of_the_backlog_drops() -> None:
    """A hundred people speak three times together, and the recogniser keeps up with none of it. What the backlog has no
    room for is given up, reported and counted, everything else becomes text, and everybody's last words are among it as
    far as there is room.
    """
    bench = Bench()
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
    bench = Bench("Ada brings the lantern.")
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
    bench = Bench("We take the lantern.")

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
    bench = Bench("I think that", "I think that we should go.")
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
    bench = Bench("Roomtone, who brings it?", "And when?")
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
    bench = Bench("Roomtone, who brings it", "Roomtone, who brings it and when?")
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
    bench = Bench(text)
    bench.answers.verdict, bench.answers.stage = PauseVerdict.HELD, ReplyStage.READY
    async with bench.running():
        at = bench.clock.monotonic()
        bench.hearing.hear([*speech(BO, at=at, seconds=6.0), *speech(ADA, at=at + 1.0, seconds=1.0)])
        await bench.pass_time(2.9)
        assert (bench.answers.stage is ReplyStage.RELEASED) is not waits


async def test_people_who_talk_at_once_are_one_group() -> None:
    """If Bo finishes while Ada still speaks, both utterances are one group, in the order in which they began."""
    bench = Bench("I do too.", "I like the tall white lighthouse best of all.")
    async with bench.running():
        at = bench.clock.monotonic()
        bench.hearing.hear([*speech(ADA, at=at, seconds=4.0), *speech(BO, at=at + 1.0, seconds=1.0)])
        await bench.pass_time(3.0)
        assert len(bench.recogniser.asked) == 1
        assert bench.groups == []
        await bench.pass_time(2.5)
        await until(lambda: bool(bench.groups))
    assert [[(said.user_id, said.text) for said in group] for group in bench.groups] == [
        [(ADA, "I like the tall white lighthouse best of all."), (BO, "I do too.")]
    ]


async def test_the_bots_name_does_not_wait() -> None:
    """An utterance with the bot's name is passed on at once, even while another person is speaking."""
    bench = Bench("Roomtone, what time is it?")
    async with bench.running():
        at = bench.clock.monotonic()
        bench.hearing.hear([*speech(ADA, at=at, seconds=6.0), *speech(BO, at=at + 1.0, seconds=1.0)])
        await bench.pass_time(3.5)
        await until(lambda: bool(bench.groups))
        assert [said.user_id for said in bench.texts] == [BO]


def test_it_is_measured_once_a_second_how_late_sound_comes() -> None:
    """Sound of 20 ms that began 50 ms ago is 30 ms late; sound from the future is not early."""
    delay = SoundDelay()
    sounds = [SpeechFrames(1, 11, at, np.zeros(round(0.02 * LISTEN_RATE_HZ), np.int16)) for at in (10.0, 10.5, 11.1)]
    assert delay.measure([SpeakerLeft(2, 10.0)], 10.0) is None
    measured = [delay.measure([sound], now) for sound, now in zip(sounds, (10.05, 10.55, 11.1), strict=True)]
    assert [None if each is None else pytest.approx(each.delay_s) for each in measured] == [0.03, None, 0.0]


def said(user_id: int, number: int, *, sound_s: float = 1.0) -> Utterance:
    pcm = np.zeros(round(sound_s * LISTEN_RATE_HZ), np.int16)
    return Utterance(f"{user_id}-{number}", user_id, number, number + 1.0, number + 1.5, pcm)


@pytest.mark.parametrize(
    ("speakers", "given_up"),
    [
        ((ADA, BO, CY), None),
        ((ADA, BO, BO, CY), "2-1"),  # Bo has two: the older one
        ((ADA, ADA, ADA, BO), "1-0"),
        ((BO, ADA, ADA, BO), "2-0"),  # both have two: who has waited longest
        ((ADA, BO, CY, ADA), "1-0"),  # who speaks again gives up their own
        ((ADA, BO, CY, 4), "1-0"),  # everybody has one
    ],
)
def test_who_has_the_most_waiting_loses_their_oldest(speakers: tuple[int, ...], given_up: str | None) -> None:
    backlog = UtteranceBacklog(3, sound_s=60.0)
    shed = [utterance for number, user_id in enumerate(speakers) for utterance in backlog.add(said(user_id, number))]
    assert [utterance.id for utterance in shed] == ([given_up] if given_up else [])


@given(
    st.lists(st.one_of(st.tuples(st.integers(1, 6), st.integers(0, 4)), st.none()), max_size=80),
    st.integers(1, 8),
    st.integers(1, 12),
)
def test_nothing_else_is_lost(steps: list[tuple[int, int] | None], size: int, sound_s: int) -> None:
    """Whatever comes and is taken: each utterance is taken, given up or waiting, once. Nobody loses their only one
    while somebody else has two; what is left stays in order; and both bounds hold.
    """

    def fits() -> bool:
        samples = sum(len(utterance.pcm) for utterance in waiting)
        return len(waiting) <= size and (samples <= sound_s * LISTEN_RATE_HZ or len(waiting) == 1)

    backlog, waiting = UtteranceBacklog(size, sound_s=float(sound_s)), list[Utterance]()
    for number, step in enumerate(steps):
        if step is None:
            if waiting:
                assert backlog.take() is waiting.pop(0)
            continue
        new = said(step[0], number, sound_s=float(step[1]))
        waiting.append(new)
        for given_up in backlog.add(new):
            assert not fits()
            counts = Counter(utterance.user_id for utterance in waiting)
            assert counts[given_up.user_id] == max(counts.values())
            assert given_up is next(one for one in waiting if one.user_id == given_up.user_id)
            waiting.remove(given_up)
        assert fits()
        assert len(backlog) == len(waiting)
    assert [backlog.take() for _ in range(len(backlog))] == waiting
    with pytest.raises(IndexError):
        backlog.take()


def test_it_tells_since_when_the_first_one_waits() -> None:
    """Also when the first one was given up for another one; nothing while none waits."""
    backlog = UtteranceBacklog(2, sound_s=60.0)
    since = [backlog.waits_since]
    for number in (0, 1, 2):
        backlog.add(said(ADA, number))
        since.append(backlog.waits_since)
    assert since == [None, 1.5, 1.5, 2.5]


async def test_misheard_names_are_written_as_people_write_them() -> None:
    """The names are those of the people who are or were there."""
    bench = Bench("I think Senya has it.", "I think Senya has it.")
    async with bench.running():
        await bench.say(1)
        bench.names = ("Ksenia", "Joris")
        await bench.say(2)
    assert [spoken.text for spoken in bench.texts] == ["I think Senya has it.", "I think Ksenia has it."]
