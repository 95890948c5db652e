"""Who came into a room's channel and went, until the room takes note of it. Few changes of each person wait."""

from __future__ import annotations

import asyncio
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
        # By the number of each change, which only rises, so the first one is the oldest.
        self._waiting: dict[int, MembershipChange] = {}
        self._number = 0
        # The numbers of each person's changes, oldest first.
        self._of: dict[int, list[int]] = {}
        self._added = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, change: MembershipChange) -> None:
        """Add a change. One to the state that the person's last change has led to is ignored."""
        numbers = self._of.setdefault(change.person.id, [])
        if numbers and self._waiting[numbers[-1]].joined is change.joined:
            return
        if len(numbers) == MOST_OF_ONE:
            del self._waiting[numbers.pop()]
            return
        self._number += 1
        numbers.append(self._number)
        self._waiting[self._number] = change
        self._added.set()

    async def get(self) -> MembershipChange:
        """Take the oldest change, and wait for one if there is none."""
        while not self._waiting:
            self._added.clear()
            await self._added.wait()
        return self.get_nowait()

    def get_nowait(self) -> MembershipChange:
        """Take the oldest change. Raises `asyncio.QueueEmpty`."""
        if not self._waiting:
            raise asyncio.QueueEmpty
        number = next(iter(self._waiting))
        change = self._waiting.pop(number)
        numbers = self._of[change.person.id]
        numbers.remove(number)
        if not numbers:
            del self._of[change.person.id]
        return change
