"""What a room's voice connection asks of the gateway process and is told by it: op 4, and Discord's two answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bot.remote.messages.frames import Notice, Request
from bot.remote.messages.wire_error import WireError  # noqa: TC001 - pydantic reads the annotation


@dataclass(frozen=True, slots=True)
class VoiceFacts:
    """The channel at the main gateway, as `voice.transport.gateway.MainGateway` describes it.

    `entry`: why the bot may not join, or None. `attached`, `forgotten`: of the connection of the room that is told.
    """

    user_id: int
    guild_name: str
    channel_name: str
    bitrate_bps: int
    is_open: bool
    attached: bool
    forgotten: bool
    entry: WireError | None


@dataclass(frozen=True, slots=True)
class VoiceUpdate(Notice):
    """One of Discord's answers. `number`: rises by one with each. `data`: as Discord sent it."""

    number: int
    kind: Literal["state", "server"]
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class VoiceAttached:
    """`run`: tells one gateway process from another, which begins its numbers anew. `updates`: what the room lacks."""

    run: str
    updates: tuple[VoiceUpdate, ...]


@dataclass(frozen=True, slots=True)
class AttachVoice(Request[VoiceAttached]):
    """Pass Discord's answers on to this room from now on. Raises `LinkError`.

    `claim`: of the room. `run`, `seen`: of which process it knows answers, and the number of the last one; 0: none, and
    a pair that still lets the bot into the channel is wanted. `known`: the last answers that a room goes on with.
    """

    claim: int
    run: str = ""
    seen: int = 0
    known: tuple[VoiceUpdate, ...] = ()


@dataclass(frozen=True, slots=True)
class DetachVoice(Notice):
    """Pass on nothing more."""


@dataclass(frozen=True, slots=True)
class RequestVoiceState(Request[bool]):
    """Ask Discord for another voice state (op 4); False: a newer claim has the server, and nothing was asked."""

    claim: int
    channel_id: int | None
    self_mute: bool
    self_deaf: bool


@dataclass(frozen=True, slots=True)
class IsInChannel(Request[bool]):
    """Ask Discord whether the bot is in the channel."""
