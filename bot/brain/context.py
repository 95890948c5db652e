"""What the brain hands to whoever finds the words: the session's memory as the messages of one model call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.llm.port import ChatMessage, Role
from compaction.context import build_payload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from compaction.context import SessionContext
    from compaction.memory.quotes import Quote
    from compaction.model import Turn
    from compaction.payload import PayloadPart
    from compaction.session import SessionMemory


@dataclass(frozen=True, slots=True)
class ModelContext:
    """What is sent for one answer. `parts` is what is sent, with where it comes from; `messages` the same, as sent.

    `session` is what the parts were made of; `current` the turn that is answered; `now` UTC epoch seconds.
    """

    session: SessionContext
    current: Turn
    parts: tuple[PayloadPart, ...]
    messages: tuple[ChatMessage, ...]
    now: float
    # What the recalled parts were made of; not all of them need have had room.
    quotes: tuple[Quote, ...] = ()


def build_context_messages(
    memory: SessionMemory,
    current: Turn,
    *,
    system: Sequence[str],
    max_input_tokens: int,
    now: float,
    zone: tzinfo,
    quotes: Sequence[Quote] = (),
    participants: Sequence[PayloadPart] = (),
) -> ModelContext:
    """Return what a model is sent to answer `current`, and log `model_context_built`.

    System prompts, what is known of the people present (`participants`), the summary, the window word for word, live
    notes, recalled quotes, the current turn: within `max_input_tokens`. This is where the session asks itself whether
    a batch is due for folding; that happens in the background and never delays the answer. Raises
    `ContextOverflowError`.
    """
    session = memory.context(current=current, max_input_tokens=max_input_tokens)
    parts = build_payload(
        session, system=system, recall=[quote.part for quote in quotes], participants=participants, zone=zone
    )
    memory.sent(session, parts, zone=zone)
    messages = tuple(ChatMessage(Role(part.role), part.content) for part in parts)
    return ModelContext(session=session, current=current, parts=parts, messages=messages, now=now, quotes=tuple(quotes))
