"""The bot of the live room in its own process (`python -m tests.endurance.live_bot`), so that its memory is its own.

It is composed and logs as `roomtone run` does. The Discord, the people and the model's server are in the parent. One
JSON object a line:

    {"op": "start", "settings": {...}, "discord": {...}}    -> {}    the bot runs and is in the voice channel
    {"op": "sample"}    -> the least that it held since the sample before, and what it has heard and answered
"""

from __future__ import annotations

# First, because it sets what libraries read when they are imported.
import bot.__main__  # isort: skip  # noqa: F401

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from benchmarks.bot_address import settings_at
from benchmarks.child_process import keep_stdout_for_answers, serve
from benchmarks.load.growth import holding
from bot import events
from bot.app import running_bot
from bot.background_task import background_task
from bot.cli.environment import logging_from_settings, null_console
from bot.local_zone import LocalZone
from bot.runtime_tuning import release_free_memory
from bot.tuning import split_overrides
from bot.wiring.settings import BotSettings
from config.load import load
from tests.endurance.full_size import bring_to_full_size

if TYPE_CHECKING:
    from collections.abc import Mapping


# While somebody is recognised, which takes a second or two, a room needs up to 170 MB more, and a second request to the
# model has a socket of its own. So a sample is the least of several looks.
LOOK_S = 1.0
# The bot gives free memory back every minute. If somebody is recognised just then, the tens of megabytes that this
# needs stay resident until the next time, so the least between two samples went up and down by 40 MB. Giving it back
# more often changes nothing of what is in use, and one of the times is a moment in which nobody is recognised. On a
# machine with other work somebody nearly always is: every 3 s, the least was 11 MB more while that went on.
RELEASE_S = 0.5


class LiveBot:
    """The bot, and what its observer counted. `stack` closes what it opens."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._begun_at = time.monotonic()
        self._looks: list[dict[str, float]] = []
        self._heard = self._answered = self._payload_tokens = 0

    async def answer(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        """Carry out one request."""
        match request["op"]:
            case "start":
                console = self._stack.enter_context(null_console())
                settings = load(overrides=split_overrides(request["settings"])[1])
                self._stack.enter_context(logging_from_settings(settings, console=console))
                await self._start(request["settings"], request["discord"])
                await bring_to_full_size(settings.storage.database_path)
                self._begun_at = time.monotonic()
                # Before it was loaded, the bot held less.
                self._looks.clear()
                return {}
            case "sample":
                looks = [*self._looks, asdict(holding())]
                self._looks.clear()
                least = {name: min(each[name] for each in looks) for name in looks[0]}
                told = {"at_s": round(time.monotonic() - self._begun_at, 1), "payload_tokens": self._payload_tokens}
                return {"sample": told | least, "heard": self._heard, "answered": self._answered}
            case other:
                raise ValueError(f"unknown request {other}")

    async def _start(self, settings: Mapping[str, Any], discord: Mapping[str, Any]) -> None:
        tuning, chosen = split_overrides({**settings, **settings_at(discord)})
        parts = BotSettings.from_schema(load(overrides=chosen), tuning)
        bot = await self._stack.enter_async_context(
            running_bot(parts, observe=self._observe, rejoin=False, zone=LocalZone())
        )
        place = bot.client.place(discord["guild_id"], discord["channel_id"])
        assert place is not None, "a channel of the local Discord"
        await bot.rooms.join(place)

    async def look(self) -> None:
        """Look at what is held between two samples, until cancelled."""
        while True:
            self._looks.append(asdict(holding()))
            await asyncio.sleep(LOOK_S)

    def _observe(self, event: events.Event) -> None:
        match event:
            case events.UtteranceTranscribed():
                self._heard += 1
            case events.ReplySpoken():
                self._answered += 1
            case events.ContextBuilt():
                self._payload_tokens = sum(part.tokens for part in event.parts)
            case _:
                pass


async def _run(answers: int) -> None:
    async with AsyncExitStack() as stack:
        bot = LiveBot(stack)
        await stack.enter_async_context(background_task(bot.look(), name="least-use"))
        release = release_free_memory(lambda _: asyncio.sleep(RELEASE_S))
        await stack.enter_async_context(background_task(release, name="more-memory-release"))
        await serve(answers, bot.answer)


if __name__ == "__main__":
    asyncio.run(_run(keep_stdout_for_answers()))
