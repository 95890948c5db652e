"""When a room that has ended by itself starts again: after a pause, or never; and what its channel reads of it. Pure.

A crash may repeat, so the pauses grow and have an end. A database that is away is no fault of the room: one that cannot
begin without it waits until it is back, however long that takes.
"""

from __future__ import annotations

from typing import Final

from bot.errors import crash_sentence
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError
from voice.retry_pause import retry_pause_s

# The first restart comes soon: most crashes do not repeat. Doubled for each further crash in a row.
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
# After more crashes in a row the room stays closed.
MOST_CRASHES: Final = 5
# After a room has run this long, its crashes are counted anew.
STABLE_S: Final = 300.0
# Between two attempts of a room that waits for the database. One is a query or two, and people wait for it.
DATABASE_PAUSE_S: Final = 5.0


def waits_for_database(error: Exception, *, has_opened: bool) -> bool:
    """Return whether a room that has ended with `error` waits for the database, which is no crash. A room that was open
    keeps in memory what it cannot store, so one that ends all the same has crashed.
    """
    return isinstance(error, StoreError) and not has_opened


class RoomRestarts:
    """The restarts of one room."""

    def __init__(self) -> None:
        # In a row.
        self.crashes = 0

    def pause_after(self, *, ran_s: float) -> float | None:
        """Return how long a room that crashed after `ran_s` seconds waits for its next start; None: it stays closed."""
        self.crashes = 1 if ran_s >= STABLE_S else self.crashes + 1
        if self.crashes > MOST_CRASHES:
            return None
        return retry_pause_s(self.crashes, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)


# What is written into the channel: why the room has ended (`error`), and what comes next.


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
