"""The ports of language models: `ChatModel` for the brain, `ModelEndpoint` for an adapter that calls a server.

`bot.llm.budgeted` stands between them; every reply and every summary passes through it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from bot.errors import BotError
from bot.texts.text import OperatorText, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from compaction.payload import MessageToolCall, PayloadPart
    from compaction.ports import CompletionAnswer, CompletionRequest


class ChatRole(StrEnum):
    """The role of a message, as chat APIs name it."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation with a model.

    `tool_calls`: the calls of an assistant message. `tool_call_id`, `name`: the call that a tool message answers, and
    its tool. `part`: the part of the payload that it was made of, if any: what is known of it beyond its words.
    """

    role: ChatRole
    content: str
    tool_calls: tuple[MessageToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    part: PayloadPart | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a call as the provider reports them; None if it does not."""

    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool as the model sees it. `parameters`: a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools offered in one call. `callable_now` False: the model sees them, but must answer in text."""

    offers: tuple[ToolOffer, ...] = ()
    callable_now: bool = True


NO_TOOLS = OfferedTools()


class FinishReason(StrEnum):
    """Why an answer ended. Values as in the chat API."""

    STOP = "stop"
    # Cut off by the output limit: the last sentence is incomplete.
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    # The provider's filter stopped it.
    FILTERED = "content_filter"


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The end of a streamed answer. `calls`: the tool calls of the model, each with its own id.

    Names and arguments are bounded in size but otherwise unchecked.
    """

    reason: FinishReason
    calls: tuple[MessageToolCall, ...] = ()


# A stream yields non-empty pieces of the answer, and its end last.
StreamItem: TypeAlias = str | StreamEnd
# An endpoint also tells what the call has cost so far, if its provider does; the last time counts.
EndpointItem: TypeAlias = StreamItem | Usage


class ChatModelError(BotError):
    """The language model failed. The message is a plain sentence with the remedy.

    `retryable`: it may work again by itself (busy, slow, unreachable); otherwise a person must act (wrong key, unknown
    model). `timeout`: the model was too slow.
    """

    def __init__(self, message: str, *, retryable: bool, timeout: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.timeout = timeout


# The failure of an answer that ends without a word, though the endpoint sent something.
NO_WORDS = OperatorText(
    "The language model's answer had no words to say aloud, only thoughts, code or a tool call. Ask again. If it "
    "thinks before it answers, switch that off or raise llm.max_output_tokens.",
    Text("The language model gave me no words to say. Ask again."),
)
# What people read of a model that is away.
NO_ANSWER = Text("The language model does not answer at the moment.")


class FilteredError(ChatModelError):
    """The provider's filter stopped the prompt or the answer: the model is there, and may answer other words."""

    def __init__(self) -> None:
        super().__init__(Text("A filter of the language model stopped my answer. Ask in other words."), retryable=True)


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
        on_sent: Callable[[Sequence[PayloadPart]], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer piece by piece, then its end.

        `on_sent`: gets the parts of each call as they are sent, with what the budget cut or left out.
        `enforce_budget` False sends the messages untrimmed; None: as the settings say. A model that can't call tools
        answers without them. Raises `ChatModelError`, also after some pieces, and `ContextOverflowError` before the
        first. Close it (`aclosing`) to end the call early.
        """


class ModelEndpoint(Protocol):
    """An adapter that calls a model's server. Only `bot.llm.budgeted` uses it."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        tools: OfferedTools = NO_TOOLS,
    ) -> AsyncGenerator[EndpointItem, None]:
        """Yield the answer piece by piece, then its end. Raises `ChatModelError`, also after some pieces."""

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`. See `compaction.ports.Completion`."""
