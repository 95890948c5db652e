"""Gives the answers that another person's words have stopped, once the room is free (`bot.brain.unanswered`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.brain.question import Question
    from bot.brain.unanswered import UnansweredQuestions
    from bot.clock import Clock

log = structlog.get_logger()

# How often to look whether the room is free. A pause between two people who talk is longer.
LOOK_EVERY_S = 0.2


class OwedAnswers:
    """Those of one room. `is_free`: returns whether nobody speaks, all that was said is decided on, and no reply is in
    progress. `may_answer`: returns whether a question may still be answered. `ask`: begins its reply.

    *Ownership*: the conversation runs `run`.
    """

    def __init__(
        self,
        unanswered: UnansweredQuestions,
        *,
        clock: Clock,
        is_free: Callable[[], bool],
        may_answer: Callable[[Question], bool],
        ask: Callable[[Question], None],
    ) -> None:
        self._unanswered = unanswered
        self._clock = clock
        self._is_free = is_free
        self._may_answer = may_answer
        self._ask = ask

    async def run(self) -> None:
        """Give answers when the room is free. Never returns."""
        while True:
            await self._clock.sleep(LOOK_EVERY_S)
            if not len(self._unanswered) or not self._is_free():
                continue
            question = self._unanswered.take_due(self._clock.monotonic())
            if question is not None and self._may_answer(question):
                log.info("owed_answer_given", answer_to=question.turn.seq)
                self._ask(question)
