"""What a voice connection tells of itself. `at`: monotonic seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from voice.errors import VoiceConnectionError


@dataclass(frozen=True, slots=True)
class Connected:
    """The connection is up. `again` is true after an interruption."""

    at: float
    again: bool


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection is down. `final`: the bot will not reconnect. `reason`: its message is a plain sentence."""

    at: float
    reason: VoiceConnectionError
    final: bool


@dataclass(frozen=True, slots=True)
class Recovering:
    """The encrypted group or the whole connection is being restored."""

    at: float
    reason: VoiceConnectionError


@dataclass(frozen=True, slots=True)
class Deaf:
    """`user_id` was announced as speaking, but nothing was received."""

    at: float
    user_id: int


ConnectionEvent: TypeAlias = Connected | Lost | Recovering | Deaf
