"""What a voice connection needs from the process that has the bot's connection to Discord's main gateway.

A voice connection gets its credentials over the main gateway: the bot asks to come in (op 4), and Discord answers
twice, with the bot's voice state (and the session) and with the voice server (and the token). All the rest goes between
the connection and the voice server. So this is the whole seam; `voice.transport.discord_gateway` is for one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from voice.errors import LinkError

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse


TAKEN_OVER = "Another process of this bot has my voice connection on this server now."


def taken_over_error() -> LinkError:
    """Return the error of a bot that does not join because another process has the server's room now."""
    return LinkError(TAKEN_OVER, retryable=False)


class VoiceUpdates(Protocol):
    """Takes Discord's answers, in the order in which they came. `data`: as Discord sent it."""

    async def on_voice_state_update(self, data: Any, /) -> None:
        """Take VOICE_STATE_UPDATE about the bot itself in this server."""

    async def on_voice_server_update(self, data: Any, /) -> None:
        """Take VOICE_SERVER_UPDATE of this server."""


class MainGateway(Protocol):
    """One voice channel at Discord's main gateway, for one voice connection at a time."""

    @property
    def user_id(self) -> int:
        """Return the bot's own id."""

    @property
    def guild_id(self) -> int:
        """Return the server."""

    @property
    def channel_id(self) -> int:
        """Return the voice channel."""

    @property
    def channel_name(self) -> str:
        """Return the voice channel's name, for sentences."""

    @property
    def guild_name(self) -> str:
        """Return the server's name, for sentences."""

    @property
    def bitrate_bps(self) -> int:
        """Return the channel's bitrate, in bits a second."""

    @property
    def is_open(self) -> bool:
        """Return whether the main gateway has confirmed a session: without one the bot can neither learn nor join."""

    @property
    def attached(self) -> bool:
        """Return whether Discord's answers reach the connection. False before `attach`, and once `forgotten`."""

    @property
    def forgotten(self) -> bool:
        """Return whether a new main session has dropped the connection, though Discord shows the server again."""

    def check_entry(self) -> None:
        """Raise `LinkError` if the bot may not join: Discord does not answer such a request at all."""

    async def attach(self, updates: VoiceUpdates) -> None:
        """Pass Discord's answers to `updates` from now on. Raises `LinkError` if the bot has a connection there."""

    def detach(self) -> None:
        """Pass on nothing more."""

    async def request(self, channel_id: int | None, *, self_mute: bool = False, self_deaf: bool = False) -> bool:
        """Ask Discord for another voice state (op 4); None: to leave. Does not wait for the answer.

        Returns False, and asks nothing, if somebody else runs the bot's room here now.
        """

    async def is_in_channel(self) -> bool:
        """Ask Discord whether the bot is in the channel. An answer that does not come counts as yes."""

    async def ws_connect(self, url: str, *, compress: int = 0) -> ClientWebSocketResponse:
        """Open a websocket to the voice server. Raises `LinkError` if somebody else runs the bot's room here now.

        With the credentials that both have, a process that was frozen would take the session away from the next one.
        """
