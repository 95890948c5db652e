"""Who finds the words of an answer: a language model, or the embedded responder. One port for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bot.brain.context import ModelContext
    from bot.llm.port import ChatModel


class Responder(Protocol):
    """Answers the current turn of a context."""

    def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield the answer piece by piece. Raises `ChatModelError`, also after some pieces."""


class ModelResponder:
    """Asks a language model. Safe to use from many rooms at once."""

    def __init__(self, model: ChatModel, *, max_output_tokens: int) -> None:
        self._model = model
        self._max_output_tokens = max_output_tokens

    def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield what the model says. See `Responder.respond`."""
        return self._model.stream(context.messages, max_output_tokens=self._max_output_tokens)
