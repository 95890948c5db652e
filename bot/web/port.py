"""The ports of the web server: what share pages talk to, which `bot.screen.screens` implements, and the dashboard's
pages, which `bot.dashboard` implements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from bot.errors import BotError
from bot.texts.catalogue import ENGLISH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractContextManager

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


Json: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who looks at the dashboard. `user_id`: theirs on Discord, by which people are told apart; None: the
    operator, who used a login link.
    """

    name: str
    user_id: int | None = None

    @property
    def is_operator(self) -> bool:
        return self.user_id is None


OPERATOR: Final = Viewer("Operator")


class NotShownError(BotError):
    """There is nothing to show: it does not exist, or this viewer may not see it. The message does not tell which."""


class AccessNotToldError(BotError):
    """Discord has not said what this viewer may see. The message is a plain sentence for them."""


class LoginRefusedError(BotError):
    """Somebody could not be logged in. The message is a plain sentence for them."""


@dataclass(frozen=True, slots=True)
class LoginStart:
    """The beginning of a login with Discord. `url`: where the browser goes. `proof`: the browser's cookie meanwhile."""

    url: str
    proof: str


class LiveFeed(Protocol):
    """What one open page is told of the rooms as it happens."""

    async def next(self) -> str | None:
        """Wait for the next message, as a whole server-sent event. None: the feed is over, and the page may ask anew.

        *Cancellation*: loses no message.
        """

    def end(self) -> None:
        """End the feed: `next` returns None."""


class Dashboard(Protocol):
    """What the dashboard shows. Every method that reads raises `NotShownError`, `AccessNotToldError` and `StoreError`.

    What is returned may have `Text`s in it, which the page gets in its language.
    """

    @property
    def discord_login(self) -> bool:
        """Return whether people can log in with Discord."""

    @property
    def shards(self) -> str:
        """Return which shards of the bot this process serves; empty if it serves every server."""

    def start_login(self, redirect_uri: str) -> LoginStart:
        """Begin a login with Discord. Raises `LoginRefusedError`."""

    async def finish_login(self, proof: str, state: str, code: str) -> Viewer:
        """Return who came back from Discord. Raises `LoginRefusedError`."""

    async def rooms(self, viewer: Viewer) -> Json:
        """Return the open rooms of this process."""

    async def room(self, viewer: Viewer, session_id: str) -> Json:
        """Return everything that the page shows of one open room."""

    def follow(
        self, viewer: Viewer, last_event_id: str, *, language: str = ENGLISH
    ) -> AbstractContextManager[LiveFeed]:
        """Follow the open rooms. `last_event_id`: the last event that the page got, or empty. `language`: that of the
        page.
        """

    async def sessions(self, viewer: Viewer, *, before: float | None) -> Json:
        """Return stored sessions, latest first. `before`: only those that began earlier, in UTC epoch seconds."""

    async def session(self, viewer: Viewer, session_id: str, *, first: int | None) -> Json:
        """Return a stored session with some of its turns from turn `first` on, or its last ones."""

    async def search(self, viewer: Viewer, query: str) -> Json:
        """Return what was said about something, best first."""

    async def replies(self, viewer: Viewer, session_id: str) -> Json:
        """Return the replies of a session of which it is known what the model saw."""

    async def reply(self, viewer: Viewer, session_id: str, turn: int) -> Json:
        """Return what the model saw for the reply to a turn."""
