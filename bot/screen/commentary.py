"""Decides when the bot remarks on a shared screen unasked.

`RemarkTiming` decides whether now is a good time; it is pure and gets the time as an argument. `ScreenCommentary` waits
for that time and requests the remark. `bot.brain.decider` decides whether the bot may speak at all; the model decides
what it says, if anything.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from compaction.model import NoteReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.clock import Clock
    from compaction.model import Note
    from voice.screen.settings import ScreenSettings

# How often the room is checked for quiet while a remark is pending.
CHECK_INTERVAL_S: Final = 0.4
# After this time people have moved on, and a note is no longer worth a remark.
STALE_S: Final = 30.0
# Seconds for which nobody has spoken before a remark: the pause between two turns is shorter.
QUIET_S: Final = 2.2
# Least time between remarks on a screen on which nothing new happens.
INTERVAL_REMARK_EVERY_S: Final = 90.0
# Priority of each kind of note for a remark. 0: never, because only the person who asked waits for it.
_PRIORITY: Final = {
    NoteReason.SHARE_START: 3,
    NoteReason.CUT: 2,
    NoteReason.TEXT: 2,
    NoteReason.INTERVAL: 1,
    NoteReason.ASKED: 0,
}


class RemarkTiming:
    """Decides when one room may get a remark. Times are monotonic seconds.

    `every_s`: least time between two remarks. `quiet_s`: how long nobody may have spoken before one.
    """

    def __init__(self, *, every_s: float, quiet_s: float) -> None:
        self._every_s = every_s
        self._quiet_s = quiet_s
        self._priority = 0
        self._noted_at = 0.0
        self._remarked_at = float("-inf")

    def add_note(self, reason: NoteReason, *, now: float) -> None:
        """Make a note pending, unless one of higher priority is pending."""
        priority = _PRIORITY[reason]
        if priority and (not self.is_pending(now) or priority >= self._priority):
            self._priority, self._noted_at = priority, now

    def is_pending(self, now: float) -> bool:
        """Return whether a note waits for a remark and is not stale."""
        return self._priority > 0 and now - self._noted_at < STALE_S

    def drop_pending(self) -> None:
        """Drop the pending note: a reply has covered it, or the share has ended."""
        self._priority = 0

    def is_due(self, now: float, *, quiet_for_s: float) -> bool:
        """Return whether to remark now. `quiet_for_s`: how long nobody has spoken, the bot included."""
        every_s = INTERVAL_REMARK_EVERY_S if self._priority <= _PRIORITY[NoteReason.INTERVAL] else self._every_s
        return self.is_pending(now) and quiet_for_s >= self._quiet_s and now - self._remarked_at >= every_s

    def finish_pending(self, now: float, *, model_asked: bool) -> None:
        """Use up the pending note. `model_asked`: the model was asked for a remark, so the next one must wait."""
        self._priority = 0
        if model_asked:
            self._remarked_at = now


class ScreenCommentary:
    """Requests remarks on the screens of one room.

    `is_busy`: somebody is speaking, or a reply is in progress. `is_sharing`: somebody still shares a screen.
    `request_remark`: requests a remark and returns whether the model was asked. *Ownership*: `run` is a task of the
    conversation.
    """

    def __init__(
        self,
        settings: ScreenSettings,
        *,
        clock: Clock,
        is_busy: Callable[[], bool],
        is_sharing: Callable[[], bool],
        request_remark: Callable[[], bool],
    ) -> None:
        self._timing = RemarkTiming(every_s=settings.commentary_every_s, quiet_s=QUIET_S)
        self._clock = clock
        self._is_busy = is_busy
        self._is_sharing = is_sharing
        self._request_remark = request_remark
        self._note_added = asyncio.Event()

    def on_note(self, note: Note) -> None:
        self._timing.add_note(note.why, now=self._clock.monotonic())
        self._note_added.set()

    def on_question(self) -> None:
        """Drop the pending note: the model sees it when it answers the question."""
        self._timing.drop_pending()

    async def run(self) -> None:
        """Request remarks, for ever. Sleeps while no note is pending."""
        while True:
            await self._note_added.wait()
            self._note_added.clear()
            await self._wait_for_moment()

    async def _wait_for_moment(self) -> None:
        """Check the room until the remark is made or the note is stale."""
        quiet_since = self._clock.monotonic()
        while self._timing.is_pending(now := self._clock.monotonic()):
            if not self._is_sharing():
                self._timing.drop_pending()
            elif self._is_busy():
                quiet_since = now
            elif self._timing.is_due(now, quiet_for_s=now - quiet_since):
                self._timing.finish_pending(now, model_asked=self._request_remark())
                return
            await self._clock.sleep(CHECK_INTERVAL_S)
