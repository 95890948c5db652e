"""Decides when the bot remarks on a shared screen unasked.

`ScreenCommentary` waits for a good time and requests the remark. `bot.brain.decider` decides whether the bot may speak
at all; the model decides what it says, if anything.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from compaction.model import Note, NoteTrigger

if TYPE_CHECKING:
    from bot.participation.participation import Participation
    from bot.screen.screens import Screens

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


class ScreenCommentary:
    """Requests remarks on the screens of one room.

    `screens`: tell which shares go on. `participation`: knows who speaks, and whether the bot may remark. *Ownership*:
    `run` is a task of the conversation.
    """

    def __init__(self, screens: Screens, guild_id: int, participation: Participation) -> None:
        self._screens, self._guild_id, self._clock = screens, guild_id, screens.clock
        self._participation = participation
        # The note of each person who shares that a remark would be about, and when it came, by their name.
        self._pending: dict[str, tuple[Note, float]] = {}
        self._remarked_at = float("-inf")
        self._note_added = asyncio.Event()

    def on_note(self, note: Note) -> None:
        """Let a note wait for a remark, unless a better one of the same person does."""
        self._drop_past()
        least = _PRIORITY[self._pending[note.who][0].trigger] if note.who in self._pending else 1
        if _PRIORITY[note.trigger] >= least:
            self._pending[note.who] = note, self._clock.monotonic()
        self._note_added.set()

    def on_question(self) -> None:
        """Drop the pending notes: the model sees them when it answers the question."""
        self._pending.clear()

    async def run(self) -> None:
        """Request remarks, for ever. Sleeps while no note is pending."""
        while True:
            await self._note_added.wait()
            self._note_added.clear()
            quiet_since = self._clock.monotonic()
            while self._drop_past():
                now = self._clock.monotonic()
                if self._participation.is_busy:
                    quiet_since = now
                elif now - quiet_since >= QUIET_S and now - self._remarked_at >= self._distance_s():
                    self._pending.clear()
                    if self._participation.request_remark():
                        self._remarked_at = now
                    break
                await self._clock.sleep(CHECK_INTERVAL_S)

    def _drop_past(self) -> bool:
        """Drop the notes that are stale, and those of shares that have ended: nobody sees any more what a remark would
        be about. Return whether any are left.
        """
        now, room = self._clock.monotonic(), self._screens.room(self._guild_id)
        self._pending = {
            who: (note, at)
            for who, (note, at) in self._pending.items()
            if now - at < STALE_S and room is not None and room.is_shown(note)
        }
        return bool(self._pending)

    def _distance_s(self) -> float:
        """Return the least time since the last remark, for the best of what is pending."""
        only_goes_on = all(note.trigger is NoteTrigger.INTERVAL for note, _ in self._pending.values())
        return INTERVAL_REMARK_EVERY_S if only_goes_on else self._screens.remark_every_s
