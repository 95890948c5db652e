"""Stand-ins for discord.py's client, server and channel, as far as its voice client touches them.

They know ids and a `DiscordMainGateway`, and nothing else of Discord. discord.py's client may drop a voice client with
a new main session, and this one does not notice.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from voice.errors import TakenOverError

if TYPE_CHECKING:
    from voice.transport.discord_gateway import DiscordMainGateway


class ClientStandIn:
    """For `discord.Client`: discord.py's voice client reads `_connection`, the client's state."""

    def __init__(self, gateway: DiscordMainGateway) -> None:
        self._gateway = gateway
        self._connection = self
        self.loop = asyncio.get_running_loop()
        self.user = SimpleNamespace(id=gateway.user_id)
        # Its `ws_connect` opens the voice websocket.
        self.http = gateway

    def _remove_voice_client(self, guild_id: int) -> None:
        del guild_id
        self._gateway.detach()


class GuildStandIn:
    """For `discord.Guild`. `refused`: whether a request to leave was not sent, because somebody else has the room."""

    def __init__(self, gateway: DiscordMainGateway) -> None:
        self._gateway = gateway
        self.id = gateway.guild_id
        # discord.py reads whether the bot has muted itself, which it never does.
        self.me = SimpleNamespace(voice=None)
        self.refused = False

    def get_channel(self, channel_id: int) -> ChannelStandIn:
        return ChannelStandIn(channel_id, self)

    async def change_voice_state(self, *, channel: Any, self_mute: bool = False, self_deaf: bool = False) -> None:
        """Send op 4. Raises `TakenOverError` if somebody else has the room and the bot wants to come in."""
        channel_id = None if channel is None else channel.id
        if await self._gateway.request(channel_id, self_mute=self_mute, self_deaf=self_deaf):
            return
        self.refused = True
        if channel_id is not None:
            raise TakenOverError


class ChannelStandIn:
    """For `discord.VoiceChannel`."""

    def __init__(self, channel_id: int, guild: GuildStandIn) -> None:
        self.id = channel_id
        self.guild = guild

    def _get_voice_client_key(self) -> tuple[int, str]:
        return self.guild.id, "guild_id"
