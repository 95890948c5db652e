"""How a local realtime server behaves, the functions that recognise, answer and speak for it, and the items of its
conversations. Only values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray


class RealtimeMode(StrEnum):
    """How the server behaves."""

    ANSWER = "answer"
    WRONG_KEY = "wrong_key"  # refuses the connection
    BROKEN = "broken"  # accepts, then closes the connection at once
    GARBAGE = "garbage"  # something that is not JSON
    SILENT = "silent"  # accepts the connection and sends nothing
    STALL = "stall"  # a response begins and nothing follows
    CUT = "cut"  # the connection drops in the middle of an answer
    GONE = "gone"  # likewise, and new connections are refused
    FAIL_RESPONSE = "fail_response"  # response.done with status failed
    RATE_LIMITED = "rate_limited"  # likewise, over quota
    DEAF = "deaf"  # input transcription fails
    UNWRITTEN = "unwritten"  # input transcription never ends


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function call of the model."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """Everything that the model knows when it answers. `items`: (role or type, text), in order."""

    instructions: str
    items: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    number: int


ResponseContent: TypeAlias = "str | FunctionCall"


@dataclass(frozen=True, slots=True)
class RealtimeEngines:
    """The functions that recognise, answer and speak for the server. All audio is mono int16 at 24 kHz."""

    recognise: Callable[[NDArray[np.int16]], Awaitable[str]]
    answer: Callable[[ResponseRequest], Awaitable[ResponseContent]]
    speak: Callable[[str], Awaitable[NDArray[np.int16]]]


@dataclass(slots=True)
class RealtimeBehaviour:
    """How the server behaves. The values may be changed while the server runs.

    `expires_in_response`: the session expires in the middle of the audio of the server's Nth response, counted from 1.
    """

    mode: RealtimeMode = RealtimeMode.ANSWER
    expires_in_response: int | None = None


@dataclass(slots=True)
class SharedState:
    """The state that all sessions of one server share.

    `received`: every client event. `asked`: the request behind each response. `tools`: the name and the result of every
    tool call.
    """

    engines: RealtimeEngines
    behaviour: RealtimeBehaviour
    received: list[dict[str, Any]] = field(default_factory=list)
    asked: list[ResponseRequest] = field(default_factory=list)
    tools: list[tuple[str, str]] = field(default_factory=list)


# The content type that a message of each role has.
CONTENT_TYPES = {"user": "input_text", "system": "input_text", "assistant": "output_text"}


class ClientError(Exception):
    """The client made a mistake. The server sends an `error` event, and the session continues."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


@dataclass(slots=True)
class ServerItem:
    """One item of the conversation. For spoken input, `text` is complete once `transcribed` is set."""

    id: str
    type: str
    role: str = ""
    text: str = ""
    spoken: bool = False
    transcribed: asyncio.Event = field(default_factory=asyncio.Event)
    # How much audio of an answer was sent, in milliseconds.
    audio_ms: int = 0
    call_id: str = ""
    name: str = ""

    def as_json(self, *, status: str = "completed") -> dict[str, Any]:
        """Return the item as the protocol sends it, without audio."""
        head = {"id": self.id, "object": "realtime.item", "type": self.type, "status": status}
        if self.type == "function_call":
            return {**head, "call_id": self.call_id, "name": self.name, "arguments": self.text}
        if self.type == "function_call_output":
            return {**head, "call_id": self.call_id, "output": self.text}
        content: dict[str, Any] = {"type": CONTENT_TYPES[self.role], "text": self.text}
        if self.spoken:
            content = {"type": CONTENT_TYPES[self.role].replace("text", "audio"), "transcript": self.text or None}
        return {**head, "role": self.role, "content": [content] if self.text or self.spoken else []}
