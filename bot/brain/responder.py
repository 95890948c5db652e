"""Who finds the words of an answer: a language model, or the embedded responder. One port for both."""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bot.brain.context import ModelContext
    from bot.llm.port import ChatModel

# Turns are shown to the model as `[21:04] Ada: …`, and small models answer in kind.
_HEADING = re.compile(r"\s*\[\d{1,2}:\d{2}\]\s*(?:[^:\n]{1,60}:\s*)?")
# A heading is decided by here; waiting longer would delay the first word for nothing.
_HEADING_CHARS = 80


class Responder(Protocol):
    """Answers the current turn of a context."""

    def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield the answer piece by piece. Raises `ChatModelError`, also after some pieces."""


class ModelResponder:
    """Asks a language model. Safe to use from many rooms at once."""

    def __init__(self, model: ChatModel, *, max_output_tokens: int) -> None:
        self._model = model
        self._max_output_tokens = max_output_tokens

    async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield what the model says, without the clock time and name it may put before it."""
        opening: str | None = ""
        stream = self._model.stream(
            context.messages, max_output_tokens=self._max_output_tokens, enforce_budget=context.enforced
        )
        async with aclosing(stream):
            async for piece in stream:
                if not isinstance(piece, str):
                    continue
                if opening is None:
                    yield piece
                    continue
                opening += piece
                if _may_be_heading(opening):
                    continue
                words, opening = without_heading(opening), None
                if words:
                    yield words
        if opening and (words := without_heading(opening)):
            yield words


def without_heading(text: str) -> str:
    """Return `text` without a clock time and name in front, as turns are headed in the prompt."""
    return text[heading.end() :] if (heading := _HEADING.match(text)) else text


def _may_be_heading(opening: str) -> bool:
    """Return whether more of the stream is needed to tell a heading from an answer."""
    start = opening.lstrip()
    if not start:
        return True
    return start[0] == "[" and ": " not in start and len(start) < _HEADING_CHARS
