"""Registers the slash commands with Discord, without keeping the bot from starting.

Discord limits how often commands may be registered, for minutes after a few restarts, and its servers fail at times.
The commands of an earlier start are there all the while.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import discord
import structlog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = structlog.get_logger()

# The start waits so long for it. Discord takes less than a second if nothing is wrong.
START_WAIT_S: Final = 5.0
# The pauses between the attempts double from the first to the longest.
FIRST_PAUSE_S: Final = 30.0
LONGEST_PAUSE_S: Final = 1800.0
_TOO_MANY: Final = 429


class CommandRegistration:
    """`register`: does it once. *Ownership*: the task `command-registration`, which `close` ends."""

    def __init__(
        self, register: Callable[[], Awaitable[object]], *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._register = register
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None

    async def begin(self, *, wait_s: float | None = None) -> None:
        """Begin to register the commands, and wait for it `wait_s` seconds (`START_WAIT_S`). Raises what Discord
        refuses them with.
        """
        wait_s = START_WAIT_S if wait_s is None else wait_s
        self._task = asyncio.create_task(self._until_done(), name="command-registration")
        done, _ = await asyncio.wait({self._task}, timeout=wait_s)
        if done:
            self._task.result()
        else:
            self._task.add_done_callback(_report)
            log.warning("commands_register_slowly", waited_s=wait_s)

    async def close(self) -> None:
        """Stop trying."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _until_done(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                await self._register()
            except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
                if not _passes(error):
                    raise
                log.warning("commands_not_registered", error_class=type(error).__name__, next_try_s=pause_s)
            else:
                return
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _passes(error: Exception) -> bool:
    """Return whether the trouble is Discord's or the network's, so that another attempt may succeed."""
    return not isinstance(error, discord.HTTPException) or error.status == _TOO_MANY or error.status >= 500


def _report(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("commands_refused", exc_info=error)
