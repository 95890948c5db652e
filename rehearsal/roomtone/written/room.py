"""The room of a written scenario: the bot's real session, without sound, in virtual time.

It is stage and bot for the runner: people's words go to the session as sound that the recogniser has the words of.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left, bisect_right
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bot.background_task import background_task
from bot.channel.port import MembershipChange, Person, TypedMessage
from bot.errors import first_cause
from bot.room.leaving import LEFT
from bot.room.room import Room
from config.schema import Settings
from rehearsal.errors import PersonError
from rehearsal.judge.report_builder import build_report
from rehearsal.report.report import RehearsalReport
from rehearsal.roomtone.companion import ProblemLogHandler
from rehearsal.roomtone.evenings.disk import Disk
from rehearsal.roomtone.evenings.virtual_time import LoopClock
from rehearsal.roomtone.written.channel import (
    EVENING_BEGINS,
    ScriptedRecogniser,
    WrittenChannel,
    make_speech,
    speech_duration_s,
)
from rehearsal.roomtone.written.scripted_model import WrittenModel
from rehearsal.roomtone.written.services import open_written_services
from rehearsal.runner.local_servers import ServerObservations
from rehearsal.runner.play import ScenarioRun
from rehearsal.runner.ports import RunObserver
from rehearsal.runner.record import BotCrashed, ObservationCallback
from rehearsal.script.scenario import PersonStep, SayStep, Scenario
from voice.audio import FRAME_MS

# Sound and speech are looked at so often, in place of fifty times a second; less often when it has been quiet for long.
GRID_S, QUIET_GRID_S = 0.06, 0.3
_LONG_S = 10.0
# After a line: time for endpointing, recognition and the start of the answer.
AFTER_SPEECH_S = 1.6


async def play_written(
    scenario: Scenario, settings: Settings, observer: RunObserver, *, data_dir: Path | None = None
) -> RehearsalReport:
    """Play and show the scenario, and return its report. `data_dir`: keep the memory there.

    It needs the loop of `run_virtually`.
    """
    begun_at = time.monotonic()
    async with WrittenRoom(scenario, settings, data_dir=data_dir) as room:
        record = await ScenarioRun(scenario, room, room, room.start, observer=observer).play()
        clock_s, record.duration_s = record.duration_s, time.monotonic() - begun_at
        return await build_report(scenario, record, room, room, servers=ServerObservations(), clock_s=clock_s)


class _Clock(LoopClock):
    """The loop's clock on an evening that begins at `begins_at` (UTC epoch seconds). `heard_at`: the latest sound."""

    def __init__(self, begins_at: float) -> None:
        super().__init__(grid_s=GRID_S)
        self.heard_at = self.monotonic()
        self._zero = begins_at - self.heard_at

    def now(self) -> float:
        return self._zero + self.monotonic()

    async def sleep(self, seconds: float) -> None:
        self._grid_s = GRID_S if self.monotonic() < self.heard_at + _LONG_S else QUIET_GRID_S
        await super().sleep(seconds)


