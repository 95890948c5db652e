"""What the brain hands to whoever finds the words: the session's memory, ready for a chat model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.brain.reply import Question
    from bot.llm.port import ChatMessage
    from compaction.payload import PayloadPart


@dataclass(frozen=True, slots=True)
class ModelContext:
    """One answer's context. `parts` is what is sent, with where it comes from; `messages` the same, as sent.

    `now` is UTC epoch seconds.
    """

    question: Question
    parts: tuple[PayloadPart, ...]
    messages: tuple[ChatMessage, ...]
    now: float
