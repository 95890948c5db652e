"""What the Realtime protocol's state machine makes of a server event: something to send, or news. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from voice.audio import Pcm
    from voice.realtime.port import RealtimeToolCall
    from voice.realtime.wire import ClientEvent


class ResponseStatus(StrEnum):
    """How an answer ended."""

    COMPLETE = "complete"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SendEvent:
    """Send this to the server."""

    event: ClientEvent


@dataclass(frozen=True, slots=True)
class InputTranscribed:
    """Input `input_id` is item `item_id` and means `text`; None: the server could not tell."""

    input_id: int
    item_id: str
    text: str | None


@dataclass(frozen=True, slots=True)
class AudioDelta:
    """Sound of the answer."""

    item_id: str
    pcm: Pcm


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Words of the answer."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ResponseEnded:
    """The answer ended; `code` names the failure."""

    how: ResponseStatus
    code: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallRequested:
    """A tool is wanted; `tool_output` owes its result."""

    call: RealtimeToolCall


@dataclass(frozen=True, slots=True)
class SessionReady:
    """The session took its configuration."""


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """The session is over, as the server says."""


@dataclass(frozen=True, slots=True)
class ServerError:
    """The server reports an error; the session goes on."""

    code: str
    message: str


Effect: TypeAlias = (
    SendEvent
    | InputTranscribed
    | AudioDelta
    | TextDelta
    | ResponseEnded
    | ToolCallRequested
    | SessionReady
    | SessionExpired
    | ServerError
)
