"""Questions to the bot, as a room makes them of what people say."""

from __future__ import annotations

from dataclasses import replace

from bot.brain.decider import Decision, Reason
from bot.brain.question import Spoken
from compaction.model import Turn

CALLED = Decision(answer=True, reason=Reason.WAKE_NAME)


def asked(turn: Turn, utterance_id: str = "u1", *, ended_at: float = 1.0, asker_id: int = 1) -> Spoken:
    """Return what somebody has asked by the bot's name."""
    return Spoken(turn, utterance_id, ended_at, asker_id, CALLED)


def perhaps(question: Spoken) -> Spoken:
    """Return a question that the bot may leave unanswered."""
    return replace(question, decision=replace(question.decision, may_skip=True))
