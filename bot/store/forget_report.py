"""What was forgotten, in numbers, for whoever has asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compaction.model import SessionId


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """How much was forgotten: the person's turns, the bot's answers about them, facts in segments, screen notes,
    facts about the person (`about`), and servers whose settings named them (`rules`). `wiped`: no byte of it is left in
    the database's index and journal.
    """

    turns: int = 0
    answers: int = 0
    facts: int = 0
    notes: int = 0
    about: int = 0
    rules: int = 0
    sessions: tuple[SessionId, ...] = ()
    wiped: bool = True

    @classmethod
    def of_sessions(cls, reports: Iterable[ForgetReport]) -> ForgetReport:
        """Return the sum of what was forgotten in single sessions."""
        total = cls()
        for each in reports:
            total = cls(
                total.turns + each.turns,
                total.answers + each.answers,
                total.facts + each.facts,
                total.notes + each.notes,
                total.about + each.about,
                sessions=(*total.sessions, *each.sessions),
            )
        return total
