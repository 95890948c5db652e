"""Decides when the bot remarks on a shared screen unasked.

`RemarkTiming` decides whether now is a good time; it is pure and gets the time as an argument. `ScreenCommentary` waits
for that time and requests the remark. `bot.brain.decider` decides whether the bot may speak at all; the model decides
what it says, if anything.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from compaction.model import NoteTrigger

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.clock import Clock
    from compaction.model import Note

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
    NoteTrigger.SHARE_START: 3,
    NoteTrigger.CUT: 2,
    NoteTrigger.TEXT: 2,
    NoteTrigger.INTERVAL: 1,
    NoteTrigger.ASKED: 0,
}


@dataclass(frozen=True, slots=True)
class _PendingNote:
    """A note that waits for a remark. `at`: since when, in monotonic seconds."""

    note: Note
    at: float

    @property
    def priority(self) -> int:
        return _PRIORITY[self.note.trigger]

    def is_fresh(self, now: float) -> bool:
        return now - self.at < STALE_S


class RemarkTiming:
    """Decides when one room may get a remark. Times are monotonic seconds.

    `every_s`: least time between two remarks. `quiet_s`: how long nobody may have spoken before one.
    """

    def __init__(self, *, every_s: float, quiet_s: float) -> None:
        self._every_s = every_s
        self._quiet_s = quiet_s
        # One for each person who shares, by their name.
        self._pending: dict[str, _PendingNote] = {}
        self._remarked_at = float("-inf")

    def add_note(self, note: Note, *, now: float) -> None:
        """Make a note pending, unless one of higher priority of the same person is pending."""
        added, before = _PendingNote(note, now), self._pending.get(note.who)
        if added.priority and (before is None or not before.is_fresh(now) or added.priority >= before.priority):
            self._pending[note.who] = added

    def is_pending(self, now: float) -> bool:
        """Return whether a note waits for a remark and is not stale."""
        return self._priority(now) > 0

    def drop_pending(self, dropped: Callable[[Note], bool] = lambda _: True) -> None:
        """Drop pending notes for which `dropped` returns true: a reply has covered them, or their share has ended."""
        self._pending = {who: each for who, each in self._pending.items() if not dropped(each.note)}

    def is_due(self, now: float, *, quiet_for_s: float) -> bool:
        """Return whether to remark now. `quiet_for_s`: how long nobody has spoken, the bot included."""
        every_s = INTERVAL_REMARK_EVERY_S if self._priority(now) <= _PRIORITY[NoteTrigger.INTERVAL] else self._every_s
        return self.is_pending(now) and quiet_for_s >= self._quiet_s and now - self._remarked_at >= every_s

    def finish_pending(self, now: float, *, model_asked: bool) -> None:
        """Use up the pending notes. `model_asked`: the model was asked for a remark, so the next one must wait."""
        self._pending.clear()
        if model_asked:
            self._remarked_at = now

    def _priority(self, now: float) -> int:
        """Return the highest priority of what is pending; 0 if nothing is."""
        return max((each.priority for each in self._pending.values() if each.is_fresh(now)), default=0)


class ScreenCommentary:
    """Requests remarks on the screens of one room.

    `every_s`: least seconds between two. `is_busy`: somebody is speaking, or a reply is in progress. `is_shown`:
    returns whether the share that a note is from still goes on. `request_remark`: requests a remark and returns whether
    the model was asked. *Ownership*: `run` is a task of the conversation.
    """

    def __init__(
        self,
        *,
        every_s: float,
        clock: Clock,
        is_busy: Callable[[], bool],
        is_shown: Callable[[Note], bool],
        request_remark: Callable[[], bool],
    ) -> None:
        self._timing = RemarkTiming(every_s=every_s, quiet_s=QUIET_S)
        self._clock = clock
        self._is_busy = is_busy
        self._is_shown = is_shown
        self._request_remark = request_remark
        self._note_added = asyncio.Event()

    def on_note(self, note: Note) -> None:
        # An earlier share of this person may have ended just now.
        self._drop_ended()
        self._timing.add_note(note, now=self._clock.monotonic())
        self._note_added.set()

    def on_question(self) -> None:
        """Drop the pending notes: the model sees them when it answers the question."""
        self._timing.drop_pending()

    async def run(self) -> None:
        """Request remarks, for ever. Sleeps while no note is pending."""
        while True:
            await self._note_added.wait()
            self._note_added.clear()
            await self._wait_for_moment()

    async def _wait_for_moment(self) -> None:
        """Check the room until the remark is made or no note is fresh."""
        quiet_since = self._clock.monotonic()
        while True:
            self._drop_ended()
            if not self._timing.is_pending(now := self._clock.monotonic()):
                return
            if self._is_busy():
                quiet_since = now
            elif self._timing.is_due(now, quiet_for_s=now - quiet_since):
                self._timing.finish_pending(now, model_asked=self._request_remark())
                return
            await self._clock.sleep(CHECK_INTERVAL_S)

    def _drop_ended(self) -> None:
        """Drop the notes of shares that have ended: nobody sees any more what a remark would be about."""
        self._timing.drop_pending(lambda note: not self._is_shown(note))
