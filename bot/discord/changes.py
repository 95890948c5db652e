"""Which of discord.py's events change what a room knows of its voice channel, and in which server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# discord.py dispatches these after it has changed its memory.
_CHANGES = frozenset(
    {
        "disconnect",
        "guild_available",
        "guild_channel_create",
        "guild_channel_delete",
        "guild_channel_update",
        "guild_role_create",
        "guild_role_delete",
        "guild_role_update",
        "guild_unavailable",
        "guild_update",
        "member_update",
        "ready",
        "resumed",
        "scheduled_event_create",
        "scheduled_event_delete",
        "scheduled_event_update",
        "voice_state_update",
    }
)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of discord.py's memory. `guild_id`: of which server; None: of any. `moves`: somebody came or went.

    `channels`: the only voice channels that it is about; None: it may be about all.
    """

    guild_id: int | None
    moves: bool
    channels: frozenset[int] | None = None


def change_in(event: str, args: Sequence[Any]) -> Change | None:
    """Return what an event changes; None if it is of no use to a room. `args`: as discord.py's listeners get them."""
    if event not in _CHANGES:
        return None
    if event == "voice_state_update":
        member, before, after = args
        channels = frozenset(state.channel.id for state in (before, after) if state.channel is not None)
        return Change(member.guild.id, before.channel != after.channel, channels)
    # A server, or what belongs to one: a channel, a role, a member before its change, an event.
    about = args[0] if args else None
    return Change(getattr(getattr(about, "guild", about), "id", None), moves=False)
