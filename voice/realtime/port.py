"""What a room asks of speech-to-speech, and the values that pass: what it is told, what it hears and says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from voice.audio import Pcm

# What the Realtime protocol carries in both directions: mono int16, little endian.
REALTIME_RATE_HZ = 24_000


class ItemRole(StrEnum):
    """Whose words a text item holds."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ConversationItem:
    """A conversation item in writing. `id`: at most 32 characters, chosen by whoever tells it, once a session."""

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
    """What a fresh session is told before anything is said in it: instructions, the window as items, and what it may
    call."""

    instructions: str
    items: tuple[ConversationItem, ...] = ()
    tools: tuple[RealtimeTool, ...] = ()


@dataclass(frozen=True, slots=True)
class RealtimeToolCall:
    """The model's wish to call a function. `arguments`: JSON, as the model wrote it."""

    call_id: str
    name: str
    arguments: str


# Carries a tool call out and returns what the model is told of it; failures are told as text too.
ToolRunner = Callable[[RealtimeToolCall], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class InputTranscript:
    """What the session made of one input, and the conversation items that hold it. `text` None: it can't tell, though
    the model has heard it."""

    text: str | None
    item_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplyPiece:
    """A piece of an answer as it comes: sound at 24 kHz, words, or both. Words run ahead of the sound at most."""

    item_id: str
    pcm: Pcm | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class RealtimeFailed:
    """The session is given up; `sentence` is plain and has the remedy. The room answers otherwise now.

    `lasting`: it is not tried again, because somebody has to mend something first.
    """

    sentence: str
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class RealtimeRestored:
    """The session that was given up is well again, with everything that was said meanwhile."""


@dataclass(frozen=True, slots=True)
class RealtimeRenewed:
    """The session has been opened anew: `reason` is one word (expiring, expired, lost)."""

    reason: str


RealtimeNews: TypeAlias = RealtimeFailed | RealtimeRestored | RealtimeRenewed


class Realtime(Protocol):
    """One room's speech-to-speech session. Methods that return at once keep what cannot be sent yet."""

    @property
    def usable(self) -> bool:
        """Return whether it has not been given up, or is back."""

    def hear(self, pcm: Pcm, *, speakers: str) -> Awaitable[InputTranscript]:
        """Say `pcm` (mono int16, 16 kHz) to the model after `speakers`, who says it, in writing. It is on its way when
        this returns; await what was heard. Both raise `RealtimeError`."""

    def reply(self) -> AsyncGenerator[ReplyPiece, None]:
        """Let the model answer, and yield the answer as it comes. Raises `RealtimeError`, also after some pieces."""

    def interrupt(self, heard_ms: int) -> None:
        """Break the answer off; `heard_ms` of its sound were heard, the rest is unsaid. Also after its last piece."""

    def tell(self, told: ConversationItem) -> None:
        """Put something written into the conversation."""

    def forget(self, item_ids: Iterable[str]) -> None:
        """Take items out of the conversation."""

    def instruct(self, instructions: str) -> None:
        """Change the instructions."""

    def offer(self, tools: Iterable[RealtimeTool]) -> None:
        """Change what the model may call."""
