"""Questions whose answer was stopped before it was given: by their asker, who goes on, or by another person. Pure.

Such a question is the beginning of what its asker says next (`continued_by`): both halves are one question. One that is
not taken up like that is answered as soon as the room is free (`take_due`), so nobody loses an answer, whatever stopped
it. A few are kept, and not for long, because talk moves on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from bot.brain.question import CallResult, Question, Spoken, asker_id_of
from bot.words import SESSION, Lease, Words

log = structlog.get_logger()

# More answers in a row would hold up the talk.
MOST: Final = 2
# After so many seconds people talk about something else.
OLDEST_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Unanswered:
    """One question. `lease`: of what was said in it. `since`: when its answer was stopped, monotonic seconds.
    `answered`: a whole sentence was heard, so that the answer is not owed; its asker goes on all the same.
    """

    question: Spoken | CallResult
    lease: Lease
    since: float
    answered: bool = False


@dataclass(slots=True)
class UnansweredQuestions:
    """Those of one room, oldest first. `words`: those of its session."""

    words: Words
    _kept: list[Unanswered] = field(default_factory=list)

    def keep(self, question: Spoken | CallResult, *, now: float) -> None:
        """Keep a question whose answer was stopped, the newest of its asker."""
        self.drop_of(asker_id_of(question))
        turns, since = (question.turns, question.ended_at) if isinstance(question, Spoken) else ((question.turn,), None)
        people = {part.speaker_id for turn in turns for part in turn.parts if part.speaker_id.isdecimal()}
        lease = self.words.lease({SESSION, *people}, since=since)
        self._kept.append(Unanswered(question, lease, now))
        for given_up in self._kept[:-MOST]:
            self._give_up(given_up, "too_many")

    def on_answered(self, question: Question, *, goes_on: bool) -> None:
        """Take note that a whole sentence of the stopped answer was heard. `goes_on`: its asker stopped it."""
        self._kept = [
            replace(each, answered=True) if each.question is question else each
            for each in self._kept
            if each.question is not question or goes_on
        ]

    def continued_by(self, user_id: int, *, ended_at: float) -> Spoken | None:
        """Return the question that this person continues with what they said until `ended_at` (monotonic seconds)."""
        return next(
            (
                each.question
                for each in self._kept
                if each.lease.valid
                and isinstance(each.question, Spoken)
                and each.question.asker_id == user_id
                and ended_at > each.question.ended_at
            ),
            None,
        )

    def take_due(self, now: float) -> Spoken | CallResult | None:
        """Remove and return the question to answer next, when nobody speaks and nothing is being recognised: then no
        second half follows. None: nobody is owed an answer.
        """
        while self._kept:
            oldest = self._kept.pop(0)
            if oldest.answered or not oldest.lease.valid:
                continue
            if now - oldest.since <= OLDEST_S:
                return oldest.question
            self._give_up(oldest, "too_old")
        return None

    def drop_of(self, asker_id: int | None) -> None:
        """Drop what this person asked: they have said what they want since, or are gone."""
        self._kept = [each for each in self._kept if asker_id_of(each.question) != asker_id]

    def clear(self) -> None:
        """Drop all: somebody wants silence, or what is remembered has changed."""
        self._kept = []

    def __len__(self) -> int:
        return len(self._kept)

    def _give_up(self, question: Unanswered, reason: str) -> None:
        self._kept = [each for each in self._kept if each is not question]
        log.info("answer_given_up", reason=reason, answer_to=question.question.turn.seq)
