"""The environment of many rooms: a local Discord and a person for each room, and the process that runs the one bot.

The person listens, and repeats a sentence so that the bot's recogniser has work. The bot's settings make it speak
through the interruptions. Times are taken where packets reach the media server.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.bot_address import bot_address
from benchmarks.child_process import ANSWER_TIMEOUT_S, ChildErrors, child_process, python_module
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from rehearsal.runner.scripted_member import scripted_member
from rehearsal.servers.chat import MODEL, ChatBehaviour, LocalChatServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from benchmarks.child_process import ChildProcess
    from rehearsal.discord.media.arrivals import PacketArrival
    from rehearsal.people.person import ScriptedPerson

_PERSON_ID = 2001
_FIRST_GUILD_ID, _FIRST_CHANNEL_ID = 5001, 6001
_SOUND_TIMEOUT_S = 20.0
# Seconds between a person's sentences. With ten rooms, the recogniser is called about once a second.
_SAY_EVERY_S = 8.0
# Every answer is longer than the whole measurement.
_SENTENCE = "Then we went on along the river, and whoever was tired sat down under a tree and looked at the water. "
_SENTENCES = 150
_ERRORS = ChildErrors(
    silent="The process with the rooms stopped answering ({reason}).", failed="The rooms could not be opened: {reason}"
)
# These settings prevent interruptions, because the measurement needs a bot that is always speaking.
_SETTINGS = {
    "llm.model": MODEL,
    "compaction.summariser": "extractive",
    "speaking.engine": "piper",
    "speaking.stop_after_s": 30.0,
    "room.notice": "",
}


class ManyRooms:
    """All rooms that are open so far. `arrivals`: the bot's packets in each room, in order."""

    def __init__(self, stack: AsyncExitStack, child: ChildProcess, clip: Clip, model_url: str) -> None:
        self._stack = stack
        self._child = child
        self._clip = clip
        self._settings = {**_SETTINGS, "llm.base_url": model_url}
        self._people: list[ScriptedPerson] = []
        self._saying: list[asyncio.Task[None]] = []
        self.arrivals: list[list[PacketArrival]] = []

    async def open_another(self, data_dir: Path) -> None:
        """Open one more room and return when the bot speaks in it. Raises `BenchmarkError`."""
        number = len(self._people)
        discord = await self._stack.enter_async_context(LocalDiscord(guild=_guild(number)))
        kept: list[PacketArrival] = []

        def keep(arrival: PacketArrival) -> None:
            if arrival.user_id == ROOMTONE_BOT_ID:
                kept.append(arrival)

        discord.watch_arrivals(keep)
        person = await self._stack.enter_async_context(scripted_member(discord, _PERSON_ID))
        where = bot_address(discord)
        if number == 0:
            settings = {**self._settings, "storage.data_dir": str(data_dir)}
            await self.ask("start", settings=settings, discord=where)
        else:
            await self.ask("enter", discord=where)
        await person.meet(ROOMTONE_BOT_ID)
        self._people.append(person)
        self.arrivals.append(kept)
        saying = asyncio.create_task(self._go_on_saying(person), name=f"person-of-room-{number}")
        self._saying.append(saying)
        await person.wait_for_sound(ROOMTONE_BOT_ID, since=0.0, timeout_s=_SOUND_TIMEOUT_S)

    async def _go_on_saying(self, person: ScriptedPerson) -> None:
        while True:
            await person.say(self._clip)
            await asyncio.sleep(_SAY_EVERY_S)

    async def ask(self, op: str, **request: object) -> dict[str, Any]:
        """Send a request to the bot's process and return the answer. Raises `BenchmarkError`."""
        return await self._child.ask(op, timeout_s=ANSWER_TIMEOUT_S, **request)

    async def hush(self) -> None:
        """Stop the people from speaking."""
        for saying in self._saying:
            saying.cancel()
        await asyncio.gather(*self._saying, return_exceptions=True)


@asynccontextmanager
async def open_many_rooms(clip: Path) -> AsyncIterator[tuple[ManyRooms, Path]]:
    """Yield a `ManyRooms` without open rooms, and a folder for the bot's data. `clip`: what people say repeatedly."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-rooms-")))
        model = await stack.enter_async_context(LocalChatServer(ChatBehaviour(answer=lambda _: _SENTENCE * _SENTENCES)))
        sound = await asyncio.to_thread(Clip.load, clip)
        command = python_module("benchmarks.reply.many_rooms_process")
        # Inside the stack, so that the bot ends before the rooms' Discords do.
        async with child_process("the rooms", command, errors=_ERRORS) as child:
            rooms = ManyRooms(stack, child, sound, model.base_url)
            try:
                yield rooms, folder
            finally:
                await rooms.hush()


def _guild(number: int) -> GuildSpec:
    channel_id = _FIRST_CHANNEL_ID + 10 * number
    return GuildSpec(
        id=_FIRST_GUILD_ID + number,
        voice_channels=(Channel(channel_id, "Evening"),),
        text_channel=Channel(channel_id + 1, "chat"),
        people=(Member(_PERSON_ID, "Ada"),),
        bots=(Member(ROOMTONE_BOT_ID, "Roomtone"),),
    )
