"""Who is talking with the bot at present, and so need not say its name. Pure.

Somebody it has answered may go on for a while. That ends when they say something to somebody else, or when others
take the talk over. A nod, thanks, or a word or two of somebody else do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.brain.addressing import word_count
from bot.brain.decider import Reason
from compaction.language.wording import QUESTION_MARKS

if TYPE_CHECKING:
    from bot.brain.decider import Decision

# From so many words on, somebody else's turn is a turn of the talk and not a remark beside it.
TAKES_OVER_WORDS = 3
# What is said so is said to others.
_BETWEEN_OTHERS = frozenset({Reason.NOT_ADDRESSED, Reason.MENTIONED, Reason.ADDRESSED_TO_OTHER, Reason.BUSY})


@dataclass(frozen=True, slots=True)
class _Spoken:
    """When the bot last ended speaking to somebody, and whether with a question. Monotonic seconds."""

    at: float
    asked: bool


class Engagement:
    """One room's. `window_s`: how long after the bot's last word to somebody they can go on without its name."""

    def __init__(self, *, window_s: float) -> None:
        self._window_s = window_s
        self._spoken: dict[int, _Spoken] = {}
        self._pending: int | None = None

    def answers(self, user_id: int) -> None:
        """The bot begins to answer somebody."""
        self._pending = user_id

    def answered(self, user_id: int, text: str, *, now: float) -> None:
        """The bot's answer ended, as far as it was heard; an empty one changes nothing else."""
        if self._pending == user_id:
            self._pending = None
        if text:
            self._spoken[user_id] = _Spoken(now, text.rstrip().endswith(QUESTION_MARKS))

    def engaged(self, user_id: int, *, at: float) -> bool:
        """Return whether what that person began to say at `at` goes on with their talk with the bot."""
        spoken = self._spoken.get(user_id)
        return self._pending == user_id or (spoken is not None and at - spoken.at <= self._window_s)

    def asked(self, user_id: int, *, at: float) -> bool:
        """Return whether the bot's last words to them were a question, and they can still be answering it."""
        spoken = self._spoken.get(user_id)
        return spoken is not None and spoken.asked and at - spoken.at <= self._window_s

    def heard(self, user_id: int, text: str, decision: Decision) -> None:
        """Take note of what somebody said, and of what was decided about it."""
        if decision.reason not in _BETWEEN_OTHERS:
            return
        if decision.reason is Reason.ADDRESSED_TO_OTHER or word_count(text) >= TAKES_OVER_WORDS:
            # The talk has moved on, for everybody.
            self.ends_for_all()
        self.ends(user_id)

    def ends_for_all(self) -> None:
        """Nobody talks with the bot any more: it has been told to be silent."""
        self._spoken.clear()
        self._pending = None

    def ends(self, user_id: int) -> None:
        """That person no longer talks with the bot."""
        self._spoken.pop(user_id, None)
        if self._pending == user_id:
            self._pending = None
