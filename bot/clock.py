"""The wall clock, the monotonic clock and sleeping, behind one port so that tests can control time.

And the time zone of this machine.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Protocol


class Clock(Protocol):
    """A source of time. Pure functions never read it: they take `now` as a parameter."""

    def now(self) -> float:
        """Return the wall clock as UTC epoch seconds. For stored and displayed times, never for durations."""

    def monotonic(self) -> float:
        """Return monotonic seconds. For latencies, deadlines and backoff."""

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`. Can be cancelled at any time."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class LocalZone(tzinfo):
    """This machine's time zone. Each moment has the offset of its own season, because a bot may run from one to the
    next and tell of the one before.
    """

    def utcoffset(self, moment: datetime | None, /) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None, /) -> timedelta | None:
        """Return None: nobody asks."""
        return None

    def tzname(self, moment: datetime | None, /) -> str | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, moment: datetime, /) -> datetime:
        there = moment.replace(tzinfo=UTC).astimezone()
        here = there.replace(tzinfo=self)
        # In the hour that comes twice.
        return here if here.utcoffset() == there.utcoffset() else here.replace(fold=1)
