"""The time zone of this machine, for times that people read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo


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
