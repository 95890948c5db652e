"""Connects one voice client at a time, and says in a plain sentence why it could not be connected.

The connector owns discord.py's voice client from its making to its retirement. When to connect, and when to give up, is
decided by `connection`.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import aiohttp
import discord
import structlog

from voice.cancellation import cancellations
from voice.errors import VoiceConnectionError
from voice.transport.private.client import ReceivingClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.transport.discord_gateway import DiscordMainGateway
    from voice.transport.paced_sender import PacedSender
    from voice.transport.receiver import Receiver

_log = structlog.get_logger()

# Seconds of one attempt. It takes three round trips and one answer over UDP, for which the bot asks for five seconds.
ATTEMPT_S = 10.0
_LEAVE_TIMEOUT_S = 5.0
NOT_ENCRYPTED = (
    "I only join calls with end-to-end encryption (discord.require_e2ee), and this call has none. "
    "Perhaps somebody's Discord is too old. Update it, then call me again with /join."
)


class Connector:
    """Makes, connects and retires the voice clients of one connection. Use it on the event loop.

    `on_state` is told when the current client's connection comes up or breaks; a retired client is not heard any more.
    """

    def __init__(
        self,
        gateway: DiscordMainGateway,
        *,
        receiver: Receiver,
        on_state: Callable[[bool], None],
        paced_sender: PacedSender | None,
        timeout_s: float,
        require_e2ee: bool,
    ) -> None:
        """`timeout_s`: at most this long for one attempt. `require_e2ee`: refuse a call without encryption."""
        self.client: ReceivingClient | None = None
        self._leaving: ReceivingClient | None = None
        self._gateway = gateway
        self._receiver = receiver
        self._on_state = on_state
        self._paced_sender = paced_sender
        self._timeout_s = min(ATTEMPT_S, timeout_s)
        self._require_e2ee = require_e2ee

    async def connect(self) -> None:
        """Make a voice client and connect it, in one attempt.

        Raises `VoiceConnectionError` after cleaning up the client; `RemovedFromChannelError` if somebody took the bot
        out of the channel meanwhile.
        """
        self._gateway.check_entry()
        before, began_at = cancellations(), time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s + _LEAVE_TIMEOUT_S):
                client = self._make_client()
                await client.join(timeout_s=self._timeout_s)
            # discord.py waits by `asyncio.wait_for`, which on Python 3.11 swallows a cancellation that comes together
            # with what it waits for.
            if cancellations() > before:
                raise asyncio.CancelledError
            if client.connection.taken_out is not None:
                raise client.connection.taken_out
            if self._require_e2ee and not client.connection.end_to_end:
                raise VoiceConnectionError(NOT_ENCRYPTED, retryable=False)
            state = client.connection
            took_ms = round(1000 * (time.monotonic() - began_at))
            _log.info(
                "voice_joined", mode=state.mode, protocol_version=state.dave_protocol_version, duration_ms=took_ms
            )
        except BaseException as error:
            ended = self.client and self.client.connection
            code, taken_out = (ended.close_code, ended.taken_out) if ended else (None, None)
            took_ms = round(1000 * (time.monotonic() - began_at))
            _log.info("voice_not_joined", error_class=type(error).__name__, close_code=code, duration_ms=took_ms)
            await self.retire()
            cancelled = cancellations() > 0
            if taken_out is not None and not cancelled:
                raise taken_out from error
            refusal = joining_failure(
                error, self._gateway, timeout_s=self._timeout_s, close_code=code, cancelled=cancelled
            )
            if refusal is None or refusal is error:
                raise
            raise refusal from error

    async def retire(self) -> None:
        """Disconnect the current client. If a call is cancelled, the next call completes it."""
        self._leaving, self.client = self.client or self._leaving, None
        if self._leaving is not None:
            await self._leaving.retire(timeout_s=_LEAVE_TIMEOUT_S)
            self._leaving = None

    def state_is(self, client: ReceivingClient, up: bool) -> None:
        """Pass on that a client's connection has come up or broken, if it is the current one's."""
        if client is self.client:
            self._on_state(up)

    def _make_client(self) -> ReceivingClient:
        self.client = ReceivingClient(
            self._gateway,
            receiver=self._receiver,
            connector=self,
            paced_sender=self._paced_sender,
            require_e2ee=self._require_e2ee,
        )
        return self.client


def joining_failure(
    error: BaseException, gateway: DiscordMainGateway, *, timeout_s: float, close_code: int | None, cancelled: bool
) -> VoiceConnectionError | None:
    """Return `error` as a plain sentence, or None if joining is not its cause.

    `cancelled`: the joining task itself was cancelled. Otherwise a `CancelledError` comes from discord.py, which
    cancelled its connector.
    """
    match error:
        case VoiceConnectionError():
            return error
        case asyncio.CancelledError() if not cancelled:
            return VoiceConnectionError(
                "I could not finish joining {channel}: Discord gave me another voice server or channel.",
                channel=gateway.channel.name,
            )
        case TimeoutError():
            if close_code:
                return VoiceConnectionError(
                    "I waited {seconds:.0f} seconds, but Discord did not connect me to {channel}. "
                    "Its voice server closed the connection (code {code}). Look at Discord's status "
                    "page.",
                    channel=gateway.channel.name,
                    seconds=timeout_s,
                    code=str(close_code),
                )
            return VoiceConnectionError(
                "I waited {seconds:.0f} seconds, but Discord did not connect me to {channel}. Try "
                "again. If it fails again, the owner of this bot must check the firewall (UDP must "
                "be open) and Discord's status page.",
                channel=gateway.channel.name,
                seconds=timeout_s,
            )
        case discord.ConnectionClosed():
            return VoiceConnectionError(
                "The voice server of {channel} ended the connection (code {code}).",
                channel=gateway.channel.name,
                code=str(error.code),
            )
        case discord.DiscordException() | aiohttp.ClientError() | OSError():
            return VoiceConnectionError(
                "I could not reach the voice server of {channel} ({error}).",
                channel=gateway.channel.name,
                error=type(error).__name__,
            )
        case ValueError() | LookupError() | TypeError() | AttributeError() | RuntimeError():
            return VoiceConnectionError(
                "The voice server of {channel} sent something that I cannot read ({error}). Use "
                "/join again. If that fails too, the owner of this bot must update Roomtone.",
                channel=gateway.channel.name,
                error=type(error).__name__,
            )
        case _:
            return None
