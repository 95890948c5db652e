"""What a room asks of the voice channel it lives in; `bot.discord` implements it, tests fake it.

A room takes its voice connection from here, so that it needs to know nothing of Discord's library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from bot.channel.chat import Chat
    from voice.audio import Pcm
    from voice.transport.audio_events import AudioEvent


@dataclass(frozen=True, slots=True)
class Person:
    """A member of the channel, as Discord shows them now."""

    id: int
    name: str
    is_bot: bool
    # May manage the server.
    is_moderator: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """Somebody came into the channel or left it. Never the bot itself."""

    person: Person
    joined: bool


class FrameSource(Protocol):
    """Where a voice connection gets what it sends: mono int16, 48 kHz, 960 samples a frame."""

    def next_frame(self) -> Pcm | None:
        """Return the next 20 ms, or None for silence. Called from the connection's thread."""


class Link(Protocol):
    """An open voice connection."""

    async def lost(self) -> str:
        """Wait until the connection is lost for good; return why, a plain sentence. Short losses mend themselves."""

    @property
    def removed(self) -> bool:
        """Return whether it is lost because somebody took the bot out of the channel, and no fault of the line's."""

    @property
    def state(self) -> str:
        """Return the connection's state in one word."""

    @property
    def counters(self) -> Mapping[str, int]:
        """Return packets by what became of them, since the process began to listen here."""


class Place(Protocol):
    """One voice channel of one guild, and the text channel beside it."""

    @property
    def guild_id(self) -> int:
        """Return the guild."""

    @property
    def channel_id(self) -> int:
        """Return the voice channel."""

    @property
    def name(self) -> str:
        """Return the voice channel's name, for sentences."""

    @property
    def guild_name(self) -> str:
        """Return the guild's name: people say it."""

    @property
    def chat(self) -> Chat:
        """Return the text chat, for tools."""

    def company(self) -> Sequence[Person]:
        """Return who is in the channel now, without the bot itself."""

    async def write(self, sentence: str) -> None:
        """Write into the text channel; a failure is logged and swallowed, because nothing depends on it."""

    def connect(
        self, source: FrameSource, sink: Callable[[Sequence[AudioEvent]], None], *, excludes: Callable[[int], bool]
    ) -> AbstractAsyncContextManager[Link]:
        """Enter the channel, hand on what is heard, and speak `source` into it. Raises `LinkError`.

        `sink` is called on the event loop with each batch and must be quick. `excludes` says who is never heard, not
        even decrypted, besides bots; it is called from the connection's thread at every packet.
        """
