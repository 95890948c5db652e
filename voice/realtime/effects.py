"""What the Realtime protocol's state machine makes of a server event: something to send, or news. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from voice.audio import Pcm
    from voice.realtime.port import ToolCall
    from voice.realtime.wire import ClientEvent


class Ending(StrEnum):
    """How an answer ended."""

    COMPLETE = "complete"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Send:
    """Send this to the server."""

    event: ClientEvent


@dataclass(frozen=True, slots=True)
class Heard:
    """Input `input_id` is item `item_id` and means `text`; None: the server could not tell."""

    input_id: int
    item_id: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Sound:
    """Sound of the answer."""

    item_id: str
    pcm: Pcm


@dataclass(frozen=True, slots=True)
class Words:
    """Words of the answer."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The answer ended; `code` names the failure."""

    how: Ending
    code: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tool is wanted; `tool_output` owes its result."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Ready:
    """The session took its configuration."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The session is over, as the server says."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The server reports an error; the session goes on."""

    code: str
    message: str


Effect: TypeAlias = Send | Heard | Sound | Words | Ended | Wanted | Ready | Expired | Trouble
