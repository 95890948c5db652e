"""Whether a session is only written down. The server's settings hold it, so that it survives a crash of the process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.channel.port import ListenRequest
from bot.server_settings import ListenOnly

if TYPE_CHECKING:
    from bot.server_settings import ServerSettingsBook
    from compaction.model import SessionId


def stored_request(
    guild_id: int, servers: ServerSettingsBook, session_id: SessionId | None = None
) -> ListenRequest | None:
    """Return how the server's last session is written down; None if the bot takes part. `session_id`: only if it is
    this one.
    """
    stored = servers.of(guild_id).listen_only
    if stored is None or session_id not in (None, stored.session_id):
        return None
    return ListenRequest(stored.target, stored.channel_id)


async def remembered_request(
    wanted: ListenRequest | None, session_id: SessionId, guild_id: int, servers: ServerSettingsBook
) -> ListenRequest | None:
    """Return how the session is written down, or None if the bot takes part, and store that. `wanted`: what somebody
    has asked for; without it, what an earlier room of the same session was asked for counts. Raises `StoreError`.
    """
    stored = servers.of(guild_id).listen_only
    wanted = wanted or stored_request(guild_id, servers, session_id)
    to_store = None if wanted is None else ListenOnly(session_id, wanted.target, wanted.channel_id)
    if to_store != stored:
        await servers.change(guild_id, lambda now: replace(now, listen_only=to_store), by=None)
    return wanted
