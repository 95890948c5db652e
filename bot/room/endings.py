"""Why a room ends, in one word each. The log and the events have the same words."""

from __future__ import annotations

import asyncio
from typing import Final

# Somebody sent the bot away.
LEFT: Final = "left"
# Somebody took the bot out of the channel.
EXPELLED: Final = "expelled"
# Nobody is left in the channel.
EMPTY: Final = "empty"
# The session is as long as one may be on the server.
LONGEST: Final = "longest"
# People could not be told that the bot listens, so nobody was heard.
NOT_ANNOUNCED: Final = "not_announced"
# What is said was to be written into a thread, which could not be opened.
NO_TRANSCRIPT: Final = "no_transcript"
# The connection to the channel took too long.
NOT_JOINED: Final = "not_joined"
# A part has failed.
CRASHED: Final = "crashed"
# Another process has the room now.
TAKEN_OVER: Final = "taken_over"
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

    @property
    def reason(self) -> str | None:
        """Return why the room ends; None: it was not asked to."""
        return self._reason.result() if self._reason.done() else None

    async def wait(self) -> str:
        """Wait until the room is asked to end, and return the reason. *Cancellation*: others wait on."""
        return await asyncio.shield(self._reason)
