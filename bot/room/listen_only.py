"""Whether a session is only written down. The server's settings hold it, so that it survives a crash of the process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from bot.channel.port import ListenRequest
from bot.server_settings import ListenOnly
from compaction.errors import StoreError

if TYPE_CHECKING:
    from bot.server_settings import ServerSettings, ServerSettingsBook
    from compaction.model import SessionId

log = structlog.get_logger()


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
    stored = stored_request(guild_id, servers, session_id)
    wanted = wanted or stored
    to_store = None if wanted is None else ListenOnly(session_id, wanted.target, wanted.channel_id)
    # One that is stored already keeps its thread.
    if wanted != stored or (to_store is None and servers.of(guild_id).listen_only is not None):
        await servers.change(guild_id, lambda now: replace(now, listen_only=to_store), by=None)
    return wanted


def stored_thread(session_id: SessionId, guild_id: int, servers: ServerSettingsBook) -> int | None:
    """Return the id of the thread into which an earlier room of the session has written; None if there is none."""
    stored = servers.of(guild_id).listen_only
    return None if stored is None or stored.session_id != session_id else stored.thread_id


async def store_thread(thread_id: int, session_id: SessionId, guild_id: int, servers: ServerSettingsBook) -> None:
    """Store into which thread a session is written. A failure is logged: after a crash another thread is begun."""

    def with_thread(now: ServerSettings) -> ServerSettings:
        listen = now.listen_only
        if listen is None or listen.session_id != session_id:
            return now
        return replace(now, listen_only=replace(listen, thread_id=thread_id))

    try:
        await servers.change(guild_id, with_thread, by=None)
    except StoreError as error:
        log.warning("thread_not_stored", problem=error)
