"""The interface of speech-to-speech, and the values that pass through it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from voice.audio import Pcm
    from voice.errors import RealtimeError
    from voice.queue_figures import QueueFigures

# The Realtime protocol's sample rate in both directions: mono int16, little endian.
REALTIME_RATE_HZ = 24_000


class ItemRole(StrEnum):
    """The author of a text item."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ConversationItem:
    """A text item of the conversation. `id`: chosen by the caller, at most 32 characters, unique in a session."""

    id: str
    role: ItemRole
    text: str


@dataclass(frozen=True, slots=True)
class RealtimeTool:
    """A function the model may call. `parameters`: its JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Briefing:
    """The content of a new session: instructions, the recent turns as items, and tools. `languages`: the codes of those
    that people speak; none: any.
    """

    instructions: str
    items: tuple[ConversationItem, ...] = ()
    tools: tuple[RealtimeTool, ...] = ()
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RealtimeToolCall:
    """A function call by the model. `arguments`: JSON as the model wrote it."""

    call_id: str
    name: str
    arguments: str


# Runs a tool call and returns the text for the model; failures are returned as text too.
ToolRunner = Callable[[RealtimeToolCall], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class InputTranscript:
    """The transcription of one input, and its conversation items. `text` None: the model heard the input, but there is
    no transcription.
    """

    text: str | None
    item_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplyPiece:
    """A piece of a reply as it arrives: sound at 24 kHz, words, or both. Words may arrive before their sound."""

    item_id: str
    pcm: Pcm | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class ReplyResumed:
    """The reply continues in the next conversation, because the connection was lost. Words that came and are not in
    `said` are not spoken. There is one for each conversation that begins while a reply is requested and not over.

    `said`: the words of the sound that came, from the reply's beginning; empty if none came. `item_ids`: the items of
    the next conversation that hold these words.
    """

    said: str
    item_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RealtimeFailed:
    """The session was given up, and the room now replies with the other models. `error`: its message has the remedy. It
    is tried again only if the error is `retryable`; otherwise somebody has to fix something first.
    """

    error: RealtimeError


@dataclass(frozen=True, slots=True)
class RealtimeRestored:
    """The session that was given up works again. It has been sent everything that was said meanwhile."""


@dataclass(frozen=True, slots=True)
class RealtimeRenewed:
    """The session was opened again. `reason`: expiring, reconfigured, expired or lost."""

    reason: str


RealtimeNews: TypeAlias = RealtimeFailed | RealtimeRestored | RealtimeRenewed


@dataclass(frozen=True, slots=True, kw_only=True)
class RealtimeLimits:
    """How long to wait for the model, and how many failures to accept. The room uses the defaults; tests vary them."""

    # Seconds to wait for a transcription. After that the local recogniser is used.
    hear_timeout_s: float = 8.0
    # Seconds to wait for the first or the next sound of a reply; anew when a tool is called, and when it has answered.
    reply_timeout_s: float = 10.0
    # Failures in a row after which the room replies without the model.
    failures_before_fallback: int = 3
    # Seconds after which the session is renewed, with the summary and the recent turns: a minute less than OpenAI
    # allows.
    session_s: float = 3_540.0
    # Seconds after which a model that was given up is tried again. After a short disturbance of the service this costs
    # a minute. The time doubles each time that the model fails again before its first reply, up to half an hour.
    retry_after_s: float = 60.0


REALTIME_LIMITS = RealtimeLimits()


class Realtime(Protocol):
    """One room's speech-to-speech session. Events that cannot be sent yet are kept."""

    @property
    def usable(self) -> bool:
        """Return whether the session works: it was never given up, or it has recovered."""

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return what waits to be sent to the model, and what of its reply waits to be spoken."""

    def send_audio(self, pcm: Pcm, *, speakers: str) -> Awaitable[InputTranscript]:
        """Send `pcm` (mono int16, 16 kHz) to the model, after the text `speakers` that names the people who speak.

        Sending starts at once. Await the result for the transcription. Both raise `RealtimeError`.
        """

    def reply(self) -> AsyncGenerator[ReplyPiece | ReplyResumed, None]:
        """Request a reply and yield it as it arrives. Raises `RealtimeError`, perhaps after some pieces."""

    def interrupt(self, heard_ms: int) -> bool:
        """Cut the reply off after `heard_ms` of its sound, and report this to the model. Works after the last piece
        too.

        Returns whether the reply's items hold what was heard. A reply that was resumed has no items any more, because
        only sound can be shortened, and one that was over before this conversation began has none in it: the caller
        adds what was heard as text.
        """

    def add_item(self, item: ConversationItem) -> None:
        """Add a text item to the conversation."""

    def delete_items(self, item_ids: Iterable[str]) -> None:
        """Delete items of the conversation."""

    def delete_tool_calls(self) -> None:
        """Delete the calls of tools and their results from the conversation."""

    def set_instructions(self, instructions: str) -> None:
        """Change the instructions."""

    def set_tools(self, tools: Iterable[RealtimeTool]) -> None:
        """Change the tools that the model may call."""
