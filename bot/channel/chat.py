"""The text chat beside a voice channel, as tools see it; `bot.discord.chat` implements it, tests fake it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bot.errors import BotError

if TYPE_CHECKING:
    from collections.abc import Sequence


class ChatError(BotError):
    """The chat could not be read or written. The message is a plain sentence with the remedy."""


@dataclass(frozen=True, slots=True)
class DroppedFile:
    """A file that somebody dropped into the chat. `at`: UTC epoch seconds. `content_type` is what Discord guesses."""

    id: int
    name: str
    size_bytes: int
    content_type: str
    by: str
    at: float


class Chat(Protocol):
    """One room's chat: the voice channel's own, and the text channel its notices go to. Nothing else is reached."""

    async def files(self, *, most: int) -> Sequence[DroppedFile]:
        """Return the newest files, newest first. Raises `ChatError`."""

    async def fetch(self, file: DroppedFile, *, max_bytes: int) -> bytes:
        """Return a file's content. Raises `ChatError`, also where it is larger than `max_bytes`."""

    async def post(self, text: str) -> None:
        """Write into the chat, mentioning nobody. Raises `ChatError`."""
