"""Shares costly reads out among people: a few at once, and of each person one after the other.

So nobody waits for all that somebody else has asked for.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable


class TooManyReadsError(Exception):
    """One person has asked for too many reads at once."""


@dataclass(slots=True)
class _Reader:
    """Somebody who reads. `count`: their reads, with those that wait."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    count: int = 0


class FairReads:
    """At most `at_once` reads at the same time, one of each person. `most`: how many reads of one person may be under
    way or wait. Not thread-safe.
    """

    def __init__(self, at_once: int, *, most: int) -> None:
        self._all = asyncio.Semaphore(at_once)
        self._most = most
        self._readers: dict[Hashable, _Reader] = {}

    @asynccontextmanager
    async def read(self, person: Hashable) -> AsyncIterator[None]:
        """Wait until this person may read, which lasts as long as the block. Raises `TooManyReadsError` at once.

        *Cancellation* while it waits gives the place up.
        """
        reader = self._readers.setdefault(person, _Reader())
        if reader.count >= self._most:
            raise TooManyReadsError
        reader.count += 1
        try:
            async with reader.lock, self._all:
                yield
        finally:
            reader.count -= 1
            if not reader.count:
                del self._readers[person]
