"""The data that a client needs to connect to a voice server: Discord's two gateway events, combined and checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rehearsal.errors import PersonError

# Makes the member join or rejoin. Returns `{"state": VOICE_STATE_UPDATE data, "server": VOICE_SERVER_UPDATE data}`, as
# `POST /members/{user_id}/join` of the control API does.
JoinChannel: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
# Makes the member leave the channel.
LeaveChannel: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class VoiceServerAccess:
    """The address and the credentials with which one member connects to a voice server.

    `endpoint`: host and port, without a scheme.
    """

    user_id: int
    guild_id: int
    channel_id: int
    session_id: str
    endpoint: str
    token: str

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> VoiceServerAccess:
        """Read the two events. Raises `PersonError` when a field is missing (Discord may send an endpoint that is
        null).
        """
        try:
            state, server = answer["state"], answer["server"]
            return cls(
                user_id=int(state["user_id"]),
                guild_id=int(server["guild_id"]),
                channel_id=int(state["channel_id"]),
                session_id=str(state["session_id"]),
                endpoint=_text(server["endpoint"]),
                token=_text(server["token"]),
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise PersonError(f"The local Discord's answer to a join lacks a field: {exc!r}.") from exc

    def __repr__(self) -> str:
        """Return a text without the token."""
        return f"VoiceServerAccess(user_id={self.user_id}, channel_id={self.channel_id}, endpoint={self.endpoint!r})"


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("an empty endpoint or token")
    return value
