"""Receives the crowd in a process of its own (`python -m benchmarks.load.receiving_process`): the bare link of
`voice.transport`, or the whole bot.

    {"op": "link", "discord": {...}}                       -> {}    the link is in the channel
    {"op": "bot", "settings": {...}, "discord": {...}}     -> {}    the bot is in the channel
    {"op": "begin"}                                        -> {}    from here on it is measured
    {"op": "warmed_up"}                                    -> {}    the cost counts from here on, and no longer from
                                                              `begin`, as the packets do
    {"op": "end"}                                          -> the cost since then, and how many utterances became text
    {"op": "counters"}                                     -> what became of the packets since `begin`, and how many
                                                              rooms began anew
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import structlog

from benchmarks.bot_address import settings_at
from benchmarks.child_process import keep_stdout_for_answers, serve
from benchmarks.load.client import main_gateway
from benchmarks.load.loop_lag import LoopLag, spread_of
from bot.app import running_bot
from bot.events import LinkChanged, QueuesMeasured, RoomOpened, UtteranceTranscribed
from bot.local_zone import LocalZone
from bot.tuning import split_overrides
from bot.wiring.settings import BotSettings
from config.load import load
from voice.transport.link import VoiceLink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bot.events import Event


class ReceivingProcess:
    """The state of the process. `stack` closes what it opens."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        # Since `begin`.
        self._rooms_opened = 0
        self._counters: Callable[[], Mapping[str, int]] = dict
        self._reported: Mapping[str, int] = {}
        self._dropped: dict[str, int] = {}
        self._counters_before: Mapping[str, int] = {}
        self._dropped_before: Mapping[str, int] = {}
        # Since `begin`, or since `warmed_up`.
        self._lag: LoopLag | None = None
        self._spent_before = (0.0, 0.0)
        self._texts = 0

    async def answer(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        """Carry out one request."""
        match request["op"]:
            case "link":
                await self._join_link(request["discord"])
            case "bot":
                await self._join_bot(request["settings"], request["discord"])
            case "begin":
                self._rooms_opened = 0
                self._counters_before, self._dropped_before = dict(self._counters()), dict(self._dropped)
                await self._begin_cost()
            case "warmed_up":
                await self._begin_cost()
            case "end":
                return self._cost()
            case "counters":
                return {
                    "counters": _since(self._counters_before, self._counters()),
                    "dropped": _since(self._dropped_before, self._dropped),
                    # A room that begins anew counts from zero, so the figures above are no measurement then.
                    "rooms_opened": self._rooms_opened,
                }
            case other:
                raise ValueError(f"unknown request {other}")
        return {}

    async def _join_link(self, where: Mapping[str, Any]) -> None:
        gateway = await main_gateway(self._stack, where)
        link = await self._stack.enter_async_context(
            VoiceLink(gateway, sink=lambda _: None, is_excluded=lambda _: False, on_event=lambda _: None)
        )
        self._counters = lambda: link.counters().as_dict()

    async def _join_bot(self, settings: Mapping[str, Any], where: Mapping[str, Any]) -> None:
        tuning, chosen = split_overrides({**settings, **settings_at(where)})
        parts = BotSettings.from_schema(load(overrides=chosen), tuning)
        bot = await self._stack.enter_async_context(
            running_bot(parts, observe=self.observe, rejoin=False, zone=LocalZone())
        )
        place = bot.client.place(where["guild_id"], where["channel_id"])
        assert place is not None, "the local Discord has it"
        await bot.rooms.join(place)
        # The room reports the link's counters every five seconds.
        self._counters = lambda: self._reported

    def observe(self, event: Event) -> None:
        """Take note of a room's event."""
        match event:
            case RoomOpened():
                self._rooms_opened += 1
            case LinkChanged():
                self._reported = event.counters
            case UtteranceTranscribed():
                self._texts += 1
            case QueuesMeasured():
                for queue in event.queues:
                    self._dropped |= {f"{queue.name}: {reason}": count for reason, count in queue.dropped.items()}
            case _:
                pass

    async def _begin_cost(self) -> None:
        if self._lag is None:
            self._lag = await self._stack.enter_async_context(LoopLag())
        self._lag.take()
        self._texts = 0
        self._spent_before = time.monotonic(), time.process_time()

    def _cost(self) -> Mapping[str, object]:
        assert self._lag is not None, "begun before"
        at, cpu_s = self._spent_before
        return {
            "wall_s": round(time.monotonic() - at, 3),
            "cpu_s": round(time.process_time() - cpu_s, 3),
            "loop_lag": spread_of(self._lag.take()),
            "texts": self._texts,
        }


def _since(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    return {name: more for name, count in now.items() if (more := count - before.get(name, 0))}


async def _run(answers: int) -> None:
    async with AsyncExitStack() as stack:
        await serve(answers, ReceivingProcess(stack).answer)


if __name__ == "__main__":
    channel = keep_stdout_for_answers()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(_run(channel))
