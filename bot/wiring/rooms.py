"""Opens what runs the rooms of the bot. Lets it go on, after a crash, with the sessions that were open then, and lets
open rooms drop what they still hold of a person who is forgotten.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import structlog

from bot.errors import crash_sentence
from bot.health import FaultKind
from bot.room.room import Room
from bot.room.rooms import Rooms
from bot.settings import RESUME_WITHIN_S
from bot.texts.text import Text
from bot.wiring.services import open_tool_servers, room_services
from voice.transport.paced_sender import PacedSender, running_paced_sender

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from contextlib import AsyncExitStack

    from bot import events
    from bot.channel.port import RoomChannel
    from bot.conversation.services import SpeechModels
    from bot.discord.client import RoomtoneClient
    from bot.memory.upkeep import MemoryUpkeep
    from bot.models.loaded_voices import LoadedVoices
    from bot.participation.guild_state import GuildStates
    from bot.posts.renewal import PostedRenewal
    from bot.screen.screens import Screens
    from bot.server_settings import ServerSettingsBook
    from bot.shards import Shards
    from bot.store.dialects.port import BotLock
    from bot.store.sessions import Sessions, StoredSession
    from bot.wiring.memory import MemoryParts
    from bot.wiring.process import BotProcess, Stores
    from compaction.model import SessionId

log = structlog.get_logger()


class RoomForgetting:
    """Implements `bot.memory.personal_data.OpenRooms`. `upkeeps`: those of the open rooms.

    `participation`: has the words of the rooms. `servers`: their settings may have named the person. `posts`: those
    that may have their words.
    """

    def __init__(
        self,
        participation: GuildStates,
        upkeeps: Mapping[SessionId, MemoryUpkeep],
        servers: ServerSettingsBook,
        *,
        posts: PostedRenewal,
    ) -> None:
        self._participation = participation
        self._posts = posts
        self._upkeeps = upkeeps
        self._servers = servers

    async def before_forgetting(self, person_id: str) -> None:
        """See `OpenRooms.before_forgetting`. Raises `StoreError`."""
        upkeeps = dict(self._upkeeps)
        # What is said now may repeat what they said in this session: it ends at once, whatever becomes of the store.
        here = [session for session, upkeep in upkeeps.items() if upkeep.has_turns_of(person_id)]
        self._participation.take_back({person_id}, sessions=here)
        await asyncio.gather(*(upkeep.store_waiting() for upkeep in upkeeps.values()))

    async def after_forgetting(self, sessions: Collection[SessionId]) -> None:
        """See `OpenRooms.after_forgetting`. Raises `StoreError`."""
        try:
            await self._servers.load()
            await asyncio.gather(*(upkeep.refresh() for upkeep in list(self._upkeeps.values())))
        finally:
            # Also while the database is away: this drops what is on its way.
            self._participation.take_back(sessions=sessions)
            self._posts.wake()


# A room is there within a second or two, unless Discord stalls. More at once would start as many rooms' processes.
REJOINED_AT_ONCE = 4


async def rejoin_sessions(client: RoomtoneClient, rooms: Rooms, stores: Stores, shards: Shards) -> None:
    """Rejoin the channels of sessions that a crashed process left open, if people are still there.

    Those of other shards belong to other processes, in which they may go on. A channel that takes its time does not
    delay the others, `REJOINED_AT_ONCE` at most at a time.
    """
    free = asyncio.Semaphore(REJOINED_AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        # Of each server the last goes on. An earlier one is of a room that crashed while the bot was moved, or had no
        # database when it ended; it is ended when the room opens.
        found = sorted(
            await stores.sessions.unfinished(resume_within_s=RESUME_WITHIN_S), key=attrgetter("last_turn_at")
        )
        for session in {each.guild_id: each for each in found}.values():
            if session.guild_id is None or session.channel_id is None or not shards.serves(session.guild_id):
                continue
            await free.acquire()
            rejoining = tasks.create_task(
                _rejoin_session(client, rooms, stores, session, session.guild_id, session.channel_id),
                name=f"rejoin-{session.guild_id}",
            )
            rejoining.add_done_callback(lambda _: free.release())


async def _rejoin_session(
    client: RoomtoneClient,
    rooms: Rooms,
    stores: Stores,
    session: StoredSession,
    guild_id: int,
    channel_id: int,
) -> None:
    if rooms.room_channel_of(guild_id) is not None:
        # It was taken back, or somebody has called the bot meanwhile.
        return
    if not await client.admission.serves(guild_id):
        log.info("session_not_resumed", session_id=session.id, reason="guild_not_served")
        return
    channel = client.find_channel(guild_id, channel_id)
    if channel is None or all(person.is_bot for person in channel.members()):
        log.info("session_not_resumed", session_id=session.id, reason="nobody_there")
        return
    with client.logged_shard(guild_id):
        try:
            await rooms.join(channel)
        except Exception as error:  # noqa: BLE001 - a room that breaks, and has logged it, keeps no other from it
            log.warning("session_not_resumed", session_id=session.id, reason="not_joined", problem=error)
            await channel.write(Text("I could not come back to the voice channel. {why}", why=crash_sentence(error)))


async def end_open_session(sessions: Sessions, lock: BotLock, channel: RoomChannel) -> None:
    """End what the room in `channel`, or an earlier one of its server, has left open. Raises `StoreError`.

    Does nothing if another process has the server by now: the open session may be that of a room which runs there.
    """
    if await lock.look():
        log.warning("open_session_left_to_other_process", guild_id=channel.guild_id)
        return
    for session_id in await sessions.end_open(channel.guild_id):
        log.info("open_session_ended", session_id=session_id)


@dataclass(frozen=True, slots=True)
class OpenedRooms:
    """The rooms of this process. `paced_sender` sends their audio; None: they send it themselves."""

    rooms: Rooms
    paced_sender: PacedSender | None


async def open_rooms(
    stack: AsyncExitStack,
    process: BotProcess,
    recollection: MemoryParts,
    *,
    speech: SpeechModels,
    voices: LoadedVoices,
    screens: Screens,
    observe: events.Observer,
) -> OpenedRooms:
    """Connect on `stack` what rooms of this process share. Raises `BotError` when something needed is missing."""
    parts = process.parts
    services = room_services(
        parts,
        speech,
        recollection,
        tool_servers=await open_tool_servers(stack, parts),
        participation=process.participation,
        voices=voices,
        show_live=process.live.show,
        screens=screens,
        observe=observe,
    )
    rooms = Rooms(
        lambda channel, listen: Room(channel, services, listen),
        clock=parts.clock,
        servers=parts.stores.servers,
        end_session=partial(end_open_session, parts.stores.sessions, process.lock),
        health=parts.health,
        max_rooms=parts.settings.room.max_rooms,
        spending=process.spending,
    )
    paced_sender = stack.enter_context(running_paced_sender())
    if paced_sender is not None:
        instead = Text("I send it myself, and it can sound worse when I have a lot to do")
        parts.health.add_outage(
            FaultKind.VOICE, Text("The process that sends my voice"), instead, lambda: paced_sender.outage
        )
    return OpenedRooms(rooms, paced_sender)
