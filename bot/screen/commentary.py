"""Watches for the moment in which a remark about a shared screen would disturb nobody, and asks for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bot.brain.commentary import Commentary

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.clock import Clock
    from compaction.model import Note
    from voice.screen.settings import ScreenSettings

# How often it is looked whether the room is quiet, while there is something to remark.
LOOK_S = 0.4


class Commenting:
    """One room's. `busy`: somebody speaks, or an answer is in the works; `sharing`: somebody shares a screen still;
    `remark`: asks for a remark, and returns whether the model was asked. *Ownership*: `run` is the conversation's task.
    """

    def __init__(
        self,
        settings: ScreenSettings,
        *,
        clock: Clock,
        busy: Callable[[], bool],
        sharing: Callable[[], bool],
        remark: Callable[[], bool],
    ) -> None:
        self._commentary = Commentary(every_s=settings.commentary_every_s, quiet_s=settings.commentary_quiet_s)
        self._clock = clock
        self._busy = busy
        self._sharing = sharing
        self._remark = remark
        self._stirred = asyncio.Event()

    def noted(self, note: Note) -> None:
        """Something was noted."""
        self._commentary.noted(note.why, now=self._clock.monotonic())
        self._stirred.set()

    def asked(self) -> None:
        """An answer is asked for, with what was noted so far before the model."""
        self._commentary.gone_by()

    async def run(self) -> None:
        """Watch, for ever. Nobody is looked at while nothing waits."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            await self._watch()

    async def _watch(self) -> None:
        """Wait for the moment until it comes or the occasion has gone by."""
        quiet_since = self._clock.monotonic()
        while self._commentary.waiting(now := self._clock.monotonic()):
            if not self._sharing():
                # Nobody speaks of a film that somebody has switched off.
                self._commentary.gone_by()
            elif self._busy():
                quiet_since = now
            elif self._commentary.due(now, quiet_for_s=now - quiet_since):
                self._commentary.taken(now, asked=self._remark())
                return
            await self._clock.sleep(LOOK_S)
