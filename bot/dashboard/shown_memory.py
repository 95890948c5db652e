"""What the dashboard reads of a session's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import Mode, Turn

# More than any session has. A room on another machine may tell any number, and store turns of any.
MOST_TURNS: Final = 1_000_000


class NumberedTurn(Protocol):
    """A turn of which only the number matters."""

    @property
    def seq(self) -> int:
        """Return its number in the session."""


class ShownMemory(Protocol):
    """A session's memory; `compaction.session.SessionMemory` implements it, and a room in another process tells it."""

    @property
    def mode(self) -> Mode:
        """Return how the session remembers."""

    @property
    def total_turns(self) -> int:
        """Return how many turns the session has."""

    @property
    def cursor(self) -> int:
        """Return how many turns are summarised."""

    @property
    def window(self) -> Sequence[NumberedTurn]:
        """Return the turns that are sent word for word."""

    @property
    def summary(self) -> str | None:
        """Return the summary, if there is one."""

    @property
    def external_changes(self) -> int:
        """Return how often words were deleted or withheld from outside."""

    def allowed_part(self, turn: Turn) -> Turn:
        """Return a turn without the words of people who opted out."""
