"""discord.py's voice client that also receives, and stand-ins for its client, server and channel.

The stand-ins know ids and a `DiscordMainGateway`, and nothing else of Discord. discord.py's client may drop a voice
client with a new main session, and this one does not notice.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import discord
import structlog
from discord.utils import MISSING
from discord.voice_state import ConnectionFlowState

from voice.audio import DISCORD_FRAME_SAMPLES
from voice.errors import TakenOverError
from voice.transport.private.connection_state import ReceivingState

if TYPE_CHECKING:
    from voice.transport.connector import Connector
    from voice.transport.discord_gateway import DiscordMainGateway
    from voice.transport.paced_sender import PacedSender
    from voice.transport.receiver import Receiver


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
        self._gateway.detach()


class GuildStandIn:
    """For `discord.Guild`. `refused`: nothing is requested any more, because somebody else has the room."""

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
        if not self.refused and await self._gateway.request(channel_id, self_mute=self_mute, self_deaf=self_deaf):
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


_log = structlog.get_logger()


class ReceivingClient(discord.VoiceClient):
    """discord.py's voice client that also receives, over a `DiscordMainGateway`."""

    # Discord offers other modes only to old clients, and the receiver opens only this one.
    supported_modes = ("aead_xchacha20_poly1305_rtpsize",)
    _connection: ReceivingState

    def __init__(
        self,
        gateway: DiscordMainGateway,
        *,
        receiver: Receiver,
        connector: Connector,
        paced_sender: PacedSender | None = None,
        require_e2ee: bool = False,
    ) -> None:
        """`gateway` asks Discord to let the bot in and out. `receiver` gets every datagram and the voice server's
        messages about people; `paced_sender` sends our datagrams; `connector` is told when the connection comes up or
        breaks.

        `require_e2ee`: as in `ReceivingState`.
        """
        self._require_e2ee = require_e2ee
        self._receiver = receiver
        self._connector = connector
        self._paced_sender = paced_sender
        # That of the paced sender, and the socket that it was lent.
        self._line: tuple[int, Any] | None = None
        # Announcements of speaking that are on their way.
        self._announcing: set[asyncio.Task[None]] = set()
        self._gateway = gateway
        self._guild = GuildStandIn(gateway)
        client: Any = ClientStandIn(gateway)
        channel: Any = ChannelStandIn(gateway.channel.id, self._guild)
        super().__init__(client, channel)

    async def join(self, *, timeout_s: float) -> None:
        """Come into the channel and connect. Raises `VoiceConnectionError`, or whatever discord.py does after
        `timeout_s`.
        """
        await self._gateway.attach(self)
        await self.connect(timeout=timeout_s, reconnect=True)

    def create_connection_state(self) -> ReceivingState:
        return ReceivingState(self, receiver=self._receiver, require_e2ee=self._require_e2ee)

    def state_is(self, up: bool) -> None:
        """Pass on that the connection has come up, or went down or is over."""
        self._connector.state_is(self, up)

    @property
    def connection(self) -> ReceivingState:
        return self._connection

    @property
    def can_send(self) -> bool:
        """See `PacketSender.can_send`. Any thread may ask."""
        state = self._connection
        plain = not state.end_to_end and not state.require_e2ee
        return state.is_connected() and (plain or state.can_encrypt)

    @property
    def keys(self) -> object:
        """See `PacketSender.keys`. Any thread may ask."""
        session = self._connection.dave_session
        # A new group may have the same epoch number, so the session is part of the value.
        return self._connection.can_encrypt, id(session), None if session is None else session.epoch

    def seal(self, packet: bytes) -> bytes:
        """See `PacketSender.seal`. Call it from one thread only."""
        self.checked_add("sequence", 1, 65535)
        datagram: bytes = self._get_voice_packet(packet)
        self.checked_add("timestamp", DISCORD_FRAME_SAMPLES, 4294967295)
        return datagram

    @property
    def keeps_time(self) -> bool:
        return self._paced_sender is not None and self._paced_sender.alive

    def send(self, datagram: bytes, *, at: float) -> None:
        """See `PacketSender.send`. A datagram that the network refuses is lost."""
        sock = self._connection.socket
        if sock is MISSING or sock.fileno() < 0:
            return
        if self._paced_sender is not None and self._paced_sender.alive:
            if self._line is None or self._line[1] is not sock:
                # Each connection has its own socket.
                self._close_line()
                self._line = self._paced_sender.lend(sock), sock
            self._paced_sender.send(self._line[0], datagram, at=at)
            return
        try:
            self._connection.send_packet(datagram)
        except OSError as error:
            _log.debug("datagram_not_sent", error_class=type(error).__name__)

    def _close_line(self) -> None:
        line, self._line = self._line, None
        if line is not None and self._paced_sender is not None:
            self._paced_sender.give_back(line[0])

    def set_speaking(self, speaking: bool) -> None:
        """Announce whether the bot is speaking (op 5). Any thread may call; returns at once."""
        state = discord.SpeakingState.voice if speaking else discord.SpeakingState.none
        # A loop that is closed has nobody left to tell.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._announce, state)

    def _announce(self, state: discord.SpeakingState) -> None:
        task = self.loop.create_task(self._speak(state), name=f"voice-speaking-{self._gateway.channel.id}")
        self._announcing.add(task)
        task.add_done_callback(self._announcing.discard)

    async def _speak(self, state: discord.SpeakingState) -> None:
        try:
            await self.ws.speak(state)
        except (OSError, AttributeError) as error:
            # The websocket is closing or missing. Speaking is announced again after the reconnection.
            _log.debug("speaking_not_told", error_class=type(error).__name__)
        except Exception:  # noqa: BLE001 - nobody awaits it
            _log.exception("speaking_announcement_failed")

    async def retire(self, *, timeout_s: float) -> None:
        """Leave the channel for good and end every task and thread of this client.

        *Cancellation*: stops waiting; the client is still unregistered.
        """
        state = self._connection
        try:
            # End the tasks first: an orphaned one would take the next client out of the channel.
            for task in (state._runner, state._connector):
                if task is not None:
                    await _end_task(task)
            # discord.py sends no updates to a client that it dropped with a new main session.
            asked = self._gateway.asked
            awaits_update = asked and state.state is not ConnectionFlowState.disconnected and self._gateway.attached
            # The place in the channel may be another process's by now.
            self._guild.refused |= isinstance(state.taken_out, TakenOverError)
            async with asyncio.timeout(timeout_s):
                # Don't use discord.py's own wait, which swallows cancellation. Clean up later, because an unregistered
                # client gets no updates.
                if asked:
                    await state.disconnect(force=True, cleanup=False, wait=False)
                if awaits_update and not self._guild.refused:
                    # A late message about our leaving would confuse the next client.
                    await state._disconnected.wait()
        except TimeoutError:
            _log.warning("leaving_voice_timed_out", timeout_s=timeout_s)
        finally:
            self.cleanup()
            for task in self._announcing:
                task.cancel()
            state._socket_reader.stop()
            self._close_line()
        await asyncio.to_thread(state._socket_reader.join, 1.0)


async def _end_task(task: asyncio.Task[Any]) -> None:
    """Cancel `task` until it ends: Python 3.11's `wait_for` swallows a cancellation that comes with a message."""
    for _ in range(50):
        if task.done():
            if not task.cancelled():
                # Mark the exception as retrieved; discord.py has logged it.
                task.exception()
            return
        task.cancel()
        await asyncio.wait([task], timeout=0.1)
