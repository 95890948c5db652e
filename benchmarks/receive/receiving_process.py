"""Receives the crowd in a process of its own (`python -m benchmarks.receive.receiving_process`): the bare link of
`voice.transport`, or the whole bot.

    {"op": "link", "discord": {...}}                       -> {}    the link is in the channel
    {"op": "bot", "settings": {...}, "discord": {...}}     -> {}    the bot is in the channel
    {"op": "begin"}                                        -> {}    from here on it is measured
    {"op": "warmed_up"}                                    -> {}    the cost counts from here on, and no longer from
                                                              `begin`, as the packets do
    {"op": "end"}                                          -> the cost since then; of the bot, what the recogniser did
    {"op": "counters"}                                     -> what became of the packets since `begin`, how many rooms
                                                              began anew, and what the bot logged since the last time
    {"op": "settle", "within_s": 90}                       -> {"settled"}   whether all speech has been recognised
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import structlog

from benchmarks.bot_address import settings_at
from benchmarks.child_process import keep_stdout_for_answers, serve
from benchmarks.receive.client import main_gateway
from benchmarks.receive.recogniser_work import RecogniserWork
from benchmarks.receive.usage import LoopLag, cpu_by_thread, shares, spread_of
from bot.app import running_bot
from bot.events import LinkChanged, QueuesMeasured, RoomOpened
from bot.local_zone import LocalZone
from bot.web.probes import METRICS_PATH
from bot.wiring.settings import BotSettings
from config.load import load
from voice.transport.link import VoiceLink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from structlog.typing import EventDict, WrappedLogger

    from bot.app import RunningBot
    from bot.events import Event

# What tells the cause of an entry in the log.
_CAUSES = ("error_class", "problem", "reason")


class LoggedTrouble:
    """A processor of structlog that counts the entries it sees by event and cause, and passes them on."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        del logger, method
        causes = [f"{name}={event[name]}" for name in _CAUSES if name in event]
        self._counts[" ".join((str(event["event"]), *causes))[:200]] += 1
        return event

    def take(self) -> dict[str, int]:
        """Return the counts since the last call."""
        counts = dict(self._counts)
        self._counts.clear()
        return counts


@dataclass(frozen=True, slots=True)
class _Spent:
    """What the process had spent at a moment, `at` in monotonic seconds. `threads`: CPU seconds by name."""

    at: float
    cpu_s: float
    threads: Mapping[str, float]

    @classmethod
    def now(cls) -> _Spent:
        return cls(time.monotonic(), time.process_time(), cpu_by_thread())


