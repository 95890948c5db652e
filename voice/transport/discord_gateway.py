"""What a voice connection needs of the bot's connection to Discord's main gateway.

A voice connection gets its credentials over the main gateway: the bot asks to come in (op 4), and Discord answers
twice, with the bot's voice state (and the session) and with the voice server (and the token). All the rest goes between
the connection and the voice server. discord.py gets a voice protocol that only passes these answers on, so its client
knows nothing of the connection itself. A program of discord.py that wants to know more passes its own
(`voice.hearing.HearingClient`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

import aiohttp
import discord
import structlog

from voice.errors import TakenOverError, VoiceConnectionError, VoiceError
from voice.transport.private.main_session import is_main_session_ready

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_log = structlog.get_logger()

VoiceChannel: TypeAlias = discord.VoiceChannel | discord.StageChannel

# Seconds for an answer of Discord's API.
_ASK_S = 3.0


class VoiceUpdateForwarder(discord.VoiceProtocol):
    """Stands for a voice connection in discord.py's client, and passes on what Discord says to it.

    `gateway`: whose it is. `updates`: takes Discord's answers; None: nobody does.
    """

    gateway: DiscordMainGateway
    updates: discord.VoiceProtocol | None = None

    async def on_voice_state_update(self, data: Any, /) -> None:
        if self.updates is not None:
            await self.updates.on_voice_state_update(data)

    async def on_voice_server_update(self, data: Any, /) -> None:
        if self.updates is not None:
            await self.updates.on_voice_server_update(data)

    def release(self) -> None:
        """Leave discord.py's client, because a connection was retired. Another one may follow."""
        self.cleanup()

    async def connect(
        self,
        *,
        timeout: float,  # noqa: ASYNC109 - the library's signature
        reconnect: bool,
        self_deaf: bool = False,
        self_mute: bool = False,
    ) -> None:
        """Do nothing: the connection itself asks to come in."""

    async def disconnect(self, *, force: bool = False) -> None:
        """Leave the channel: discord.py's client is closing, and somebody still has a connection."""
        await self.gateway.request(None)
        self.cleanup()


