"""What the brain asks of a language model: one conversation in, text as it is made; and what an endpoint offers.

The brain speaks to a `ChatModel`. Between it and an endpoint stands the budget (`bot.llm.budgeted`), which nothing
goes around.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from bot.errors import BotError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from compaction.budget.messages import MessageToolCall
    from compaction.payload import PartKind
    from compaction.ports import CompletionAnswer, CompletionRequest


class ChatRole(StrEnum):
    """Who speaks a message, in the words of the chat APIs."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation with a model.

    `tool_calls`: what an assistant asked for; `tool_call_id`: which call a tool answers, and `name` that tool. What
    the budget goes by where it has to choose: `kind`, what part of a payload it is; `timestamp`, UTC epoch seconds;
    `step`, the model call during which it came up; `path`, the file or frame whose content it holds.
    """

    role: ChatRole
    content: str
    tool_calls: tuple[MessageToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    kind: PartKind | None = None
    timestamp: float | None = None
    step: int | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call cost, as the provider reports it; None where it doesn't tell."""

    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """What a model is told of a tool it may call. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools of one call. `callable_now` False: the model knows them, but has to answer in words."""

    offers: tuple[ToolOffer, ...] = ()
    callable_now: bool = True


NO_TOOLS = OfferedTools()


class FinishReason(StrEnum):
    """Why an answer ended, as far as it matters to who reads it."""

    STOP = "stop"
    # Cut off by the cap on its length: the last sentence is none.
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    # The provider would not let it go on.
    FILTERED = "content_filter"


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The end of a streamed answer. `calls`: the tools that the model wants called, with ids of their own.

    Their names and arguments are as the model wrote them: bounded in size, and checked against nothing.
    """

    reason: FinishReason
    calls: tuple[MessageToolCall, ...] = ()


# What a stream is made of: pieces of the answer, never empty, and its end at last.
StreamItem: TypeAlias = str | StreamEnd


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

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer piece by piece, and how it ended.

        `enforce_budget` False sends the messages as they are, whatever they cost; None: as the settings say. `tools`:
        what may be called; a model that can't call any answers without. Raises `ChatModelError`, also after some
        pieces, and `ContextOverflowError` before the first. Close it (`aclosing`) to hang up early.
        """


class ModelEndpoint(Protocol):
    """What serves a model, with nothing in front of it. Only `bot.llm.budgeted` calls one."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        tools: OfferedTools = NO_TOOLS,
        on_usage: Callable[[Usage], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer piece by piece and how it ended, and tell its cost, where the provider does.

        Raises `ChatModelError`, also after some pieces.
        """

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`. See `compaction.ports.Completion`."""
