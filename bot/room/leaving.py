"""Why a room ends, in one word each, and when a session ends by itself. The log and the events have the same words."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot.texts.text import Text, counted
from compaction.errors import StaleOwnerError
from voice.errors import TakenOverError

if TYPE_CHECKING:
    from bot.server_settings import ServerSettings

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
# Another process has the room now: the database says so, or Discord.
TAKEN_OVER: Final = "taken_over"
TAKEN_OVER_ERRORS: Final = (StaleOwnerError, TakenOverError)
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


@dataclass(frozen=True, slots=True)
class ReachedLimit:
    """Why a session ends by itself. `reason`: the word for the log. `sentence`: what people are told, if
    anybody is left to read it.
    """

    reason: str
    sentence: Text | None = None


class SessionLimits:
    """The limits of one session. `started_at`: when it began, in UTC epoch seconds; a room may have resumed it.

    `leave_when_empty_s`: how long the bot stays alone where the server has not chosen.
    """

    def __init__(self, *, started_at: float, leave_when_empty_s: float) -> None:
        self._started_at = started_at
        self._leave_when_empty_s = leave_when_empty_s
        self._alone_since: float | None = None

    def check(self, settings: ServerSettings, *, accompanied: bool, epoch: float, now: float) -> ReachedLimit | None:
        """Return the limit that is reached, or None. `settings`: what the server has chosen by now. `accompanied`:
        people are in the channel. `epoch`: UTC seconds. `now`: monotonic seconds.
        """
        longest_h = settings.longest_session_h
        if longest_h is not None and epoch - self._started_at >= longest_h * 3600:
            return ReachedLimit(LONGEST, _too_long(longest_h))
        if accompanied:
            self._alone_since = None
            return None
        if self._alone_since is None:
            self._alone_since = now
        alone_s = now - self._alone_since
        return ReachedLimit(EMPTY) if alone_s >= (settings.leave_when_empty_s or self._leave_when_empty_s) else None


def _too_long(longest_h: float) -> Text:
    return Text(
        "This session has lasted {hours}. That is the limit on this server, so I end it and leave. I "
        "remember what was said. Use /join to begin a new session.",
        hours=counted(longest_h, "{count} hour", "{count} hours"),
    )
