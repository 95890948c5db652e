"""Receives the crowd in a process of its own: the bare connection of `voice.transport`, or the whole bot.

`bench` asks it (`benchmarks.child_process`). Its processor time, its event loop's lag and what it holds are its own.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import discord
import yarl

from benchmarks.child_process import answer_requests
from benchmarks.figures import percentile
from benchmarks.load.encrypted_room import EncryptedRoom
from benchmarks.load.growth import holding
from benchmarks.local_bot import join_bot
from benchmarks.report import BenchmarkError
from bot.background_task import background_task
from bot.events import ConnectionChanged, Event, QueuesMeasured, RoomOpened, UtteranceTranscribed
from voice.transport.connection import DiscordVoiceConnection
from voice.transport.discord_gateway import DiscordMainGateway

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AsyncExitStack


# A sleep of so long should end after so long; what it takes more is the loop's lag.
_SAMPLE_S = 0.01
# The last connection's socket is closed a moment after its websocket.
_CLOSING_S = 0.5
_READY_TIMEOUT_S = 60.0
# discord.py sends 110 messages a minute at most and lets others wait. A thousand joins would take 18 minutes, and most
# of them fail, because a join waits 10 s. The local Discord has no such limit.
_MESSAGES_A_MINUTE = 100_000


class ReceivingProcess:
    """The state of the process. `stack` closes what it opens. What it is asked is in the public methods."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._gateway: DiscordMainGateway | None = None
        self._encrypted: EncryptedRoom | None = None
        # Since `begin`.
        self._rooms_opened = 0
        self._counters: Callable[[], Mapping[str, int]] = dict
        self._reported: Mapping[str, int] = {}
        self._dropped: dict[str, int] = {}
        self._before: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})
        # Since `begin`, or since `warm_up`.
        self._lags_ms: list[float] = []
        self._spent_before = (0.0, 0.0)
        self._texts = 0

    async def enter(self, address: Mapping[str, Any]) -> Mapping[str, object]:
        """Log in to a local Discord, for `join_bare` and `joins`."""
        self._gateway = await _main_gateway(self._stack, address)
        return {}

    async def join_bare(self) -> Mapping[str, object]:
        """Bring the bare connection into the channel."""
        connection = await self._stack.enter_async_context(self._connection())
        return await self._joined(lambda: connection.counters().as_dict())

    async def join_bot(self, address: Mapping[str, Any], settings: Mapping[str, Any]) -> Mapping[str, object]:
        """Bring the whole bot into the channel."""
        await join_bot(self._stack, settings, address, self.observe)
        # The room reports the connection's counters every five seconds.
        return await self._joined(lambda: self._reported)

    async def begin(self) -> Mapping[str, object]:
        """Count from here on."""
        self._rooms_opened = 0
        self._before = dict(self._counters()), dict(self._dropped)
        return await self.warm_up(0.0)

    async def warm_up(self, seconds: float) -> Mapping[str, object]:
        """Wait so long. Count the cost from then on, and no longer from `begin`, as the packets are."""
        await asyncio.sleep(seconds)
        self._lags_ms.clear()
        self._texts = 0
        self._spent_before = time.monotonic(), time.process_time()
        return {}

    async def end(self) -> Mapping[str, object]:
        """Return the cost until now, and how many utterances became text."""
        at, cpu_s = self._spent_before
        return {
            "wall_s": round(time.monotonic() - at, 3),
            "cpu_s": round(time.process_time() - cpu_s, 3),
            "loop_lag": spread_of(self._lags_ms),
            "texts": self._texts,
        }

    async def counters(self) -> Mapping[str, object]:
        """Return what became of the packets since `begin`, and how many rooms began anew."""
        counters, dropped = self._before
        return {
            "counters": _since(counters, self._counters()),
            "dropped": _since(dropped, self._dropped),
            # A room that begins anew counts from zero, so the figures above are no measurement then.
            "rooms_opened": self._rooms_opened,
        }

    async def joins(self, count: int) -> Mapping[str, object]:
        """Join and leave so often, and return what the process holds."""
        for _ in range(count):
            async with self._connection():
                pass
        await asyncio.sleep(_CLOSING_S)
        return holding()

    async def encrypted_packets(self, count: int) -> Mapping[str, object]:
        """Receive so many packets of an encrypted room, and return what the process holds."""
        if self._encrypted is None:
            self._encrypted = EncryptedRoom()
        self._encrypted.send(count)
        return holding()

    def observe(self, event: Event) -> None:
        """Take note of a room's event."""
        match event:
            case RoomOpened():
                self._rooms_opened += 1
            case ConnectionChanged():
                self._reported = event.counters
            case UtteranceTranscribed():
                self._texts += 1
            case QueuesMeasured():
                for queue in event.queues:
                    self._dropped |= {f"{queue.name}: {reason}": count for reason, count in queue.dropped.items()}

    async def _joined(self, counters: Callable[[], Mapping[str, int]]) -> Mapping[str, object]:
        self._counters = counters
        await self._stack.enter_async_context(background_task(self._sample_lag(), name="loop-lag"))
        return {}

    def _connection(self) -> DiscordVoiceConnection:
        assert self._gateway is not None, "entered before"
        return DiscordVoiceConnection(
            self._gateway, sink=lambda _: None, heard_since=lambda _: float("-inf"), on_event=lambda _: None
        )

    async def _sample_lag(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_SAMPLE_S)
            self._lags_ms.append(max(0.0, time.perf_counter() - before - _SAMPLE_S) * 1000)


async def _main_gateway(stack: AsyncExitStack, where: Mapping[str, Any]) -> DiscordMainGateway:
    """Log in to a local Discord with a plain client, and return the gateway of its voice channel. `stack` logs out.

    This process has no other Discord afterwards. Raises `BenchmarkError`.
    """
    discord.http.Route.BASE = where["api_base"]
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(where["gateway"])
    tls = ssl.create_default_context(cafile=where["certificate"])
    intents = discord.Intents(guilds=True, voice_states=True)
    client = discord.Client(intents=intents, connector=aiohttp.TCPConnector(ssl=tls))
    await stack.enter_async_context(client)
    await stack.enter_async_context(background_task(client.start(where["token"]), name="discord-client"))
    try:
        async with asyncio.timeout(_READY_TIMEOUT_S):
            await client.wait_until_ready()
    except TimeoutError as error:
        raise BenchmarkError("The local Discord did not let the client in.") from error
    assert hasattr(client.ws, "_rate_limiter"), "discord.py calls it so"
    client.ws._rate_limiter = discord.gateway.GatewayRatelimiter(count=_MESSAGES_A_MINUTE)
    channel = client.get_channel(where["channel_id"])
    assert isinstance(channel, discord.VoiceChannel), "the local Discord has it"
    return DiscordMainGateway(client, channel)


def spread_of(lags_ms: Sequence[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the maximum. Empty if nothing was sampled."""
    if not lags_ms:
        return {}
    return {
        "p50_ms": round(percentile(lags_ms, 0.5), 2),
        "p99_ms": round(percentile(lags_ms, 0.99), 2),
        "max_ms": round(max(lags_ms), 2),
    }


def _since(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    return {name: more for name, count in now.items() if (more := count - before.get(name, 0))}


if __name__ == "__main__":
    answer_requests(ReceivingProcess)
