"""Writes into a room's channel why the room has ended by itself, and what comes next. `bot.room.restarts` decides."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bot.background_task import logged_task
from bot.errors import crash_sentence
from bot.room.restarts import DATABASE_PAUSE_S
from bot.texts.text import Text, sentence_of

if TYPE_CHECKING:
    from bot.channel.port import Place


class RestartNotices:
    """The notices about one guild's rooms. Each says why the last one has ended, its `error`.

    *Ownership*: owns the tasks of `write_going_on`, until `close`.
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

    async def write_not_moved(self, place: Place, error: Exception) -> None:
        """Write that the bot could not come to `place`, to which somebody has moved it."""
        await place.write(Text("I could not come along. {why}", why=crash_sentence(error)))

    async def write_waiting(self, place: Place, error: Exception) -> None:
        """Write that the room waits for the database."""
        await place.write(
            Text(
                "{why} I try again every {seconds} s until I can store again; what was said before is kept.",
                why=sentence_of(error),
                seconds=DATABASE_PAUSE_S,
            )
        )

    async def write_giving_up(self, place: Place, error: Exception, *, crashes: int) -> None:
        """Write that the room stays closed, after so many crashes in a row."""
        await place.write(
            Text(
                "{why} I have failed {count} times in a row, so I stop. Use /join to call me back.",
                why=crash_sentence(error),
                count=crashes,
            )
        )

    async def write_pausing(self, place: Place, error: Exception, *, pause_s: float) -> None:
        """Write when the room starts again."""
        await place.write(
            Text(
                "{why} I am starting again in {seconds} s; what was said before is kept.",
                why=crash_sentence(error),
                seconds=pause_s,
            )
        )

    def write_going_on(self, place: Place, error: Exception) -> None:
        """Write that the room goes on. Does not wait: without a pause nobody shall wait for Discord either."""
        writing = logged_task(
            place.write(Text("{why} I go on at once; what was said before is kept.", why=crash_sentence(error))),
            name=f"room-lost-{place.guild_id}",
        )
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
