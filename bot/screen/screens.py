"""The shared screens of all rooms: creates links and admits share pages, which talk to a `ScreenPageConnection`.

`bot.screen.screen_room` handles the shares within a room.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from bot.screen.messages import (
    END_MESSAGES,
    NO_ROOM_TO_SHARE_IN,
    TOO_MANY,
    NotAdmittedError,
    PageClosedError,
    ScreenError,
    ShareEnd,
)
from bot.screen.screen_room import MOST_SHARES, RoomScreens
from bot.screen.share import TAKEN
from bot.texts.text import Text, sentence_of
from bot.tuning import UNTUNED
from voice.screen.share_link import LinkRefusal, LinkRefusedError, ShareLinks
from voice.secret_digest import digest_of_secret

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from bot import events
    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.llm.model_calls import Payer
    from bot.screen.readers import ScreenReaders
    from bot.screen.sharer import Sharer
    from bot.words import Words
    from compaction.model import SessionId
    from compaction.session import SessionTimeline

log = structlog.get_logger()

# Seconds within which a link has to be opened.
LINK_VALID_S = 300.0
_RESUME_SECRET_BYTES = 32
REFUSALS = {
    LinkRefusal.UNKNOWN: Text(
        "This link is not from me, or I was restarted after I made it. Type /watch start in Discord for a new link."
    ),
    LinkRefusal.EXPIRED: Text("This link is too old. Type /watch start in Discord for a new link."),
    LinkRefusal.USED: Text(
        "Somebody has already used this link, and each link works only once. Type /watch start in "
        "Discord for a new link."
    ),
}
_ENDED = Text("You have stopped sharing with this link. Type /watch start in Discord for a new link.")
_CLOSED = Text("I have left that voice channel. Type /watch start in Discord for a new link.")
_ABSENT = Text("You are no longer in the voice channel. Join it, then type /watch start again.")


class Screens:
    """The shared screens of one process. `reading`: who sees the pictures, a plain sentence. `enabled`: whether people
    may share. `remark_every_s`: least seconds between two remarks that nobody asked for. Not thread-safe.
    """

    def __init__(
        self,
        readers: ScreenReaders,
        *,
        clock: Clock,
        bot_name: str,
        reading: Text,
        enabled: bool = True,
        remark_every_s: float = UNTUNED.screen_remark_every_s,
        most_shares: int = MOST_SHARES,
    ) -> None:
        self.enabled = enabled
        self.remark_every_s = remark_every_s
        self.most_shares = most_shares
        self.readers = readers
        self.clock = clock
        self._bot_name = bot_name
        self._reading = reading
        self._links = ShareLinks(valid_s=LINK_VALID_S)
        self._rooms: dict[int, RoomScreens] = {}

    @contextmanager
    def room_for(
        self,
        session_id: SessionId,
        channel: RoomChannel,
        *,
        timeline: SessionTimeline,
        observe: events.Observer,
        words: Words,
        payer: Payer,
    ) -> Iterator[RoomScreens]:
        """Let people share in a room for the duration of the block. The caller runs and finishes the `RoomScreens`,
        which has the last three arguments explained.
        """
        room = RoomScreens(self, session_id, channel, timeline=timeline, observe=observe, words=words, payer=payer)
        self._rooms[channel.guild_id] = room
        try:
            yield room
        finally:
            if self._rooms.get(channel.guild_id) is room:
                del self._rooms[channel.guild_id]

    async def unload_readers(self) -> None:
        """Unload the readers if nobody shares in any room."""
        if not any(room.sharing() for room in self._rooms.values()):
            await self.readers.unload()

    def room(self, guild_id: int) -> RoomScreens | None:
        """Return the shared screens of a server's room, or None."""
        return self._rooms.get(guild_id)

    def open_room(self, guild_id: int) -> RoomScreens:
        """Return the shared screens of a server's room. Raises `ScreenError` if the bot is in none there."""
        if (room := self.room(guild_id)) is None:
            raise ScreenError(NO_ROOM_TO_SHARE_IN)
        return room

    # -- links ------------------------------------------------------------------------------------------------

    def invite(self, guild_id: int, user_id: int) -> str:
        """Return the token of a link for that person. Raises `ScreenError` with a plain sentence."""
        if not self.enabled:
            raise ScreenError(Text("The owner of this bot has switched off shared screens."))
        room = self.open_room(guild_id)
        room.require_present(user_id)
        room.require_heard(user_id)
        if room.find(user_id) is None and room.full():
            raise ScreenError(TOO_MANY)
        log.info("screen_link_given", guild_id=guild_id, user_id=user_id)
        return self._links.give(guild_id=guild_id, user_id=user_id, session_id=room.session_id, now=self.clock.now())

    async def admit(self, token: str) -> ScreenPageConnection:
        """Admit a page that was opened with a link. Raises `NotAdmittedError`."""
        try:
            claim = self._links.redeem(token, now=self.clock.now())
        except LinkRefusedError as error:
            raise NotAdmittedError(error.reason.value, REFUSALS[error.reason]) from error
        room = self.room(claim.guild_id)
        if room is None or room.session_id != claim.session_id:
            raise NotAdmittedError("closed", _CLOSED)
        if (person := room.person(claim.user_id)) is None:
            raise NotAdmittedError("absent", _ABSENT)
        try:
            sharer = await room.welcome(person, claim.nonce)
        except ScreenError as error:
            raise NotAdmittedError("full", sentence_of(error)) from error
        resume_secret = secrets.token_urlsafe(_RESUME_SECRET_BYTES)
        sharer.resume_digest = digest_of_secret(resume_secret)
        return self._connect(room, sharer, resume_secret)

    async def readmit(self, resume_secret: str) -> ScreenPageConnection:
        """Admit a page again whose connection was lost. Raises `NotAdmittedError`."""
        digest = digest_of_secret(resume_secret)
        for room in self._rooms.values():
            for sharer in room.sharers():
                if secrets.compare_digest(sharer.resume_digest, digest):
                    return self._connect(room, sharer, resume_secret)
        raise NotAdmittedError("ended", _ENDED)

    def _connect(self, room: RoomScreens, sharer: Sharer, resume_secret: str) -> ScreenPageConnection:
        """Open a connection of a page, which ends an earlier one of it."""
        share, channel = sharer.share, room.channel
        welcome = {
            "who": sharer.person.name,
            "room": channel.name,
            "server": channel.guild_name,
            "bot": self._bot_name,
            # Who sees the pictures.
            "reading": self._reading,
            # Lets the page reconnect.
            "resume": resume_secret,
            "sharing": share is not None,
            # Why the pictures can't be read now.
            "trouble": "" if share is None else share.trouble,
        }
        connection = ScreenPageConnection(room, sharer, welcome, self.clock)
        sharer.page, sharer.disconnected_since = connection, None
        sharer.changed.set()
        if share is not None:
            share.resume()
        return connection


