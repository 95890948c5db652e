"""Whether discord.py's client has a session on the main gateway that Discord has confirmed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import discord


def is_main_session_ready(client: discord.Client, guild_id: int) -> bool:
    """Return whether the websocket of the server's shard is open and its session confirmed (READY, or resumed).

    Until READY a new websocket is open, but the client still shows what the session before knew.
    """
    try:
        websocket = client._get_websocket(guild_id)
    except KeyError:
        # The shard was never connected.
        return False
    return websocket is not None and websocket.open and websocket.session_id is not None
