"""Why a room ends, where a part has to know it. The log and the events have the same words."""

from __future__ import annotations

import asyncio
from typing import Final

from bot.errors import BotError

# The process ends: nobody has sent the bot away.
PROCESS_ENDS: Final = "stopped"
# Another process goes on with the session, which does not end.
HANDED_OVER: Final = "handed_over"
# Somebody moved the bot into another channel.
MOVED: Final = "moved"


class RoomEnding:
    """Tells a room that somebody wants it to end, and why. The first reason counts. Make it on the room's loop."""

    def __init__(self) -> None:
        self._reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def ask(self, reason: str) -> None:
        if not self._reason.done():
            self._reason.set_result(reason)

    async def wait(self) -> str:
        """Wait until the room is asked to end, and return the reason."""
        return await self._reason


class ProcessLostError(BotError):
    """The process of the room has ended or does not answer. The message says which."""


class HandedOverError(ProcessLostError):
    """The process of the room had to end: it has stored everything, and the next one has the session and the bot."""