class ScreenPageConnection:
    """One connection of a share page. The code that opened it must call `disconnected` at its end. `welcome`: the first
    message for the page.
    """

    def __init__(self, room: RoomScreens, sharer: Sharer, welcome: Mapping[str, Any], clock: Clock) -> None:
        self._room = room
        self._clock = clock
        self.sharer = sharer
        self.welcome = welcome

    @property
    def link(self) -> str:
        """Return what identifies the page's link; the same for every connection of that page."""
        return self.sharer.nonce

    @property
    def _ending(self) -> ShareEnd | None:
        """Return why this connection ends: the page has opened another, or its share is over."""
        return self.sharer.ended if self.sharer.page is self else ShareEnd.SUPERSEDED

    def start(self, surface: str) -> None:
        """Begin the share, or switch to another screen. `surface`: the browser's `displaySurface`. Raises
        `PageClosedError`.
        """
        self._refuse_after_end()
        self._room.start(self.sharer, surface)

    async def picture(self, data: bytes) -> None:
        """Take a picture. The message `refused` tells of one that was not taken. Raises `PageClosedError`."""
        self._refuse_after_end()
        outcome = await self._room.picture(self.sharer, data)
        if outcome != TAKEN:
            self.sharer.send(t="refused", reason=outcome)

    async def stop(self) -> None:
        """End the share."""
        if self._ending is None:
            await self._room.end(self.sharer, ShareEnd.STOPPED)

    async def messages(self) -> AsyncIterator[Mapping[str, object]]:
        """Yield messages for the page. The last one says why the connection ends."""
        while True:
            while self.sharer.for_page and self._ending is not ShareEnd.SUPERSEDED:
                yield self.sharer.for_page.popleft()
            # Read after the last message was sent, which may take a while on a slow connection.
            ending = self._ending
            if ending is not None:
                yield {"t": "ended", "reason": ending.value, "sentence": END_MESSAGES[ending]}
                return
            self.sharer.changed.clear()
            await self.sharer.changed.wait()

    def disconnected(self) -> None:
        """Note that the connection is closed. The share waits for a while for the page to reconnect."""
        if self.sharer.page is self:
            self.sharer.disconnected_since = self._clock.monotonic()

    def _refuse_after_end(self) -> None:
        if self._ending is not None:
            raise PageClosedError
