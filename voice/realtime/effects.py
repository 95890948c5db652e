"""The effects of a server event in the Realtime protocol: an event to send, or something that happened.

More of the reply is a `ReplyPiece`, and a tool that the model calls a `RealtimeToolCall`; answer it with
`RealtimeProtocol.tool_output`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from voice.realtime.port import RealtimeToolCall, ReplyPiece

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voice.realtime.wire import ClientEvent


class ResponseStatus(StrEnum):
    """How a reply ended."""

    COMPLETE = "complete"
    CANCELLED = "cancelled"
    FAILED = "failed"


def status_of(response: Mapping[str, Any]) -> ResponseStatus:
    """Return how a response of the server ended."""
    match response.get("status"):
        case "failed":
            return ResponseStatus.FAILED
        case "cancelled":
            return ResponseStatus.CANCELLED
    return ResponseStatus.COMPLETE


@dataclass(frozen=True, slots=True)
class SendEvent:
    """Send an event to the server."""

    event: ClientEvent


@dataclass(frozen=True, slots=True)
class InputTranscribed:
    """The server transcribed input `input_id` (item `item_id`) as `text`. None: it could not transcribe the input."""

    input_id: int
    item_id: str
    text: str | None


@dataclass(frozen=True, slots=True)
class ResponseEnded:
    """The reply ended. `code` names the failure, if any."""

    how: ResponseStatus
    code: str = ""


@dataclass(frozen=True, slots=True)
class SessionReady:
    """The server accepted the configuration."""


@dataclass(frozen=True, slots=True)
class ConfigurationRefused:
    """The server did not accept the configuration: it would answer without instructions, and by itself.

    `setting`: what it objects to, in the protocol's words; empty: unknown. `mistaken`: a retry cannot help.
    """

    code: str
    setting: str
    mistaken: bool


@dataclass(frozen=True, slots=True)
class ToolRefused:
    """The server did not take a tool, which is not offered any more. `begins_anew`: it refused the whole configuration
    for it, so another connection has to be opened.
    """

    tool: str
    begins_anew: bool


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """The server ended the session because it was too old."""


@dataclass(frozen=True, slots=True)
class ServerError:
    """The server reported an error, but the session continues."""

    code: str


Effect: TypeAlias = (
    SendEvent
    | InputTranscribed
    | ReplyPiece
    | ResponseEnded
    | RealtimeToolCall
    | SessionReady
    | ConfigurationRefused
    | ToolRefused
    | SessionExpired
    | ServerError
)
