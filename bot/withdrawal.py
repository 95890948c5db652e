"""Words that may not be used any more, as one event that reaches everything in this process that holds words of people.

Somebody opts out, withdraws consent, or is forgotten, here or by another process. Whatever holds words, or what was
made of them, has `on_withdrawn`, and stands in the list that is built where the parts are made: the parts of a
room, `bot.app` for the process. What is stored is not held: `bot.store.speech_forgetting` deletes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from compaction.model import SessionId


@dataclass(frozen=True, slots=True)
class WordsWithdrawn:
    """Words that are withdrawn now.

    `people`: the ids of those who said or showed them. What is not recorded yet of what they began before `since`
    (monotonic seconds) is dropped; notes and sounds are theirs by these ids too. `turns`: the sessions with turns that
    are withdrawn, or that have quoted such; empty as long as the store has not deleted them. All that was made of the
    words of such a session is dropped, because nobody can tell which it was made of.
    """

    since: float
    people: frozenset[str] = frozenset()
    turns: frozenset[SessionId] = frozenset()

    def within(self, session_id: str | None) -> WordsWithdrawn:
        """Return the part of the event that is about one session."""
        return replace(self, turns=frozenset(each for each in self.turns if each == session_id))

    def is_of(self, user_id: int) -> bool:
        """Return whether words of this person are withdrawn."""
        return str(user_id) in self.people


class WordsHolder(Protocol):
    """Holds words of people, or what was made of them."""

    def on_withdrawn(self, event: WordsWithdrawn) -> None:
        """Drop what may hold the words. Does not wait."""


def withdraw(event: WordsWithdrawn, holders: Collection[WordsHolder]) -> None:
    """Give the event to every holder."""
    for holder in holders:
        holder.on_withdrawn(event)


class Drops(Protocol):
    def __call__(self, user_id: int, *, started_at: float) -> bool:
        """Return whether what a person began to say at a time (monotonic seconds) may not be used: they opted out, or
        have had it forgotten.
        """
