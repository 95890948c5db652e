"""What is written into a room's channel when it has ended by itself: why (`error`), and what comes next.

`bot.room.lifecycle` decides what comes next.
"""

from __future__ import annotations

from bot.errors import crash_sentence
from bot.room.restarts import DATABASE_PAUSE_S
from bot.texts.text import Text, sentence_of


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
