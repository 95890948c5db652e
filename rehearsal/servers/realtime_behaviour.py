"""How a local realtime server behaves, and the mind that is handed to it. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import numpy as np
    from numpy.typing import NDArray


class RealtimeMode(StrEnum):
    """How the server behaves, until told otherwise."""

    ANSWER = "answer"
    WRONG_KEY = "wrong_key"  # refuses the connection
    BROKEN = "broken"  # accepts, then hangs up without a word
    GARBAGE = "garbage"  # something that is not JSON
    SILENT = "silent"  # takes the connection and says nothing
    STALL = "stall"  # a response begins and nothing follows
    CUT = "cut"  # the connection drops in the middle of an answer
    GONE = "gone"  # likewise, and no new one is taken
    FAIL_RESPONSE = "fail_response"  # response.done with status failed
    RATE_LIMITED = "rate_limited"  # likewise, over quota
    DEAF = "deaf"  # input transcription fails
    UNWRITTEN = "unwritten"  # input transcription never ends


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The model's wish to call a function."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """What a response is made of: everything the session's model knows. `items`: (role or type, text), in order."""

    instructions: str
    items: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    number: int


ResponseContent: TypeAlias = "str | FunctionCall"


@dataclass(frozen=True, slots=True)
class RealtimeEngines:
    """The server's mind. Sound is mono int16 at 24 kHz on both sides."""

    recognise: Callable[[NDArray[np.int16]], Awaitable[str]]
    answer: Callable[[ResponseRequest], Awaitable[ResponseContent]]
    speak: Callable[[str], Awaitable[NDArray[np.int16]]]


@dataclass(slots=True)
class RealtimeBehaviour:
    """How the server behaves; may be changed while it runs.

    `expires_after_s`: a session's length, None for no end. `expires_in_response`: the session ends in the middle
    of the sound of its server's Nth response, counted from 1. `limit_minutes`: what the error says it was.
    """

    mode: RealtimeMode = RealtimeMode.ANSWER
    expires_after_s: float | None = None
    expires_in_response: int | None = None
    limit_minutes: int = 60


@dataclass(slots=True)
class SharedState:
    """What the sessions of one server share.

    `received`: every client event; `asked`: every response's question; `tools`: every tool that was carried out, with
    what was told of it.
    """

    engines: RealtimeEngines
    behaviour: RealtimeBehaviour
    received: list[dict[str, Any]] = field(default_factory=list)
    asked: list[ResponseRequest] = field(default_factory=list)
    tools: list[tuple[str, str]] = field(default_factory=list)
