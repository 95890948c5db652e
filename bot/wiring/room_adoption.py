"""Takes the rooms back that ran on while the bot was away: asks Discord, the database and the supervisor about each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.errors import SetupError
from bot.remote.processes.adoption import NOT_OURS, ServerNow
from bot.store.claims import known_claim

if TYPE_CHECKING:
    from bot.discord.client import RoomtoneClient
    from bot.remote.link.hello import RoomIdentity
    from bot.remote.processes.adoption import AdoptedRoom
    from bot.room.supervisor import RoomSupervisor
    from bot.shards import Shards
    from bot.store.database import Database
    from bot.store.sessions import Sessions
    from bot.wiring.room_processes import RemoteRooms


async def take_rooms_back(
    remote: RemoteRooms,
    client: RoomtoneClient,
    supervisor: RoomSupervisor,
    sessions: Sessions,
    database: Database,
    shards: Shards,
) -> None:
    """Take back the rooms whose processes come, and return once the others are given up. Raises `StoreError`.

    The client is connected: Discord has said in which voice channels the bot is.
    """

    async def look(room: RoomIdentity) -> ServerNow:
        guild_id = room.guild_id
        claim = await known_claim(database, guild_id)
        return ServerNow(
            is_served=shards.serves(guild_id) and await client.admission.serves(guild_id),
            has_room=supervisor.place_of(guild_id) is not None,
            bot_channel=client.bot_channel(guild_id),
            claim=claim,
        )

    async def start(adopted: AdoptedRoom) -> None:
        room = adopted.room
        place = client.place(room.guild_id, room.channel_id)
        if place is None:
            raise SetupError(NOT_OURS)
        with client.logged_shard(room.guild_id):
            await supervisor.join(place, listen=room.listen, room=remote.make(place, room.listen, adopted=adopted))

    remote.adoptions.begin(look, start)
    # A room in which nobody has spoken for long runs all the same.
    unfinished = await sessions.unfinished(resume_within_s=float("inf"))
    guilds = {session.guild_id for session in unfinished if session.guild_id is not None}
    await remote.adoptions.finish({guild_id for guild_id in guilds if shards.serves(guild_id)})
