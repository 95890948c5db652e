"""Makes the request with which the gateway process gives a room to a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.remote.messages.participation_state import participation_state
from bot.remote.messages.room_messages import OpenRoom
from bot.server_settings import to_json

if TYPE_CHECKING:
    from bot.channel.port import ListenRequest, Place
    from bot.remote.gateway_side.gateway_parts import GatewayParts


async def open_request(place: Place, parts: GatewayParts, listen: ListenRequest | None) -> OpenRoom:
    """Return what a process has to know of a room before it runs. Raises `StoreError`."""
    guild = await parts.participation.for_new_room(place.guild_id)
    choice = await parts.choices.choice(guild.guild_id)
    claim = await parts.newest_claim(guild.guild_id)
    now = parts.clock.monotonic()
    return OpenRoom(
        guild.guild_id,
        place.channel_id,
        listen,
        participation_state(guild),
        choice,
        to_json(parts.servers.of(guild.guild_id)),
        tuple(guild.costs.ages(now)),
        claim,
        None if guild.ran_until is None else now - guild.ran_until,
        parts.opened_by,
        guild.unrecorded.utterances(now),
    )
