"""Plays a written evening: one event after the other, on a manual clock.

If something expected does not happen in time, the record gets a failed wait and the evening continues. It ends early
only if the room ends.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, assert_never

from bot.channel.port import MembershipChange, Person
from bot.cli.rehearsal.companion import ProblemLogHandler, observations
from bot.cli.rehearsal.written.audio import ScriptedRecogniser, make_speech, speech_duration_s
from bot.cli.rehearsal.written.channel import WrittenChannel
from bot.cli.rehearsal.written.clock import ManualClock
from bot.cli.rehearsal.written.services import BOT_NAME, open_written_services
from bot.errors import first_cause
from bot.room.conversation.membership import TURN_EVERY_S
from bot.room.endings import LEFT
from bot.room.room import Room
from bot.room.room_check import CHECK_ROOM_S
from rehearsal.judge.written_evening import build_written_report
from rehearsal.runner.evening_record import EveningRecord, PlayedSpeech
from rehearsal.runner.observations import LoggedProblem, ObservedCompaction, ObservedReply, ObservedUtterance, RoomReady
from rehearsal.script.written_evening import PresenceEvent, SilenceEvent, SpeechEvent, display_name
from voice.audio import FRAME_MS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from bot.events import Event
    from bot.store.database import Database
    from config.schema import Settings
    from rehearsal.report.report import RehearsalReport
    from rehearsal.report.terminal import TerminalReport
    from rehearsal.runner.observations import Observation
    from rehearsal.script.written_evening import EveningEvent, EveningLine, WrittenEvening

# The clock advances in small steps while somebody speaks, in large ones otherwise.
STEP_S, QUIET_STEP_S = 0.06, 20.0
# How long after the last word an unwanted answer of the bot is still noticed.
_LISTENS_ON_S = 10.0
# After a line: time for endpointing, recognition and the start of the answer.
AFTER_SPEECH_S = 1.6
# When a second line starts that is spoken over the first one.
_OVER_AFTER_S = 0.8
# How much of an answer is played before somebody interrupts it.
_BREAKS_OFF_AFTER_S = 0.3
# A move later than this after the person's last one is recorded at once: what came between was recorded a minute after
# the first.
_MOVE_GATHERED_S = 2 * TURN_EVERY_S + CHECK_ROOM_S
# How long an answer may take to begin and to end, on the manual clock.
_PATIENCE_S = 60.0
# How long to wait in real time for what no clock brings about.
SETTLE_TIMEOUT_S = 10.0
# How often to look, in real time, whether the database's threads have done their work.
_THREADS_S = 0.0005
# Event loop iterations after each step, so that woken tasks and the tasks they wake can run.
_TURNS_OF_THE_LOOP = 5


async def play_written(
    evening: WrittenEvening, settings: Settings, program: TerminalReport, *, data_dir: Path | None = None
) -> RehearsalReport:
    """Play and show the evening, and return its report. `data_dir`: keep the memory there."""
    program.opened_in_writing(
        evening.title, BOT_NAME, [display_name(who) for who in evening.people], len(evening.speeches)
    )
    begun = time.monotonic()
    ended_by = ""
    async with open_player(evening, settings, program, data_dir=data_dir) as player:
        try:
            await player.play()
        except EveningEndedError as error:
            ended_by = str(error)
    return player.report(
        max_prompt_tokens=settings.budget.max_input_tokens, duration_s=time.monotonic() - begun, ended_by=ended_by
    )


class EveningEndedError(Exception):
    """The room ended before the evening did. The message says how."""


@asynccontextmanager
async def open_player(
    evening: WrittenEvening,
    settings: Settings,
    program: TerminalReport | None = None,
    *,
    data_dir: Path | None = None,
) -> AsyncIterator[WrittenPlayer]:
    """Open the room of an evening and yield its player. `program`: the live display, if any.
    `data_dir`: keep the memory there.

    *Ownership*: the room's task and its services end with the context.
    """
    player = WrittenPlayer(evening, program)
    async with open_written_services(
        settings, player.ears, clock=player.clock, observe=player.see, data_dir=data_dir
    ) as (services, database):
        room = Room(player.place, services)
        watch = ProblemLogHandler(player.note)
        logging.getLogger().addHandler(watch)
        life = asyncio.create_task(room.run(), name="written-evening")
        player.enter(room, life, database)
        try:
            yield player
        finally:
            logging.getLogger().removeHandler(watch)
            life.cancel()
            await asyncio.wait({life})


class WrittenPlayer:
    """Plays the evening. Created by `open_player`.

    `record`: what was observed. `people`: everybody, by their name in the file.
    """

    def __init__(self, evening: WrittenEvening, program: TerminalReport | None) -> None:
        self.evening = evening
        self.record = EveningRecord()
        self.people = {
            who: Person(number, display_name(who), is_bot=False) for number, who in enumerate(evening.people, 1)
        }
        self.place = WrittenChannel([self.people[who] for who in evening.initial_people])
        self.clock = ManualClock()
        self.ears = ScriptedRecogniser()
        self._program = program
        self._names = {person.id: person.name for person in self.people.values()}
        self._news = asyncio.Event()
        self._room: Room | None = None
        self._life: asyncio.Task[str] | None = None
        self._database: Database | None = None
        # Frames that the bot has sent since somebody last began to speak.
        self._sent = 0
        # When each person last moved (monotonic seconds).
        self._moved_at: dict[int, float] = {}

    def enter(self, room: Room, life: asyncio.Task[str], database: Database) -> None:
        """Set the room, the task that runs it, and its database."""
        self._room, self._life, self._database = room, life, database
        life.add_done_callback(lambda _: self._news.set())

    @property
    def lasted_s(self) -> float:
        """How long the evening has lasted, in seconds."""
        return self.clock.monotonic() - self.record.live_at

    def report(self, *, max_prompt_tokens: int, duration_s: float, ended_by: str = "") -> RehearsalReport:
        """Return the report after the evening. See `build_written_report`."""
        return build_written_report(
            self.evening,
            self.record,
            ids={who: str(person.id) for who, person in self.people.items()},
            max_prompt_tokens=max_prompt_tokens,
            clock_s=self.lasted_s,
            duration_s=duration_s,
            ended_by=ended_by,
        )

    async def play(self) -> None:
        """Play the whole evening. Raises `EveningEndedError` when the room ends before."""
        await self.begin()
        for line, event in zip(self.evening.lines, self.evening.events, strict=True):
            await self.perform(line, event)
        await self.leave()

    async def begin(self) -> None:
        """Wait until the bot has joined. Raises `EveningEndedError` if it does not."""
        await self._settled(self._present().opened.is_set, "the bot to come")
        self.record.live_at = self.clock.monotonic()

    async def leave(self) -> None:
        """Make the bot leave properly. Raises `EveningEndedError` if it does not."""
        room, life = self._present(), self._life
        assert life is not None, "it is here"
        room.close(LEFT)
        try:
            async with asyncio.timeout(SETTLE_TIMEOUT_S):
                await asyncio.wait({life})
        except TimeoutError:
            raise EveningEndedError(f"The bot did not leave within {SETTLE_TIMEOUT_S:.0f} s.") from None
        if life.exception() is not None:
            raise EveningEndedError(_how(life))

    # -- what happens ----------------------------------------------------------------------------------------

    async def perform(self, line: int, event: EveningEvent) -> None:
        """Play the event of one line of the file, and wait until the room has handled it.

        Raises `EveningEndedError`.
        """
        self._present()
        match event:
            case SpeechEvent():
                self.record.speeches.append(PlayedSpeech(line, event, self.lasted_s))
                await self._talk(event)
            case SilenceEvent():
                await self._rest(event.quiet_s)
            case PresenceEvent():
                await self._move(self.people[event.who], joined=event.move == "join")
            case _:
                assert_never(event)

    async def _move(self, person: Person, *, joined: bool) -> None:
        if joined:
            self.place.enter(person)
        else:
            self.place.leave(person)
        if self._program is not None:
            self._program.happened(self.lasted_s, f"{person.name} {'comes in' if joined else 'leaves'}")
        before, now = self.record.last_seq, self.clock.monotonic()
        unsettled = now - self._moved_at.get(person.id, float("-inf")) < _MOVE_GATHERED_S
        self._moved_at[person.id] = now
        self._present().on_membership(MembershipChange(person, joined=joined))
        if unsettled:
            # The room gathers this move with others, so no turn comes now.
            await self._live(STEP_S)
            return
        await self._settled(lambda: self.record.last_seq > before, f"{person.name}'s move to be noted")

    async def _talk(self, talk: SpeechEvent) -> None:
        before, replies = self.record.last_seq, len(self.record.replies)
        await self._live(self._speak(talk, talk.over) + AFTER_SPEECH_S)
        await self._settled(lambda: self.record.last_seq > before, f'"{talk.say}" to become a turn')
        if not talk.answer:
            return
        if talk.broken_off is not None:
            await self._break_off(talk.broken_off)
        await self._until(lambda: len(self.record.replies) > replies, f'the answer to "{talk.say}"')

    async def _break_off(self, line: EveningLine) -> None:
        await self._until(lambda: self._sent > 0, "the answer that is to be broken off")
        await self._live(_BREAKS_OFF_AFTER_S)
        before = self.record.last_seq
        await self._live(self._speak(line) + AFTER_SPEECH_S)
        # Two turns are recorded: the broken-off answer, then the line that broke it off.
        await self._settled(lambda: self.record.last_seq >= before + 2, f'"{line.say}" to become a turn')

    def _speak(self, *lines: EveningLine | None) -> float:
        """Feed the lines' audio to the room, each a little after the other; return their duration in seconds."""
        link = self.place.link
        assert link is not None, "the bot is here"
        self._sent = 0
        begun, end = self.clock.monotonic(), 0.0
        for number, line in enumerate(each for each in lines if each is not None):
            who, after = self.people[line.who].id, _OVER_AFTER_S * number
            self.ears.saying[who] = line.say
            link.hear(make_speech(who, line.say, at=begun + after))
            end = max(end, after + speech_duration_s(line.say))
        return end

    # -- time --------------------------------------------------------------------------------------------------

    async def _live(self, seconds: float, *, step_s: float = STEP_S) -> None:
        """Advance the clock step by step while sending the bot's audio."""
        link = self.place.link
        assert link is not None, "the bot is here"
        for _ in range(max(1, round(seconds / step_s))):
            self.clock.advance(step_s)
            self._sent += link.send(round(1000 * step_s / FRAME_MS))
            await self._tasks_run()

    async def _tasks_run(self) -> None:
        """Let the tasks run that the clock has woken, until the database has done what they want of it: its threads
        follow another clock, by which minutes of the evening would pass on a busy machine.
        """
        assert self._database is not None, "it is open"
        while True:
            for _ in range(_TURNS_OF_THE_LOOP):
                await asyncio.sleep(0)
            if not self._database.is_at_work:
                return
            await asyncio.sleep(_THREADS_S)

    async def _rest(self, seconds: float) -> None:
        """Advance the clock through silence; in small steps at first, because the bot may still speak."""
        listened = min(seconds, _LISTENS_ON_S)
        for _ in range(round(listened / STEP_S)):
            await self._live(STEP_S)
        for _ in range(round((seconds - listened) / QUIET_STEP_S)):
            await self._live(QUIET_STEP_S, step_s=QUIET_STEP_S)

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        """Advance the clock until `holds`, for at most `_PATIENCE_S`."""
        for _ in range(round(_PATIENCE_S / STEP_S)):
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

    # -- what is seen --------------------------------------------------------------------------------------------

    def see(self, event: Event) -> None:
        for seen in observations(event):
            self.note(seen)

    def note(self, seen: Observation) -> None:
        self.record.observe(seen)
        self._show(seen)
        self._news.set()

    def _show(self, seen: Observation) -> None:
        program = self._program
        if program is None:
            return
        match seen:
            case ObservedUtterance():
                latency_ms = (seen.text_at - seen.ended_at) * 1000
                program.heard(self.lasted_s, self._names[seen.speaker_id], seen, latency_ms)
            case ObservedReply():
                program.replied(seen.first_audio_at - self.record.live_at, seen, None)
            case ObservedCompaction():
                program.compacted(self.lasted_s, seen)
            case LoggedProblem():
                program.troubled(self.lasted_s, f"{seen.event}: {seen.detail}")
            case RoomReady():
                program.happened(0.0, f"{BOT_NAME} comes in")
            case _:
                pass

    def _missed(self, what: str) -> None:
        self.record.failed_waits.append(f"waited in vain for {what}")
        if self._program is not None:
            self._program.troubled(self.lasted_s, self.record.failed_waits[-1])

    def _present(self) -> Room:
        """Return the room. Raises `EveningEndedError` when it has ended."""
        assert self._room is not None, "entered before"
        assert self._life is not None, "entered before"
        if self._life.done():
            raise EveningEndedError(_how(self._life))
        return self._room


def _how(life: asyncio.Task[str]) -> str:
    """Return how a room ended, as a sentence."""
    if life.cancelled():
        return "The bot's room was cancelled."
    error = life.exception()
    return f"The bot left: {life.result()}." if error is None else f"The bot's room broke: {first_cause(error)}"