class WrittenRoom:
    """`rehearsal.runner.ports`' `Stage`, `BotUnderTest` and `HeardSoundRecogniser` of a written scenario.

    `data_dir`: keep the memory there. `begins_at`: UTC epoch seconds. `model`: answers in the room; None: no language
    model does. *Ownership*: an async context manager that owns the room's task and its services.
    """

    def __init__(
        self,
        scenario: Scenario,
        settings: Settings,
        *,
        data_dir: Path | None = None,
        begins_at: float = EVENING_BEGINS,
        model: WrittenModel | None = None,
    ) -> None:
        self.people = {each.id: Person(each.id, each.name, is_bot=False) for each in scenario.people}
        self.channel = WrittenChannel([self.people[each.id] for each in scenario.people if each.present])
        self.clock = _Clock(begins_at)
        self.ears = ScriptedRecogniser()
        self._settings, self._data_dir, self._model = settings, data_dir, model
        # When the bot sent sound.
        self._sent_at: list[float] = []
        self._stack = AsyncExitStack()
        self._session: Room | None = None
        self._life: asyncio.Task[str] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.kill()

    # -- the bot -------------------------------------------------------------------------------------------------

    async def start(self, report: ObservationCallback) -> None:
        """Open the room, and return when the bot is there. See `rehearsal.runner.ports.StartBot`."""
        # Statements take no real time.
        self._stack.enter_context(Disk(Random(0)).mounted())  # noqa: S311 - no secret
        written = await self._stack.enter_async_context(
            open_written_services(
                self._settings,
                self.ears,
                clock=self.clock,
                observe=report,
                data_dir=self._data_dir,
                model=self._model,
            )
        )
        log = logging.getLogger()
        log.addHandler(watch := ProblemLogHandler(report))
        self._stack.callback(log.removeHandler, watch)
        self._session = session = Room(self.channel, written.services)
        self._life = life = asyncio.create_task(session.run(), name="written-scenario")
        life.add_done_callback(lambda _: report(BotCrashed(_how(life))))
        await self._stack.enter_async_context(background_task(self._send(), name="written-sender"))
        await session.opened.wait()

    async def stop(self) -> None:
        """See `BotUnderTest`."""
        if self._session is not None and self._life is not None:
            self._session.close(LEFT)
            await asyncio.wait({self._life})
            self._life.result()

    async def kill(self) -> None:
        """See `BotUnderTest`."""
        if self._life is not None:
            self._life.cancel()
            await asyncio.wait({self._life})
        await self._stack.aclose()

    def status(self) -> str:
        """Return what /status says now."""
        return self._open.status()

    async def take_typed(self, message: TypedMessage) -> None:
        """Let somebody type something to the bot."""
        await self._open.take_typed(message)

    @property
    def _open(self) -> Room:
        assert self._session is not None, "it was started"
        return self._session

    async def _send(self) -> None:
        """Send what the bot says, as long as time passes."""
        sent_until = self.clock.monotonic()
        while True:
            await self.clock.sleep(GRID_S)
            frames = round(1000 * (self.clock.monotonic() - sent_until) / FRAME_MS)
            sent_until = self.clock.monotonic()
            if self.channel.connection is not None and self.channel.connection.send(frames):
                self.clock.heard_at = self.clock.monotonic()
                self._sent_at.append(self.clock.heard_at)

    # -- the stage -----------------------------------------------------------------------------------------------

    @property
    def messages(self) -> tuple[str, ...]:
        """See `ReceivedOfBot`."""
        return tuple(self.channel.chat.posted)

    def voiced(self, listener_id: int, since: float, until: float) -> tuple[float, float] | None:
        """See `ReceivedOfBot`. Everybody in the channel receives what the bot sends."""
        sent = self._sent_at[bisect_left(self._sent_at, since) : bisect_right(self._sent_at, until)]
        return (sent[0], sent[-1]) if sent else None

    def heard(self, listener_id: int, since: float, until: float) -> NDArray[np.int16]:
        """See `ReceivedOfBot`. There are no words in the sound."""
        return np.zeros(0, np.int16)

    async def transcribe(self, pcm: NDArray[np.int16]) -> str:
        """See `HeardSoundRecogniser`."""
        return ""

    async def enter(self, user_id: int) -> None:
        """See `Stage`. Who is present at first is there before the bot."""
        if (person := self.people[user_id]) not in self.channel.members():
            self.channel.enter(person)
            self._open.on_membership(MembershipChange(person, joined=True))

    async def leave(self, user_id: int) -> None:
        """See `Stage`."""
        self.channel.leave(self.people[user_id])
        self._open.on_membership(MembershipChange(self.people[user_id], joined=False))

    async def meet(self, user_id: int) -> None:
        """Do nothing: everybody hears everybody."""

    async def act(self, user_id: int, step: PersonStep) -> str:
        """Refuse: in writing people only talk, come and go (`rehearsal.script.scenario_file`)."""
        raise PersonError(
            f"In writing people only talk, come and go, and {user_id} was asked for {type(step).__name__}."
        )

    def speech_s(self, step: SayStep) -> float:
        """See `Stage`."""
        return speech_duration_s(step.say)

    async def say(self, user_id: int, step: SayStep) -> tuple[float, float]:
        """Feed the sound of a line to the room, and return when it has been understood."""
        connection = self.channel.connection
        assert connection is not None, "the bot is here"
        begun_at = self.clock.monotonic()
        self.ears.saying[user_id] = step.say
        connection.hear(make_speech(user_id, step.say, at=begun_at))
        self.clock.heard_at = ended_at = begun_at + self.speech_s(step)
        await asyncio.sleep(ended_at - begun_at + AFTER_SPEECH_S)
        return begun_at, ended_at


def _how(life: asyncio.Task[str]) -> str:
    """Return how a room ended, as a sentence."""
    if life.cancelled():
        return "The bot's room was cancelled."
    error = life.exception()
    return f"The bot left: {life.result()}." if error is None else f"The bot's room broke: {first_cause(error)}"
