"""The bot of the live room in its own process (`python -m tests.endurance.live_bot`), so that its memory is its own.

It is composed and logs as `roomtone run` does. The Discord, the people and the model's server are in the parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

# First, because it sets what libraries read when they are imported.
import bot.__main__  # isort: skip  # noqa: F401

import asyncio
import time
from typing import Any

from benchmarks.child_process import answer_requests
from benchmarks.load.growth import holding
from benchmarks.local_bot import join_bot
from bot import events
from bot.background_task import background_task
from bot.cli.environment import logging_to_file
from bot.clock import SystemClock
from bot.runtime_tuning import release_free_memory
from bot.tuning import split_overrides
from config.load import load
from tests.endurance.full_size import bring_to_full_size

# While somebody is recognised, which takes a second or two, a room needs up to 170 MB more, and a second request to the
# model has a socket of its own. So a sample is the least of several looks.
LOOK_S = 1.0
# The bot gives free memory back every minute. If somebody is recognised just then, the tens of megabytes that this
# needs stay resident until the next time, so the least between two samples went up and down by 40 MB. Giving it back
# more often changes nothing of what is in use, and one of the times is a moment in which nobody is recognised. On a
# machine with other work somebody nearly always is: every 3 s, the least was 11 MB more while that went on.
RELEASE_S = 0.5


class _Hurried(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, RELEASE_S))


class LiveBot:
    """The bot, and what its observer counted. `stack` closes what it opens."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._begun_at = time.monotonic()
        self._looks: list[dict[str, float]] = []
        self._heard = self._answered = self._payload_tokens = 0

    async def start(self, settings: Mapping[str, Any], discord: Mapping[str, Any]) -> Mapping[str, object]:
        """Run the bot. Returns when it is in the voice channel."""
        await self._stack.enter_async_context(background_task(self._look(), name="least-use"))
        release = release_free_memory(_Hurried())
        await self._stack.enter_async_context(background_task(release, name="more-memory-release"))
        chosen = load(overrides=split_overrides(settings)[1])
        self._stack.enter_context(logging_to_file(chosen))
        await join_bot(self._stack, settings, discord, self._observe)
        await bring_to_full_size(chosen.storage.database_path)
        self._begun_at = time.monotonic()
        # Before it was loaded, the bot held less.
        self._looks.clear()
        return {}

    async def sample(self) -> Mapping[str, object]:
        """Return the least that it held since the sample before, and what it has heard and answered."""
        looks = [*self._looks, holding()]
        self._looks.clear()
        least = {name: min(each[name] for each in looks) for name in looks[0]}
        told = {"at_s": round(time.monotonic() - self._begun_at, 1), "payload_tokens": self._payload_tokens}
        return {"sample": told | least, "heard": self._heard, "answered": self._answered}

    async def _look(self) -> None:
        """Look at what is held between two samples, until cancelled."""
        while True:
            self._looks.append(holding())
            await asyncio.sleep(LOOK_S)

    def _observe(self, event: events.Event) -> None:
        match event:
            case events.UtteranceTranscribed():
                self._heard += 1
            case events.ReplySpoken():
                self._answered += 1
            case events.ContextBuilt():
                self._payload_tokens = sum(part.tokens for part in event.parts)


if __name__ == "__main__":
    answer_requests(LiveBot)
