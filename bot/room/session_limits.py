"""Decides when a session ends by itself: nobody is left, or it is as long as one may be. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.room.endings import EMPTY, LONGEST
from bot.texts.text import Text, counted

if TYPE_CHECKING:
    from bot.server_settings import ServerSettings


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
        "This session has lasted {hours}, as long as one may on this server, so I end it and leave. What was said "
        "stays remembered; /join begins a new one.",
        hours=counted(longest_h, "{count} hour", "{count} hours"),
    )
