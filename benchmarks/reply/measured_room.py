"""Runs the whole bot in a room of the local Discord, with people who play recordings and one who only listens.

Protocol, encryption, audio, recognition and voice are real, as in a rehearsal. Only the language model is a local
server with fixed answers. The listener is another bot's account. A single speaker is therefore alone with the bot,
which then answers everything. The listener receives what another participant would hear.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import logging_disabled
from benchmarks.recordings import CHANNEL, PEOPLE, SERVER
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from rehearsal.people.person import ClipPlayback, ScriptedPerson, scripted_member
from rehearsal.roomtone.companion import InProcessBot
from rehearsal.runner.local_environment import discord_addresses
from rehearsal.runner.ports import BotSetup
from rehearsal.runner.record import RunRecord
from rehearsal.servers.chat import MODEL, ChatBehaviour, LocalChatServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from rehearsal.people.received_speech import ReceivedSpeech

_GUILD_ID, _VOICE_ID, _TEXT_ID = 500, 600, 601
FIRST_PERSON_ID, LISTENER_ID = 2001, 1002
_ENTER_TIMEOUT_S = 60.0
# Two ordinary sentences, so that a reply ends soon and the next recording can begin.
SHORT_ANSWER = "Yes, I think so too."
# Long enough to be interrupted.
LONG_ANSWER = (
    "That is a long story, and I will tell you all of it from the very beginning. First there was a bicycle shop at "
    "the corner of the old market, with a green door and a bell that rang whenever somebody came in. Then there was "
    "the owner, who knew every road around the lake and had an opinion about each of them. And in the end there was "
    "the bicycle itself, which had been standing in the window since the summer before."
)
# The report lists the bot's warnings. Other log lines are kept because the stages are read from them.
_TROUBLE = frozenset({"warning", "error", "critical"})


@dataclass(slots=True)
class BenchmarkRoom:
    """A bot in its room. `lines`: the bot's log. `record`: the events that the bot reported."""

    people: list[ScriptedPerson]
    listener: ScriptedPerson
    record: RunRecord
    model: LocalChatServer
    lines: list[Mapping[str, Any]]
    enter: Callable[[AsyncExitStack, int], Awaitable[ScriptedPerson]]
    clips: dict[Path, Clip] = field(default_factory=dict)

    @property
    def heard(self) -> ReceivedSpeech:
        """The sound of the bot that the listener received."""
        return self.listener.heard(ROOMTONE_BOT_ID)

    @property
    def troubles(self) -> list[str]:
        """Return the event names of the bot's warnings, each once."""
        named = [str(line.get("event", "")) for line in self.lines if line.get("level") in _TROUBLE]
        return list(dict.fromkeys(named))

    @asynccontextmanager
    async def stranger(self) -> AsyncIterator[None]:
        """Let somebody of whom the bot knows nothing be alone with it while the block runs. In a room of no people."""
        async with AsyncExitStack() as stack:
            self.people.append(await self.enter(stack, FIRST_PERSON_ID))
            stack.callback(self.people.clear)
            await self.people[0].meet(ROOMTONE_BOT_ID)
            yield

    async def say(self, path: Path, *, person: int = 0) -> ClipPlayback:
        """Let a person speak a recording in real time."""
        if path not in self.clips:
            self.clips[path] = await asyncio.to_thread(Clip.load, path)
        return await self.people[person].say(self.clips[path])


@asynccontextmanager
async def open_room(*, people: int, first_token_s: float = 0.0) -> AsyncIterator[BenchmarkRoom]:
    """Start everything, wait until the bot hears everybody, and yield the room.

    Raises `RehearsalError`, or the bot's own error if one of its models is missing.
    """
    lines: list[Mapping[str, Any]] = []
    # The figures are read from lines of all levels. Writing them to a file would be measured too.
    with logging_disabled(kept=lines):
        async with AsyncExitStack() as stack:
            behaviour = ChatBehaviour(answer=lambda call: SHORT_ANSWER, first_token_delay_s=first_token_s)
            model = await stack.enter_async_context(LocalChatServer(behaviour))
            discord = await stack.enter_async_context(LocalDiscord(guild=benchmark_guild(people or 1)))
            overrides = {"llm.base_url": model.base_url, "llm.model": MODEL, "tuning.summariser": "extractive"}
            companion = await stack.enter_async_context(InProcessBot(overrides))
            record = RunRecord()
            addresses = discord_addresses(discord, f"{ROOMTONE_BOT_ID}.local.benchmark")
            await companion.start(BotSetup(addresses, bot_name="Roomtone", settings={}), record.observe)
            stack.push_async_callback(companion.stop)
            present = [await enter_person(discord, stack, FIRST_PERSON_ID + number) for number in range(people)]
            listener = await enter_person(discord, stack, LISTENER_ID)
            await companion.enter(_GUILD_ID, _VOICE_ID)
            async with asyncio.timeout(_ENTER_TIMEOUT_S):
                for person in (*present, listener):
                    await person.meet(ROOMTONE_BOT_ID)
            enter = partial(enter_person, discord)
            yield BenchmarkRoom(present, listener, record, model, lines, enter)


async def enter_person(discord: LocalDiscord, stack: AsyncExitStack, user_id: int) -> ScriptedPerson:
    """Bring a member of `benchmark_guild` into the voice channel until `stack` is closed."""
    return await stack.enter_async_context(scripted_member(discord, user_id, channel_id=_VOICE_ID))


def benchmark_guild(people: int) -> GuildSpec:
    """Return the server of a benchmark: one voice channel, so many people, the bot and the listener."""
    return GuildSpec(
        id=_GUILD_ID,
        name=SERVER,
        voice_channels=(Channel(_VOICE_ID, CHANNEL),),
        text_channel=Channel(_TEXT_ID, "chat"),
        people=tuple(Member(FIRST_PERSON_ID + number, PEOPLE[number]) for number in range(people)),
        bots=(Member(ROOMTONE_BOT_ID, "Roomtone"), Member(LISTENER_ID, "Listener")),
    )
