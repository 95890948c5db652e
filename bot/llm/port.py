"""What the brain asks of a language model: one conversation in, text as it is made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from bot.errors import BotError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence


class Role(StrEnum):
    """Who speaks a message, in the words of the chat APIs."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation with a model."""

    role: Role
    content: str


class ChatModelError(BotError):
    """The language model failed. The message is a plain sentence with the remedy.

    `retryable` tells a passing trouble (busy, slow, unreachable) from one that a person must mend (a wrong
    key, an unknown model). `timeout` is true when the model was too slow.
    """

    def __init__(self, message: str, *, retryable: bool, timeout: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.timeout = timeout


class ChatModel(Protocol):
    """A language model that streams its answer."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""

    def stream(self, messages: Sequence[ChatMessage], *, max_output_tokens: int) -> AsyncGenerator[str, None]:
        """Yield the answer piece by piece; pieces are never empty.

        Raises `ChatModelError`, also after some pieces. Close it (`aclosing`) to hang up early.
        """