class DiscordMainGateway:
    """One voice channel at Discord's main gateway, for one voice connection at a time. `channel`: as it was last seen.

    `is_owner`: returns whether this process may still change the bot's voice state in the server. It is asked each
    time; None: it always may. `on_request`: called with the server and the voice channel before Discord is asked to let
    the bot in; the channel is None if it is asked to let it out. `forwarder`: what discord.py's client has for the
    connection, already; it stays there between two attempts, and its owner ends it. None: one for each attempt.
    """

    def __init__(
        self,
        client: discord.Client,
        channel: VoiceChannel,
        *,
        is_owner: Callable[[], Awaitable[bool]] | None = None,
        on_request: Callable[[int, int | None], None] | None = None,
        forwarder: VoiceUpdateForwarder | None = None,
    ) -> None:
        self._client = client
        self._on_request = on_request
        self.channel = channel
        self._is_owner = is_owner
        self._forwarder = forwarder or VoiceUpdateForwarder(client, channel)
        self._forwarder.gateway = self
        # Whether Discord was asked to let the bot in since `attach`, so that it has to be asked to let it out.
        self.asked = False

    @property
    def user_id(self) -> int:
        assert self._client.user is not None, "a client that knows channels is logged in"
        return self._client.user.id

    @property
    def guild_id(self) -> int:
        return self.channel.guild.id

    def is_bot(self, user_id: int) -> bool:
        """Return whether a member is known to be a bot. Any thread may ask."""
        return is_bot(self._client, self.channel.guild, user_id)

    @property
    def is_open(self) -> bool:
        """Return whether the main gateway has confirmed a session: without one the bot can neither learn nor join."""
        return is_main_session_ready(self._client, self.guild_id)

    @property
    def attached(self) -> bool:
        """Return whether Discord's answers reach the connection. False before `attach`, and once `forgotten`."""
        return self._forwarder.updates is not None and self._forwarder in self._client.voice_clients

    @property
    def forgotten(self) -> bool:
        """Return whether a new main session has dropped the connection, though Discord shows the server again."""
        guild = self._client.get_guild(self.guild_id)
        return not self.attached and guild is not None and not guild.unavailable

    def check_entry(self) -> None:
        """Raise `VoiceConnectionError` if the bot may not join: Discord does not answer such a request at all."""
        self.channel = self._channel_of_now()
        check_entry(self.channel)

    async def attach(self, updates: discord.VoiceProtocol) -> None:
        """Pass Discord's answers to `updates` from now on. Raises `VoiceConnectionError` if the bot has a connection
        there.
        """
        self.asked = False
        if self._forwarder not in self._client.voice_clients:
            try:
                await self.channel.connect(cls=lambda *_: self._forwarder)
            except discord.ClientException as error:
                raise VoiceConnectionError(
                    "I am already in a voice channel of {guild}.", guild=self.channel.guild.name, retryable=False
                ) from error
        self._forwarder.updates = updates

    def detach(self) -> None:
        """Pass on nothing more."""
        if self.attached:
            self._forwarder.release()
        self._forwarder.updates = None

    async def request(self, channel_id: int | None, *, self_mute: bool = False, self_deaf: bool = False) -> bool:
        """Ask Discord for another voice state (op 4); None: to leave. Does not wait for the answer.

        Returns False, and asks nothing, if somebody else runs the bot's room here now.
        """
        if self._is_owner is not None and not await self._is_owner():
            _log.warning("voice_state_not_requested", guild_id=self.guild_id, leaves=channel_id is None)
            return False
        self.asked = self.asked or channel_id is not None
        if self._on_request is not None:
            self._on_request(self.guild_id, channel_id)
        channel = None if channel_id is None else discord.Object(channel_id)
        await self.channel.guild.change_voice_state(channel=channel, self_mute=self_mute, self_deaf=self_deaf)
        return True

    async def is_in_channel(self) -> bool:
        """Ask Discord whether the bot is in the channel. An answer that does not come counts as yes."""
        try:
            async with asyncio.timeout(_ASK_S):
                voice = await self.channel.guild.me.fetch_voice()
        except discord.NotFound:
            return False
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            _log.warning("voice_state_unknown", error_class=type(error).__name__)
            return True
        return voice.channel is not None and voice.channel.id == self.channel.id

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        """Open a websocket to the voice server. Raises `TakenOverError` if somebody else runs the bot's room here now.

        With the credentials that both have, a process that was frozen would take the session away from the next one.
        """
        if self._is_owner is not None and not await self._is_owner():
            raise TakenOverError
        return await self._client.http.ws_connect(url, compress=compress)

    def _channel_of_now(self) -> VoiceChannel:
        """Return discord.py's current object for the channel, because a new main session replaces all objects. Raises
        `VoiceConnectionError`.
        """
        guild = self._client.get_guild(self.guild_id)
        if guild is not None and guild.unavailable:
            raise VoiceConnectionError("Discord does not show {guild} at the moment.", guild=self.channel.guild.name)
        found = None if guild is None else guild.get_channel(self.channel.id)
        if isinstance(found, discord.VoiceChannel | discord.StageChannel):
            return found
        raise VoiceConnectionError(
            "The voice channel {channel} no longer exists.", channel=self.channel.name, retryable=False
        )


def is_bot(client: discord.Client, seen: discord.Guild, user_id: int) -> bool:
    """Return whether a member is known to be a bot. `seen`: the server as it was seen before. Any thread may ask."""
    now = client.get_guild(seen.id)
    # After a lost session discord.py knows the server again before it knows its members.
    member = (None if now is None else now.get_member(user_id)) or seen.get_member(user_id)
    return member is not None and member.bot


# The permissions that the bot lacks, as Discord calls them, by whether it may see the channel and connect to it. They
# are errors, because a sentence translates those.
_MISSING = {
    (False, True): VoiceError("View Channel"),
    (True, False): VoiceError("Connect"),
    (False, False): VoiceError("View Channel, Connect"),
}


def check_entry(channel: VoiceChannel) -> None:
    """Raise `VoiceConnectionError` if the bot may not join: Discord does not answer such a request at all."""
    rights = channel.permissions_for(channel.guild.me)
    missing = _MISSING.get((rights.view_channel, rights.connect))
    if missing is not None:
        raise VoiceConnectionError(
            "I cannot join {channel}. Give my role these permissions there: {missing}.",
            channel=channel.name,
            missing=missing,
            retryable=False,
        )
    inside = [member.id for member in channel.members]
    full = channel.user_limit and len(inside) >= channel.user_limit
    if full and channel.guild.me.id not in inside and not rights.move_members:
        raise VoiceConnectionError(
            "{channel} is full: at most {limit} people can be there. Raise this limit, or call me "
            "into another channel.",
            channel=channel.name,
            limit=channel.user_limit,
        )
