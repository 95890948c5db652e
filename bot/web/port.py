"""The port of the web server: what share pages talk to. `bot.screen.screens` implements it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bot.errors import BotError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from bot.texts.text import Text


class NotAdmittedError(BotError):
    """A page may not share. `reason`: one word for the page. The message is a plain sentence for the person."""

    def __init__(self, reason: str, sentence: Text) -> None:
        super().__init__(sentence)
        self.reason = reason


class PageClosedError(Exception):
    """The connection is over: its share has ended, or the page has opened another connection."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The first message to an admitted page. `resume_secret`: lets the page reconnect. `sharing`: its share is still
    running. `reading`: who sees the pictures, a plain sentence. `trouble`: why they can't be read now, or empty.
    """

    who: str
    room: str
    server: str
    bot: str
    reading: Text
    resume_secret: str
    sharing: bool
    trouble: str = ""


class PageConnection(Protocol):
    """One connection of a share page. The code that opened it must call `disconnected` at its end."""

    @property
    def welcome(self) -> Welcome:
        """Return the first message for the page."""

    @property
    def link(self) -> str:
        """Return what identifies the page's link; the same for every connection of that page."""

    def start(self, surface: str) -> None:
        """Begin the share, or switch to another screen. `surface`: the browser's `displaySurface`. Raises
        `PageClosedError`."""

    async def picture(self, data: bytes) -> None:
        """Take a picture. The message `refused` tells of one that was not taken. Raises `PageClosedError`."""

    async def stop(self) -> None:
        """End the share."""

    def messages(self) -> AsyncIterator[Mapping[str, object]]:
        """Yield messages for the page. The last one says why the connection ends."""

    def disconnected(self) -> None:
        """Note that the connection is closed. The share waits for a while for the page to reconnect."""


class SharePageHost(Protocol):
    """Admits share pages. Both methods raise `NotAdmittedError`."""

    async def admit(self, token: str) -> PageConnection:
        """Admit a page that was opened with a link."""

    async def readmit(self, resume_secret: str) -> PageConnection:
        """Admit a page again whose connection was lost."""
