"""Hearing with a scripted recogniser and a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import cast

from bot import events
from bot.background_task import owned_task
from bot.brain.reply_life import ReplyStage
from bot.conversation.hearing import Hearing
from bot.conversation.transcriber import RoomSpeech, Transcriber
from bot.conversation.turn_taking import TurnTaking
from bot.events import SpokenText
from bot.words import Words
from rehearsal.roomtone.written.channel import LoudnessDetector
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock
from tests.fakes.hearing import CannedRecogniser, speech
from voice.asr.port import Recognition, RecognitionRequest
from voice.audio import Pcm
from voice.listening.end_policy import GATE
from voice.listening.listener import TICK_S, RoomListener
from voice.listening.pause import PauseVerdict

ADA, BO, CY = 1, 2, 3


class HeldAnswers:
    """Has the replies to speech that may go on, whose stage the test sets, in place of `TurnTaking`."""

    def __init__(self) -> None:
        self.previewed: list[SpokenText | None] = []
        self.withdrawn: list[str] = []
        self.verdict = PauseVerdict.UNANSWERED
        self.stage = ReplyStage.BEGUN
        self.groups: list[tuple[SpokenText, ...]] = []

    def preview(self, spoken: SpokenText | None, beside: Sequence[SpokenText]) -> PauseVerdict:
        self.previewed.append(spoken)
        return self.verdict

    def release(self, spoken: SpokenText, beside: Sequence[SpokenText]) -> PauseVerdict:
        self.stage = ReplyStage.RELEASED
        return PauseVerdict.SOUNDING

    def stage_of(self, utterance_id: str) -> ReplyStage | None:
        assert utterance_id
        return self.stage

    def withdraw(self, utterance_id: str) -> None:
        self.withdrawn.append(utterance_id)

    async def on_group(self, group: tuple[SpokenText, ...]) -> None:
        self.groups.append(group)


class HereAndNow:
    """What may be said, as the test sets it, in place of `RoomSpeech`."""

    def __init__(self, spoken: tuple[str, ...] = ()) -> None:
        self.spoken = spoken
        self.own_names: tuple[str, ...] = ("Roomtone",)
        self.assumed = ""
        self.people: tuple[str, ...] = ()
        self.left: set[int] = set()
        self.said_by_bot = ""
        self.is_heard_again = False

    def glossary(self) -> tuple[str, ...]:
        return (*self.own_names, "Ada")

    def names(self) -> tuple[str, ...]:
        return self.people

    def languages(self) -> tuple[str, ...]:
        return self.spoken

    def assumed_language(self) -> str:
        return self.assumed

    def own_words(self, since: float, until: float) -> str:
        assert since <= until
        return self.said_by_bot

    def is_present(self, user_id: int) -> bool:
        return user_id not in self.left


class SlowRecogniser(CannedRecogniser):
    """A scripted recogniser that takes `recognition_s` for what it is asked, on the clock of the test."""

    def __init__(self, clock: FakeClock, recognition_s: float, *texts: str | Exception) -> None:
        super().__init__(*texts)
        self._clock = clock
        self.recognition_s = recognition_s

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        """See `Recogniser.recognise`."""
        recognition, takes_s = await super().recognise(request), self.recognition_s
        if takes_s:
            await self._clock.sleep(takes_s)
        return replace(recognition, compute_s=takes_s)


class HearingBench:
    """Hearing with a scripted recogniser and a clock that the test moves."""

    line = GATE

    def __init__(
        self,
        *texts: str | Exception,
        languages: tuple[str, ...] = (),
        recognition_s: float = 0.0,
        words: Words | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.recogniser = SlowRecogniser(self.clock, recognition_s, *texts)
        self.seen: list[events.Event] = []
        self.opted_out: set[int] = set()
        self.words = words or Words(lambda user_id: user_id in self.opted_out, monotonic=self.clock.monotonic)
        self.answers = HeldAnswers()
        self.expected = HereAndNow(languages)
        self.transcriber = Transcriber(
            self.recogniser,
            cast("RoomSpeech", self.expected),
            words=self.words,
            clock=self.clock,
            observe=self.seen.append,
        )
        self.hearing = Hearing(
            listener=RoomListener(LoudnessDetector()),
            transcriber=self.transcriber,
            clock=self.clock,
            observe=self.seen.append,
            answers=cast("TurnTaking", self.answers),
            turn_end_detector=self,
        )

    async def judge(self, pcm: Pcm) -> float | None:
        """Find that everybody sounds finished. See `TurnEndDetector.judge`."""
        return 0.999 if len(pcm) else None

    @property
    def groups(self) -> list[tuple[SpokenText, ...]]:
        return self.answers.groups

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
