"""Runs one bot in many rooms, in its own process (`python -m benchmarks.reply.many_rooms_process`).

Each room is in its own local Discord, which the parent process runs. The bot is the real one. Every room but the first
has its own connection to its Discord; everything else is shared. The processes exchange JSON lines:

    {"op": "start", "settings": {...}, "discord": {...}}    -> {"ok": true}    the bot runs and is in its first room
    {"op": "enter", "discord": {...}}                       -> {"ok": true}    the bot is in one more room
    {"op": "busy", "block_ms": 40, "share": 0.4}            -> {"ok": true}    its event loop is blocked like this
    {"op": "figures"}                                       -> {"rss_mb", "cpu_s", "threads"}
    {"op": "stop"}                                          no answer: the process ends
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import SecretStr

from benchmarks.bot_address import settings_at
from benchmarks.child_process import keep_stdout_for_answers, serve
from bot.app import RunningBot, running_bot
from bot.discord.connection import connected
from bot.events import ignore_event
from bot.local_zone import LocalZone
from bot.wiring.settings import BotSettings
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.discord.client import RoomtoneClient
    from bot.events import Observer
    from bot.settings import DiscordSettings

    Fields = Mapping[str, Any]

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6


class ManyRoomsBot:
    """The bot and its rooms. `stack` closes everything that this object opens; `observe` gets the bot's events."""

    def __init__(self, stack: AsyncExitStack, observe: Observer = ignore_event) -> None:
        self._stack = stack
        self._observe = observe
        self._parts: BotSettings | None = None
        self._running: RunningBot | None = None
        self._blocking: asyncio.Task[None] | None = None

    async def start(self, settings: Fields, discord: Fields) -> None:
        """Start the bot and enter its first room."""
        loaded = load(overrides={**settings, **settings_at(discord)})
        self._parts = BotSettings.from_schema(loaded)
        self._running = await self._stack.enter_async_context(
            running_bot(self._parts, observe=self._observe, rejoin=False, zone=LocalZone())
        )
        await self._join(self._running.client, discord)

    async def enter(self, discord: Fields) -> None:
        """Enter one more room, in its own Discord."""
        assert self._parts is not None, "started before"
        assert self._running is not None, "started before"
        client = await self._stack.enter_async_context(
            connected(
                _pointed(self._parts.discord, discord),
                self._running.supervisor,
                paced_sender=self._running.paced_sender,
            )
        )
        await self._join(client, discord)

    async def _join(self, client: RoomtoneClient, discord: Fields) -> None:
        assert self._running is not None, "started before"
        place = client.place(discord["guild_id"], discord["channel_id"])
        assert place is not None, "a channel of the local Discord"
        await self._running.supervisor.join(place)

    def keep_busy(self, block_ms: float, share: float) -> None:
        """Block the event loop for `block_ms` at a time, again and again, for this share of the time."""
        if self._blocking is not None:
            self._blocking.cancel()
            self._blocking = None
        if block_ms > 0:
            self._blocking = asyncio.create_task(_block(block_ms / 1000, share), name="busy-loop")

    def end(self) -> None:
        """Stop blocking the event loop."""
        self.keep_busy(0.0, 0.0)


async def _block(block_s: float, share: float) -> None:
    while True:
        until = time.perf_counter() + block_s
        while time.perf_counter() < until:
            pass
        await asyncio.sleep(block_s * (1 - share) / share)


def _pointed(settings: DiscordSettings, discord: Fields) -> DiscordSettings:
    return settings.model_copy(
        update={
            "token": SecretStr(discord["token"]),
            "api_base": discord["api_base"],
            "gateway": discord["gateway"],
            "ca_file": discord["ca_file"],
        }
    )


def figures() -> dict[str, float]:
    """Return the current cost of this process: resident memory, CPU seconds so far, threads."""
    resident_pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return {
        "rss_mb": round(resident_pages * _PAGE_MB, 2),
        "cpu_s": round(time.process_time(), 3),
        "threads": threading.active_count(),
    }


async def run(answers: int) -> None:
    """Answer requests until `stop` or the end of stdin."""
    async with AsyncExitStack() as stack:
        roomful = ManyRoomsBot(stack)
        stack.callback(roomful.end)
        await serve(answers, partial(_answered, roomful))


async def _answered(roomful: ManyRoomsBot, request: Fields) -> Fields:
    match request["op"]:
        case "start":
            await roomful.start(request["settings"], request["discord"])
        case "enter":
            await roomful.enter(request["discord"])
        case "busy":
            roomful.keep_busy(request["block_ms"], request["share"])
        case "figures":
            return figures()
        case other:
            return {"error": f"unknown request {other}"}
    return {"ok": True}


if __name__ == "__main__":
    # Logs and libraries write to stdout.
    channel = keep_stdout_for_answers()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    asyncio.run(run(channel))
