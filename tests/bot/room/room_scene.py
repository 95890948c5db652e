"""A room with everything real except the sound, the models and Discord, for the tests of rooms."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

from bot import events
from bot.background_task import owned_task
from bot.brain.embedded.chat import EmbeddedResponder
from bot.brain.settings import BrainSettings
from bot.brain.system_prompt import SystemPrompt
from bot.conversation.services import MemoryServices, ReplyServices, RoomServices, SpeechModels, without_tools
from bot.health import Health
from bot.llm.fallback import FallbackModel
from bot.participation.guild_state import GuildStates
from bot.participation.settings import ParticipationSettings
from bot.room.room import Room
from bot.server_settings import ListenRequest, no_server_settings
from bot.settings import RoomSettings
from bot.store.database import Database, open_database
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from compaction.model import Mode, SessionId, Turn, TurnKind
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from rehearsal.roomtone.written.channel import LoudnessDetector
from tests.bot.empty_database import put_empty_database
from tests.fakes.brain import FakeVoice, ScriptedResponder
from tests.fakes.choices import FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.hearing import CannedRecogniser, speech
from tests.fakes.loop_time import loop_turns
from tests.fakes.room_channel import FakeRoomChannel
from tests.fakes.voices import FakeVoices
from tests.patience import settle
from voice.asr.settings import AsrSettings
from voice.listening.end_policy import GATE
from voice.speaking.settings import SpeakingSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from sqlalchemy import QueuePool

    from bot.brain.context import QuoteFinder
    from bot.brain.responder import Responder
    from bot.channel.port import Person, RoomChannel
    from bot.conversation.services import OpenToolbox, PromptPolicies
    from bot.health import HealthFault
    from bot.llm.model_calls import Payer
    from bot.memory.personal_recall import MemoryReaders
    from bot.memory.recall import RecallScope
    from bot.memory.upkeep import MemoryUpkeep
    from bot.store.claims import RoomClaim
    from compaction.events import CompactionEvent
    from compaction.ports import TurnStore
    from compaction.summary.port import Summariser
    from voice.audio import Pcm
    from voice.listening.turn_detection import TurnEndDetector


TICK_S = 0.05
# A call that acts outside waits until its question is over.
MOST_WAITED_S = 2.0
EventT = TypeVar("EventT")


class Judge:
    """A turn-end detector that takes every pause for the end: each reply to speech is held."""

    line = GATE

    async def judge(self, pcm: Pcm) -> float | None:
        """See `TurnEndDetector.judge`."""
        return 0.9


class House:
    """The services that the rooms use: a real database, fake audio and models, and a list of all events."""

    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.summariser: Summariser = ExtractiveSummariser()
        self.database = database
        self.sessions = Sessions(database, clock)
        self.store: TurnStore = SqlTurnStore(database, clock)
        # The store for the room with a claim.
        self.store_of: Callable[[RoomClaim], TurnStore] = lambda _: self.store
        self.clock = clock
        self.waited_s = 0.0
        self.seen: list[events.Event] = []
        self.voice = FakeVoice()
        self.sample = FakeVoice()
        self.recogniser = CannedRecogniser()
        self.recogniser.repeats = True
        self.process_faults: list[HealthFault] = []
        self.health = Health(clock)
        self.health.started()
        self.health.add_check(lambda: self.process_faults)
        self.channel = FakeRoomChannel()
        self.policy: PromptPolicies | None = None
        self.participating = ParticipationSettings()
        self.opt_outs = FakeOptOuts()
        self.consent = RoomSettings()
        self.new_responder: Callable[[Payer], Responder] = lambda _: EmbeddedResponder(zone=UTC)
        self.can_skip = False
        self.turn_end_detector: TurnEndDetector | None = None
        self.servers = no_server_settings()
        self.listen: ListenRequest | None = None
        self.readable: MemoryReaders | None = None
        self.model: FallbackModel | None = None
        self.toolbox: OpenToolbox = without_tools
        self.quoting: Callable[[RecallScope, RoomChannel], QuoteFinder | None] = lambda *_: None
        self.open_upkeep: Callable[..., MemoryUpkeep | None] = lambda *_: None

    @cached_property
    def participation(self) -> GuildStates:
        """Return the participation of all servers, with the settings at the time of the first call."""
        names = BrainSettings().names
        return GuildStates(
            self.servers,
            self.opt_outs,
            self.participating,
            wake_names=names,
            clock=self.clock,
            room=self.consent,
        )

    def room(self) -> Room:
        return Room(self.channel, self.services(), self.listen)

    def services(self) -> RoomServices:
        brain = BrainSettings()
        return RoomServices(
            speech=SpeechModels(self.recogniser, LoudnessDetector(), self.voice, self.turn_end_detector),
            memory=MemoryServices(
                sessions=self.sessions,
                open_timeline=self._open_memory,
                open_upkeep=self.open_upkeep,
                open_quoting=self.quoting,
                readable=self.readable,
            ),
            replies=ReplyServices(
                new_responder=self.new_responder,
                instructions=SystemPrompt(brain.name),
                max_input_tokens=10_000,
                guild_policy=self.policy,
                open_toolbox=self.toolbox,
                model=self.model,
                can_skip=self.can_skip,
            ),
            room=RoomSettings(),
            brain=brain,
            asr=AsrSettings(),
            speaking=SpeakingSettings(),
            participation=self.participation,
            zone=UTC,
            clock=self.clock,
            health=self.health,
            observe=self.seen.append,
            servers=self.servers,
            voices=FakeVoices(self.sample),
        )

    def forget(self, person: Person) -> None:
        """Take back what a person has said until now and is not stored, as /forget-me begins."""
        self.participation.take_back({str(person.id)})

    async def withdraw_turns(self) -> None:
        """Take back turns of the open session, as /forget-me ends."""
        guild = await self.participation.of_guild(self.channel.guild_id)
        assert guild.room is not None
        self.participation.take_back(sessions=[SessionId(guild.room.session_id)])

    def _open_memory(
        self, session_id: SessionId, claim: RoomClaim, on_event: Callable[[CompactionEvent], None]
    ) -> AbstractAsyncContextManager[SessionTimeline]:
        return SessionTimeline.open(
            session_id,
            store=self.store_of(claim),
            summariser=self.summariser,
            mode=Mode.SUMMARY,
            clock=self.clock,
            on_event=on_event,
            searchable=True,
        )

    def of(self, kind: type[EventT]) -> list[EventT]:
        return [event for event in self.seen if isinstance(event, kind)]

    @property
    def turns(self) -> list[Turn]:
        return [event.turn for event in self.seen if isinstance(event, events.TurnRecorded)]

    @property
    def said(self) -> list[str]:
        """Return the words of every recorded turn with their speakers."""
        return [f"{part.speaker}: {part.text}" for turn in self.turns for part in turn.parts]

    async def pass_time(self, seconds: float, *, step_s: float = TICK_S) -> None:
        """Advance the clock in steps. After each, let all tasks run, until the database has done what they want of it:
        on a busy machine, minutes would pass meanwhile.
        """
        pool = cast("QueuePool", self.database.dialect.readers.pool)
        for _ in range(round(seconds / step_s)):
            self.clock.advance(step_s)
            await loop_turns()
            while pool.checkedout():
                await settle(lambda: not pool.checkedout())
                await loop_turns()

    async def say(self, user_id: int, text: str, *, quiet_s: float = 0.0) -> None:
        """Let a person say something, and wait until their turn is recorded: others may come before it. `quiet_s`: see
        `speech`.
        """
        self.recogniser.texts.append(text)
        before = len(self.turns)
        started = self.clock.monotonic()
        await self.pass_time(2.0)
        self.channel.connections[-1].hear(speech(user_id, at=started, quiet_s=quiet_s))
        await self.pass_time(1.5)
        await settle(lambda: any(_is_said_by(user_id, turn) for turn in self.turns[before:]))

    async def reply(self, number: int) -> events.ReplySpoken:
        """Wait until the bot has spoken `number` times, and return the last of these replies. Time passes for one that
        does something first: it waits until its question is over.
        """
        while len(self.of(events.ReplySpoken)) < number and self.waited_s < MOST_WAITED_S:
            self.waited_s += TICK_S
            await self.pass_time(TICK_S)
        self.waited_s = 0.0
        await settle(lambda: len(self.of(events.ReplySpoken)) >= number)
        return self.of(events.ReplySpoken)[number - 1]


def _is_said_by(user_id: int, turn: Turn) -> bool:
    is_speech = turn.kind in {TurnKind.SPEECH, TurnKind.EFFECT}
    return is_speech and any(part.speaker_id == str(user_id) for part in turn.parts)


@asynccontextmanager
async def a_house(folder: Path) -> AsyncIterator[House]:
    """Open the services with a database in `folder`."""
    async with AsyncExitStack() as stack:
        clock = FakeClock()
        put_empty_database(folder / "room.db")
        database = await stack.enter_async_context(open_database(folder / "room.db", synchronous="normal"))
        yield House(database, clock)


@asynccontextmanager
async def living(
    house: House, *, room: Room | None = None, opens: bool = True
) -> AsyncIterator[tuple[Room, asyncio.Task[str]]]:
    """Run a room until the block is left. If it has not ended by then, it is cancelled, as in a crash.

    `room`: another one than the house makes. `opens`: the block begins when the room is open, or over.
    """
    room = room or house.room()
    async with owned_task(room.run(), name="room-under-test") as task:
        if opens:
            await settle(lambda: room.opened.is_set() or task.done())
        yield room, task


async def ended(house: House, task: asyncio.Task[str]) -> str:
    """Wait until a room has ended and return the reason."""
    await settle(task.done)
    return task.result()


async def leave(room: Room, task: asyncio.Task[str]) -> str:
    """Send the bot away. Returns why the room has ended."""
    room.close("left")
    await settle(task.done)
    return task.result()


def thinking(house: House, *pieces: str | Exception) -> ScriptedResponder:
    """Give the rooms a model that answers with `pieces` and may skip."""
    responder = ScriptedResponder(*pieces)
    house.new_responder = lambda _: responder
    house.can_skip = True
    return responder


async def silenceable(house: House) -> None:
    """Wait until the guild's participation knows the room, because only then it can be silenced."""
    guild = await house.participation.of_guild(house.channel.guild_id)
    await settle(lambda: guild.room is not None)