class ReceivingProcess:
    """The state of the process. `stack` closes what it opens. `trouble`: what the bot logs."""

    def __init__(self, stack: AsyncExitStack, trouble: LoggedTrouble) -> None:
        self._stack = stack
        self._trouble = trouble
        # Since `begin`.
        self._rooms_opened = 0
        self._lag: LoopLag | None = None
        self._counters: Callable[[], Mapping[str, int]] = dict
        self._reported: Mapping[str, int] = {}
        self._dropped: dict[str, int] = {}
        # Utterances that wait for their text, by the room's last report, and whether it has reported since.
        self._unrecognised = 0
        self._measured = asyncio.Event()
        self._counters_before: Mapping[str, int] = {}
        self._dropped_before: Mapping[str, int] = {}
        # Since `begin`, or since `warmed_up`.
        self._spent_before: _Spent | None = None
        # Of the whole bot.
        self._recogniser: RecogniserWork | None = None

    async def answer(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        """Carry out one request."""
        match request["op"]:
            case "link":
                await self._join_link(request["discord"])
            case "bot":
                await self._join_bot(request["settings"], request["discord"])
            case "begin":
                self._begin_counting()
                await self._begin_cost()
            case "warmed_up":
                await self._begin_cost()
            case "end":
                return await self._end()
            case "counters":
                return self._counted()
            case "settle":
                return {"settled": await self._settled(request["within_s"])}
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
        loaded = load(overrides={**settings, **settings_at(where)})
        parts = BotSettings.from_schema(loaded)
        bot = await self._stack.enter_async_context(
            running_bot(parts, observe=self._observe, rejoin=False, zone=LocalZone())
        )
        await bot.web.start()
        self._recogniser = RecogniserWork(lambda: _metrics_of(bot))
        place = bot.client.place(where["guild_id"], where["channel_id"])
        assert place is not None, "the local Discord has it"
        await bot.supervisor.join(place)
        # The room reports the link's counters every five seconds.
        self._counters = lambda: self._reported

    def _observe(self, event: Event) -> None:
        if self._recogniser is not None:
            self._recogniser.observe(event)
        if isinstance(event, RoomOpened):
            self._rooms_opened += 1
        if isinstance(event, LinkChanged):
            self._reported = event.counters
        if isinstance(event, QueuesMeasured):
            self._unrecognised = sum(queue.waiting for queue in event.queues if queue.name == "recognise")
            self._measured.set()
            for queue in event.queues:
                self._dropped |= {f"{queue.name}: {reason}": count for reason, count in queue.dropped.items()}

    def _begin_counting(self) -> None:
        self._rooms_opened = 0
        self._counters_before, self._dropped_before = dict(self._counters()), dict(self._dropped)

    async def _begin_cost(self) -> None:
        if self._lag is None:
            self._lag = await self._stack.enter_async_context(LoopLag())
        if self._recogniser is not None:
            await self._recogniser.begin()
        self._lag.take()
        self._spent_before = _Spent.now()

    async def _end(self) -> Mapping[str, object]:
        assert self._spent_before is not None
        assert self._lag is not None
        before, now = self._spent_before, _Spent.now()
        wall_s = now.at - before.at
        cost: dict[str, object] = {
            "wall_s": round(wall_s, 3),
            "cpu_s": round(now.cpu_s - before.cpu_s, 3),
            "threads": shares(before.threads, now.threads, wall_s),
            "loop_lag": spread_of(self._lag.take()),
        }
        if self._recogniser is not None:
            cost["recogniser"] = await self._recogniser.figures(wall_s)
        return cost

    async def _settled(self, within_s: float) -> bool:
        """Wait until the room reports that no utterance waits for its text. Return False after `within_s`."""
        try:
            async with asyncio.timeout(within_s):
                while True:
                    self._measured.clear()
                    await self._measured.wait()
                    if not self._unrecognised:
                        return True
        except TimeoutError:
            return False

    def _counted(self) -> Mapping[str, object]:
        counters = {name: count - self._counters_before.get(name, 0) for name, count in self._counters().items()}
        dropped = {name: count - self._dropped_before.get(name, 0) for name, count in self._dropped.items()}
        logged = self._trouble.take()
        return {
            "counters": {name: count for name, count in counters.items() if count},
            "dropped": {name: count for name, count in dropped.items() if count},
            # A room that begins anew counts from zero, so the figures above are no measurement then.
            "rooms_opened": self._rooms_opened,
            "logged": logged,
        }


async def _metrics_of(bot: RunningBot) -> str:
    """Return the bot's metrics as Prometheus gets them."""
    address = f"http://127.0.0.1:{bot.web.port}{METRICS_PATH}"
    async with aiohttp.ClientSession() as session, session.get(address) as answer:
        return await answer.text()


async def _run(answers: int, trouble: LoggedTrouble) -> None:
    async with AsyncExitStack() as stack:
        await serve(answers, ReceivingProcess(stack, trouble).answer)


if __name__ == "__main__":
    channel = keep_stdout_for_answers()
    logged = LoggedTrouble()
    structlog.configure(
        processors=[logged, *structlog.get_config()["processors"]],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
    )
    sys.exit(asyncio.run(_run(channel, logged)))
