"""A room's turn-taking with its memory, its participation and its replies, for the tests of what is beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from bot import events
from bot.brain.decider import Decision, PendingReply
from bot.brain.question import Question
from bot.channel.participants import Participants
from bot.channel.port import Person
from bot.conversation.conversation import Conversation
from bot.conversation.transcriber import Transcriber
from bot.conversation.turn_recorder import TurnRecorder
from bot.conversation.turn_taking import TurnTaking
from bot.events import SpokenText
from bot.guild import VoiceMode
from bot.participation.guild_state import GuildState, GuildStates
from bot.participation.participation import Participation, ReplyState
from bot.participation.settings import ParticipationSettings
from bot.server_settings import ServerSettings, no_server_settings
from compaction.session import SessionTimeline
from tests.bot.brain.replying import FIRST, ReplyBench, Speaker
from tests.compaction.rooms import MemoryRoom
from tests.fakes.brain import ScriptedResponder, until
from tests.fakes.choices import FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel


class TalkScene:
    """A room's turn-taking with its memory, its participation and its replies. Only models and Discord are fakes. As
    its conversation it tells what the replier does, and notes what is asked.
    """

    def __init__(self, timeline: SessionTimeline, guilds: GuildStates, guild: GuildState, bench: ReplyBench) -> None:
        self.timeline, self.guilds, self.replier, self.bench = timeline, guilds, bench.replier, bench
        self.asked: list[Question] = []
        self.seen: list[events.Event] = []
        channel, clock = self.channel, self.clock = FakeRoomChannel(), FakeClock()
        participants = Participants(channel, guild.words)
        self.participation = Participation(
            guilds, guild, session_id="evening", channel=channel, participants=participants, clock=clock, replies=self
        )
        self.turn_recorder = TurnRecorder(
            timeline, participants, own_name="Roomtone", clock=clock, observe=self.seen.append
        )
        self.taking = TurnTaking(
            participation=self.participation,
            turn_recorder=self.turn_recorder,
            replier=self.replier,
            talk=cast("Conversation", self),
            transcriber=cast("Transcriber", self),
            clock=clock,
            observe=self.seen.append,
        )

    def ask(self, question: Question) -> None:
        self.asked.append(question)

    def reply_language(self, spoken: SpokenText) -> str:
        return {ADA.id: "en", BO.id: "de"}[spoken.user_id]

    async def opt_out(self, person: Person) -> None:
        await self.guilds.set_opt_out(FakeRoomChannel().guild_id, person.id, out=True)

    async def until_speaking(self) -> None:
        """Let the bot answer something else, until its first sound is there."""
        self.replier.ask(FIRST)
        await until(lambda: self.replier.speaking)

    @property
    def decided(self) -> list[events.TurnDecided]:
        return [event for event in self.seen if isinstance(event, events.TurnDecided)]

    def reply_state(self, speaker: int | None) -> ReplyState:
        return ReplyState(PendingReply.NONE, busy=self.replier.busy)

    def is_begun(self, utterance_id: str) -> bool:
        return self.replier.stage_of(utterance_id) is not None

    can_skip = True

    def stop_speaking(self) -> None:
        self.replier.cancel_all("silenced")

    def speak_unprompted(self, decision: Decision) -> bool:
        raise AssertionError(decision)


@asynccontextmanager
async def a_scene(*pieces: str | asyncio.Event, speaker: Speaker | None = None) -> AsyncIterator[TalkScene]:
    """Open a room's memory and run its replier. `pieces`: what the model answers."""
    servers, guild_id = no_server_settings(), FakeRoomChannel().guild_id
    await servers.change(guild_id, lambda _: ServerSettings(voice_mode=VoiceMode.FREE), by=ADA.id)
    guilds = GuildStates(servers, FakeOptOuts(), ParticipationSettings(), wake_names=("Roomtone",), clock=FakeClock())
    guild = await guilds.begin_session(guild_id, "evening")
    bench = ReplyBench(ScriptedResponder(*(pieces or ("At nine.",))), words=guild.words, speaker=speaker)
    async with MemoryRoom() as room, bench.running():
        await asyncio.sleep(0)
        yield TalkScene(room.timeline, guilds, guild, bench)
