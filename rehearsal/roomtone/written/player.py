"""Plays a written scenario: one step after the other, in a real room without sound, on a manual clock.

If something expected does not happen in time, the record gets a failed wait and the scenario continues. It ends early
only if the room ends.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left, bisect_right
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import numpy as np

from bot.channel.port import MembershipChange, Person
from bot.errors import first_cause
from bot.room.endings import LEFT
from bot.room.membership import TURN_EVERY_S
from bot.room.session import Session
from bot.room.stay import CHECK_ROOM_S
from rehearsal.judge.report_builder import build_report
from rehearsal.roomtone.companion import ProblemLogHandler, observations
from rehearsal.roomtone.written.channel import (
    EVENING_BEGINS,
    ManualClock,
    ScriptedRecogniser,
    WrittenChannel,
    make_speech,
    speech_duration_s,
)
from rehearsal.roomtone.written.services import open_written_services
from rehearsal.runner.observations import (
    LoggedProblem,
    ObservedCompaction,
    ObservedReply,
    ObservedUtterance,
    RoomReady,
    ServerObservations,
)
from rehearsal.runner.ports import RunObserver
from rehearsal.runner.record import RunRecord, SpokenLine
from rehearsal.script.scenario import AFTER_VOICE, JoinStep, SayStep
from voice.audio import FRAME_MS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bot.channel.port import TypedMessage
    from bot.events import Event
    from bot.store.database import Database
    from config.schema import Settings
    from rehearsal.report.report import RehearsalReport
    from rehearsal.roomtone.written.scripted_model import WrittenModel
    from rehearsal.runner.observations import Observation
    from rehearsal.script.scenario import Scenario, ScenarioStep

# The clock advances in small steps while somebody speaks, in large ones otherwise.
STEP_S, QUIET_STEP_S = 0.06, 20.0
# How long after the last word an unwanted answer of the bot is still noticed.
_LISTENS_ON_S = 10.0
# After a line: time for endpointing, recognition and the start of the answer.
AFTER_SPEECH_S = 1.6
# A move later than this after the person's last one is recorded at once: what came between was recorded a minute after
# the first.
_MOVE_GATHERED_S = 2 * TURN_EVERY_S + CHECK_ROOM_S
# How long an answer may take to begin and to end, on the manual clock.
PATIENCE_S = 60.0
# How long to wait in real time for what no clock brings about.
SETTLE_TIMEOUT_S = 60.0
# How often to look, in real time, whether the database's threads have done their work.
_THREADS_S = 0.0005
# Event loop iterations after each step, so that woken tasks and the tasks they wake can run.
_TURNS_OF_THE_LOOP = 5


async def play_written(
    scenario: Scenario, settings: Settings, observer: RunObserver, *, data_dir: Path | None = None
) -> RehearsalReport:
    """Play and show the scenario, and return its report. `data_dir`: keep the memory there."""
    observer.opened(scenario)
    begun = time.monotonic()
    async with open_player(scenario, settings, observer, data_dir=data_dir) as player:
        try:
            await player.play()
        except ScenarioEndedError as error:
            player.record.ended_by = str(error)
    player.record.duration_s = time.monotonic() - begun
    return await player.report()


class ScenarioEndedError(Exception):
    """The room ended before the scenario did. The message says how."""


def moments(steps: Iterable[ScenarioStep]) -> Iterator[list[tuple[int, ScenarioStep]]]:
    """Yield the steps with their numbers, together with those that are spoken over them."""
    together: list[tuple[int, ScenarioStep]] = []
    for number, step in enumerate(steps):
        if together and step.overlap_s is None and step.after != AFTER_VOICE:
            yield together
            together = []
        together.append((number, step))
    yield together


@asynccontextmanager
async def open_player(
    scenario: Scenario,
    settings: Settings,
    observer: RunObserver | None = None,
    *,
    data_dir: Path | None = None,
    begins_at: float = EVENING_BEGINS,
    model: WrittenModel | None = None,
) -> AsyncIterator[WrittenPlayer]:
    """Open the room of a scenario and yield its player. `observer`: the live display. `data_dir`: keep the memory
    there. `begins_at`: UTC epoch seconds. `model`: answers in the room; None: no language model does.

    *Ownership*: the room's task and its services end with the context.
    """
    player = WrittenPlayer(scenario, observer or RunObserver(), begins_at=begins_at)
    async with open_written_services(
        settings, player.ears, clock=player.clock, observe=player.see, data_dir=data_dir, model=model
    ) as written:
        room = Session(player.channel, written.services)
        watch = ProblemLogHandler(player.note)
        logging.getLogger().addHandler(watch)
        life = asyncio.create_task(room.run(), name="written-scenario")
        player.enter(room, life, written.stores.database)
        try:
            yield player
        finally:
            logging.getLogger().removeHandler(watch)
            life.cancel()
            await asyncio.wait({life})


class WrittenPlayer:
    """Plays the scenario. Created by `open_player`. It implements `rehearsal.runner.ports.ReceivedOfBot`.

    `record`: what was said and observed, in the seconds of `clock`. `sent_at`: when the bot sent sound.
    `breaks_off_after_s`: how much of an answer is played before somebody interrupts it.
    """

    def __init__(self, scenario: Scenario, observer: RunObserver, *, begins_at: float) -> None:
        self.scenario = scenario
        self.record = RunRecord()
        self.people = {person.key: Person(person.id, person.name, is_bot=False) for person in scenario.people}
        self.channel = WrittenChannel([self.people[each.key] for each in scenario.people if each.present])
        self.clock = ManualClock(begins_at)
        self.ears = ScriptedRecogniser()
        self.sent_at: list[float] = []
        self.breaks_off_after_s = 0.3
        self._observer = observer
        self._names = {person.id: person.name for person in self.people.values()}
        self._news = asyncio.Event()
        self._room: Session | None = None
        self._life: asyncio.Task[str] | None = None
        self._database: Database | None = None
        # When each person last moved (monotonic seconds).
        self._moved_at: dict[int, float] = {}

    def enter(self, room: Session, life: asyncio.Task[str], database: Database) -> None:
        """Set the room, the task that runs it, and its database."""
        self._room, self._life, self._database = room, life, database
        life.add_done_callback(lambda _: self._news.set())

    @property
    def lasted_s(self) -> float:
        """How long the scenario has lasted, in seconds."""
        return self.clock.monotonic() - self.record.live_at

    def status(self) -> str:
        """Return what /status says now."""
        return self._present().status()

    async def report(self) -> RehearsalReport:
        """Return the report after the scenario."""
        return await build_report(
            self.scenario, self.record, self, self, servers=ServerObservations(), clock_s=self.lasted_s
        )

    async def play(self) -> None:
        """Play the whole scenario. Raises `ScenarioEndedError` when the room ends before."""
        await self.begin()
        for moment in moments(self.scenario.steps):
            await self.perform(moment)
        await self.rest(self.scenario.settle_s)
        await self.leave()

    async def begin(self) -> None:
        """Wait until the bot has joined. Raises `ScenarioEndedError` if it does not."""
        opened = self._present().opened
        await self._settled(opened.is_set, "the bot to come")
        if not opened.is_set():
            raise ScenarioEndedError(f"The bot did not come within {SETTLE_TIMEOUT_S:.0f} s.")
        self.record.live_at = self.clock.monotonic()
        for person in self.channel.members():
            self.record.note_entered(person.id, self.record.live_at)

    async def leave(self) -> None:
        """Make the bot leave properly. Raises `ScenarioEndedError` if it does not."""
        self.record.ended_at = self.clock.monotonic()
        room, life = self._present(), self._life
        assert life is not None, "it is here"
        room.close(LEFT)
        try:
            async with asyncio.timeout(SETTLE_TIMEOUT_S):
                await asyncio.wait({life})
        except TimeoutError:
            raise ScenarioEndedError(f"The bot did not leave within {SETTLE_TIMEOUT_S:.0f} s.") from None
        if life.exception() is not None:
            raise ScenarioEndedError(_how(life))

    # -- what happens ----------------------------------------------------------------------------------------

    async def perform(self, moment: Sequence[tuple[int, ScenarioStep]]) -> None:
        """Play one of the `moments`, and wait until the room has handled it. Raises `ScenarioEndedError`."""
        self._present()
        _, first = moment[0]
        if first.gap_s is not None:
            await self.rest(first.gap_s)
        if isinstance(first, SayStep):
            await self._talk([(number, step) for number, step in moment if isinstance(step, SayStep)])
        else:
            await self._move(self.people[getattr(first, "who", "")], joined=isinstance(first, JoinStep))

    async def take_typed(self, message: TypedMessage) -> None:
        """Let somebody type something to the bot."""
        await self._present().take_typed(message)

    async def _move(self, person: Person, *, joined: bool) -> None:
        before, now = self.record.last_seq, self.clock.monotonic()
        if joined:
            self.channel.enter(person)
            self.record.note_entered(person.id, now)
        else:
            self.channel.leave(person)
            self.record.note_left(person.id, now)
        self._observer.happened(self.lasted_s, f"{person.name} {'comes in' if joined else 'leaves'}")
        unsettled = now - self._moved_at.get(person.id, float("-inf")) < _MOVE_GATHERED_S
        self._moved_at[person.id] = now
        self._present().on_membership(MembershipChange(person, joined=joined))
        if unsettled:
            # The room gathers this move with others, so no turn comes now.
            await self._live(STEP_S)
            return
        await self._settled(lambda: self.record.last_seq > before, f"{person.name}'s move to be noted")

    async def _talk(self, lines: Sequence[tuple[int, SayStep]]) -> None:
        together = [(number, line) for number, line in lines if line.after != AFTER_VOICE]
        said = together[0][1].say
        before, replies = self.record.last_seq, len(self.record.replies)
        begun = self.clock.monotonic()
        await self._live(self._speak(together) + AFTER_SPEECH_S)
        await self._settled(lambda: self.record.last_seq > before, f'"{said}" to become a turn')
        if not any(line.answered for _, line in together):
            return
        for number, line in lines:
            if line.after == AFTER_VOICE:
                await self._break_off(number, line, begun)
        await self.until(lambda: len(self.record.replies) > replies, f'the answer to "{said}"')

    async def _break_off(self, number: int, line: SayStep, asked_at: float) -> None:
        await self.until(lambda: self.sent_at[-1:] > [asked_at], "the answer that is to be broken off")
        await self._live(self.breaks_off_after_s)
        before = self.record.last_seq
        await self._live(self._speak([(number, line)]) + AFTER_SPEECH_S)
        # Two turns are recorded: the broken-off answer, then the line that broke it off.
        await self._settled(lambda: self.record.last_seq >= before + 2, f'"{line.say}" to become a turn')

    def _speak(self, lines: Sequence[tuple[int, SayStep]]) -> float:
        """Feed the lines' audio to the room, and return how long all of them take together, in seconds."""
        connection = self.channel.connection
        assert connection is not None, "the bot is here"
        begun = end = self.clock.monotonic()
        for number, line in lines:
            at = max(begun, end - (line.overlap_s or 0.0))
            person, end = self.people[line.who], at + speech_duration_s(line.say)
            self.ears.saying[person.id] = line.say
            self.record.add_line(
                SpokenLine(number, line.id, person.id, person.name, line.say, at, end, True, line.answered)
            )
            if line.id:
                self.record.step_times[line.id] = at, end
            connection.hear(make_speech(person.id, line.say, at=at))
        return end - begun

    # -- time --------------------------------------------------------------------------------------------------

    async def _live(self, seconds: float, *, step_s: float = STEP_S) -> None:
        """Advance the clock step by step while sending the bot's audio."""
        connection = self.channel.connection
        assert connection is not None, "the bot is here"
        for _ in range(max(1, round(seconds / step_s))):
            self.clock.advance(step_s)
            if connection.send(round(1000 * step_s / FRAME_MS)):
                self.sent_at.append(self.clock.monotonic())
            await self._tasks_run()

    async def _tasks_run(self) -> None:
        """Let the tasks run that the clock has woken, until the database has done what they want of it: its threads
        follow another clock, by which minutes of the scenario would pass on a busy machine.
        """
        assert self._database is not None, "it is open"
        while True:
            for _ in range(_TURNS_OF_THE_LOOP):
                await asyncio.sleep(0)
            if not self._database.is_at_work:
                return
            await asyncio.sleep(_THREADS_S)

    async def rest(self, seconds: float) -> None:
        """Advance the clock through silence; in small steps at first, because the bot may still speak."""
        listened = min(seconds, _LISTENS_ON_S)
        for _ in range(round(listened / STEP_S)):
            await self._live(STEP_S)
        for _ in range(round((seconds - listened) / QUIET_STEP_S)):
            await self._live(QUIET_STEP_S, step_s=QUIET_STEP_S)

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Advance the clock until `holds`, for at most `PATIENCE_S`."""
        for _ in range(round(PATIENCE_S / STEP_S)):
            if holds():
                return
            self._present()
            await self._live(STEP_S)
        self._missed(what)

    async def _settled(self, holds: Callable[[], bool], what: str) -> None:
        """Wait in real time until `holds`, without advancing the clock."""
        try:
            async with asyncio.timeout(SETTLE_TIMEOUT_S):
                while not holds():
                    self._present()
                    await self._news.wait()
                    self._news.clear()
        except TimeoutError:
            self._missed(what)

    # -- what is seen and received -------------------------------------------------------------------------------

    @property
    def messages(self) -> tuple[str, ...]:
        """See `ReceivedOfBot`."""
        return tuple(self.channel.chat.posted)

    def voiced(self, listener_id: int, since: float, until: float) -> tuple[float, float] | None:
        """See `ReceivedOfBot`. Everybody in the channel receives what the bot sends."""
        del listener_id
        sent = self.sent_at[bisect_left(self.sent_at, since) : bisect_right(self.sent_at, until)]
        return (sent[0], sent[-1]) if sent else None

    def heard(self, listener_id: int, since: float, until: float) -> NDArray[np.int16]:
        """See `ReceivedOfBot`. There are no words in the sound."""
        del listener_id, since, until
        return np.zeros(0, np.int16)

    async def transcribe(self, pcm: NDArray[np.int16]) -> str:
        """See `rehearsal.runner.ports.HeardSoundRecogniser`."""
        del pcm
        return ""

    def see(self, event: Event) -> None:
        for seen in observations(event):
            self.note(seen)

    def note(self, seen: Observation) -> None:
        self.record.observe(seen)
        self._show(seen)
        self._news.set()

    def _show(self, seen: Observation) -> None:
        match seen:
            case ObservedUtterance():
                latency_ms = (seen.text_at - seen.ended_at) * 1000
                self._observer.heard(self.lasted_s, self._names[seen.speaker_id], seen, latency_ms)
            case ObservedReply():
                self._observer.replied(seen.first_audio_at - self.record.live_at, seen, None)
            case ObservedCompaction():
                self._observer.compacted(self.lasted_s, seen)
            case LoggedProblem():
                self._observer.troubled(self.lasted_s, f"{seen.event}: {seen.detail}")
            case RoomReady():
                self._observer.happened(0.0, f"{self.scenario.bot.name} comes in")
            case _:
                pass

    def _missed(self, what: str) -> None:
        self.record.failed_waits.append(f"waited in vain for {what}")
        self._observer.troubled(self.lasted_s, self.record.failed_waits[-1])

    def _present(self) -> Session:
        """Return the room. Raises `ScenarioEndedError` when it has ended."""
        assert self._room is not None, "entered before"
        assert self._life is not None, "entered before"
        if self._life.done():
            raise ScenarioEndedError(_how(self._life))
        return self._room


def _how(life: asyncio.Task[str]) -> str:
    """Return how a room ended, as a sentence."""
    if life.cancelled():
        return "The bot's room was cancelled."
    error = life.exception()
    return f"The bot left: {life.result()}." if error is None else f"The bot's room broke: {first_cause(error)}"
