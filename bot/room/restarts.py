"""When a room that has ended by itself starts again: at once, after a pause, or never. Pure.

A crash may repeat, so the pauses grow and have an end. A process that is lost, or hands its room over because its
machine leaves, is no fault of the room: people would only wait for nothing. If it is lost alone again and again, it may
be. A database that is away is no fault either: a room that cannot begin without it waits until it is back, however long
that takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot.room.endings import HandedOverError, ProcessLostError
from compaction.errors import StoreError
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from bot.room.endings import ProcessLoss

# The first restart comes soon: most crashes do not repeat. Doubled for each further crash in a row.
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
# After more crashes in a row the room stays closed.
MOST_CRASHES: Final = 5
# After a room has run this long, its crashes are counted anew.
STABLE_S: Final = 300.0
# Machines fail one after the other, so a room that loses its process again is not at fault. One that loses it sooner
# than this may have ended it (a library that breaks on its sound), and pauses.
LOST_AFTER_S: Final = 30.0
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
        # Of each crash in a row the process that it lost, if it is one of those.
        self._in_a_row: list[ProcessLoss | None] = []

    @property
    def crashes(self) -> int:
        """Return how often in a row it has crashed or lost its process, unless its machine lost others with that."""
        return sum(loss is None or not loss.with_others for loss in self._in_a_row)

    def pause_after(self, error: Exception, *, ran_s: float) -> float | None:
        """Return how long the room waits before its next start; None: it stays closed. `error`: why it ended after
        `ran_s` seconds.

        A lost process counts as a crash although nobody waits after it: a room that ends every process would take those
        of others with it, again and again. It does not count if its machine lost other processes with it.
        """
        if isinstance(error, HandedOverError):
            return 0.0
        if ran_s >= STABLE_S:
            self._in_a_row.clear()
        loss = error.loss if isinstance(error, ProcessLostError) else None
        self._in_a_row = [each for each in self._in_a_row if each is None or not each.with_others]
        self._in_a_row.append(loss)
        crashes = self.crashes
        if crashes > MOST_CRASHES:
            return None
        if loss is not None and (loss.with_others or crashes == 1 or ran_s >= LOST_AFTER_S):
            return 0.0
        return retry_pause_s(crashes, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)
