"""Lets the bot go on, after a crash, with the sessions that were open then, unless somebody has sent it away."""

from __future__ import annotations

import asyncio
from operator import attrgetter
from typing import TYPE_CHECKING

import structlog

from bot.errors import crash_sentence
from bot.room.listen_only import stored_request
from bot.settings import RESUME_WITHIN_S
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.channel.port import ListenRequest, Place
    from bot.discord.client import RoomtoneClient
    from bot.room.rooms import Rooms
    from bot.shards import Shards
    from bot.store.dialects.port import BotLock
    from bot.store.sessions import Sessions, StoredSession
    from bot.wiring.process_parts import Stores
    from compaction.model import SessionId

log = structlog.get_logger()

# A room is there within a second or two, unless Discord stalls. More at once would start as many rooms' processes.
REJOINED_AT_ONCE = 4


async def rejoin_sessions(client: RoomtoneClient, rooms: Rooms, stores: Stores, shards: Shards) -> None:
    """Rejoin the channels of sessions that a crashed process left open, if people are still there.

    Those of other shards belong to other processes, in which they may go on. A channel that takes its time does not
    delay the others, `REJOINED_AT_ONCE` at most at a time.
    """
    free = asyncio.Semaphore(REJOINED_AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        for session in _last_of_each_server(await stores.sessions.unfinished(resume_within_s=RESUME_WITHIN_S)):
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
    if rooms.place_of(guild_id) is not None:
        # It was taken back, or somebody has called the bot meanwhile.
        return
    if not await client.admission.serves(guild_id):
        log.info("session_not_resumed", session_id=session.id, reason="guild_not_served")
        return
    place = client.place(guild_id, channel_id)
    if place is None or all(person.is_bot for person in place.members()):
        log.info("session_not_resumed", session_id=session.id, reason="nobody_there")
        return
    with client.logged_shard(guild_id):
        await _join(place, rooms, session.id, stored_request(guild_id, stores.servers, session.id))


async def end_open_session(sessions: Sessions, lock: BotLock, place: Place) -> None:
    """End what the room in `place`, or an earlier one of its server, has left open. Raises `StoreError`.

    Does nothing if another process has the server by now: the open session may be that of a room which runs there.
    """
    if await lock.look():
        log.warning("open_session_left_to_other_process", guild_id=place.guild_id)
        return
    for session_id in await sessions.end_open(place.guild_id):
        log.info("open_session_ended", session_id=session_id)


def _last_of_each_server(sessions: Iterable[StoredSession]) -> list[StoredSession]:
    """Return of each server the session that goes on. An earlier one is of a room that crashed while the bot was moved,
    or had no database when it ended; it is ended when the room opens.
    """
    return list({session.guild_id: session for session in sorted(sessions, key=attrgetter("last_turn_at"))}.values())


async def _join(place: Place, rooms: Rooms, session_id: SessionId, listen: ListenRequest | None) -> None:
    try:
        await rooms.join(place, listen=listen)
    except Exception as error:  # noqa: BLE001 - a room that breaks, and has logged it, keeps no other from beginning
        log.warning("session_not_resumed", session_id=session_id, reason="not_joined", problem=error)
        await place.write(Text("I could not come back. {why}", why=crash_sentence(error)))
