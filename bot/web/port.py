"""What the page that shares a screen talks to; `bot.screen` implements it, tests fake it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bot.errors import BotError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


class NotAdmittedError(BotError):
    """A page may not share: `reason` is one word for the page, the message a plain sentence for the person."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


class PageClosedError(Exception):
    """The page's line is over: its share has ended, or another page has taken it over."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """What a page is told when it is let in. `resume_secret`: with it the page may come back; `sharing`: its share
    still runs; `reading`: who looks at the pictures, a plain sentence; `trouble`: what keeps them from being read."""

    who: str
    room: str
    server: str
    bot: str
    reading: str
    resume_secret: str
    sharing: bool
    trouble: str = ""


class PageConnection(Protocol):
    """One open connection of one page. Whoever opened it calls `hung_up` at its end."""

    @property
    def welcome(self) -> Welcome:
        """Return what the page is told first."""

    def start(self, surface: str) -> None:
        """The person shares now, or shares something else; `surface` is what the browser calls it. Raises
        `PageClosedError`."""

    async def picture(self, data: bytes) -> str:
        """Take a picture; return `taken`, `dropped` or why it was refused. Raises `PageClosedError`."""

    async def stop(self) -> None:
        """The person has stopped sharing."""

    def messages(self) -> AsyncIterator[Mapping[str, object]]:
        """Yield what the page is to be told; ends when the line is over, after having said why."""

    def hung_up(self) -> None:
        """The connection is gone; the share waits a while for the page to come back."""


class SharePageHost(Protocol):
    """Who lets pages in. Both raise `NotAdmittedError`."""

    async def admit(self, token: str) -> PageConnection:
        """Let in who comes with a link."""

    async def readmit(self, resume_secret: str) -> PageConnection:
        """Let in a page whose connection broke."""
