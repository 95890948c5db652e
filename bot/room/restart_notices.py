"""What is written into a room's channel when it has ended by itself: why (`error`), and what comes next.

`bot.room.lifecycle` decides what comes next.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bot.background_task import logged_task
from bot.errors import crash_sentence
from bot.room.restarts import DATABASE_PAUSE_S
from bot.texts.text import Text, sentence_of

if TYPE_CHECKING:
    from bot.channel.port import Place


def not_moved(error: Exception) -> Text:
    """Return that the bot could not come to where somebody has moved it."""
    return Text("I could not come along. {why}", why=crash_sentence(error))


def waiting(error: Exception) -> Text:
    """Return that the room waits for the database."""
    return Text(
        "{why} I try again every {seconds} s until I can store again; what was said before is kept.",
        why=sentence_of(error),
        seconds=DATABASE_PAUSE_S,
    )


def giving_up(error: Exception, *, crashes: int) -> Text:
    """Return that the room stays closed, after so many crashes in a row."""
    return Text(
        "{why} I have failed {count} times in a row, so I stop. Use /join to call me back.",
        why=crash_sentence(error),
        count=crashes,
    )


def pausing(error: Exception, *, pause_s: float) -> Text:
    """Return when the room starts again."""
    return Text(
        "{why} I am starting again in {seconds} s; what was said before is kept.",
        why=crash_sentence(error),
        seconds=pause_s,
    )


def going_on(error: Exception) -> Text:
    """Return that the room starts again at once."""
    return Text("{why} I go on at once; what was said before is kept.", why=crash_sentence(error))


class UnawaitedNotices:
    """Notices that nobody waits for: a room that goes on at once shall not wait for Discord either.

    *Ownership*: owns the tasks that write them, until `close`.
    """

    def __init__(self) -> None:
        # More than one: rooms may be lost one after the other, and Discord may be slow.
        self._writing: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Stop writing."""
        for writing in self._writing:
            writing.cancel()
        if self._writing:
            await asyncio.wait(self._writing)

    def write(self, place: Place, notice: Text) -> None:
        """Write a notice. Does not wait."""
        writing = logged_task(place.write(notice), name=f"room-lost-{place.guild_id}")
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
