"""Who came into a room's channel and went, until the room takes note of it. Few changes of each person wait."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bot.channel.port import MembershipChange

# Nobody comes and goes as often within seconds but who plays with the door.
MOST_OF_ONE: Final = 10


class MembershipQueue:
    """The changes of one room, in their order. One task takes them; `add` never waits.

    The room takes none while Discord or the database is slow, and somebody may come and go all that time. What counts
    is who is there in the end, and that somebody was away at all. So of each person `MOST_OF_ONE` changes wait at most:
    one more undoes the last of them, and how often they came and went is too low then. The people of one server are
    few enough.
    """

    def __init__(self) -> None:
        self._waiting: deque[MembershipChange] = deque()
        self._added = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, change: MembershipChange) -> None:
        """Add a change. One to the state that the person's last change has led to is ignored."""
        places = [place for place, each in enumerate(self._waiting) if each.person.id == change.person.id]
        if places and self._waiting[places[-1]].joined is change.joined:
            return
        if len(places) == MOST_OF_ONE:
            del self._waiting[places[-1]]
            return
        self._waiting.append(change)
        self._added.set()

    async def get(self) -> MembershipChange:
        """Take the oldest change, and wait for one if there is none."""
        while not self._waiting:
            self._added.clear()
            await self._added.wait()
        return self._waiting.popleft()

    def get_nowait(self) -> MembershipChange:
        """Take the oldest change. Raises `asyncio.QueueEmpty`."""
        if not self._waiting:
            raise asyncio.QueueEmpty
        return self._waiting.popleft()
