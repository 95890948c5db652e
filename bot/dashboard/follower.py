"""The events of rooms that one open page of the dashboard gets: in order, and only what its viewer may see.

A page that does not keep up is dropped. Unfinished words are the first to go where too much waits: the latest of a
person replaces what still waits. When what its viewer may see changes, also because Discord does not answer, a page is
told to read everything anew: the answer to that says what is so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from bot.dashboard.messages import server_sent_event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.dashboard.access import Access
    from bot.web.dashboard_port import Json
    from compaction.model import SessionId

log = structlog.get_logger()

# What may wait for one page. A snapshot of a burst; a page that is further behind is dropped and connects again.
WAITING_EVENTS: Final = 300
# And characters of them. A burst has a tenth.
WAITING_CHARS: Final = 4_000_000


# The kinds of events that have nothing but what people say or show.
_WORDS: Final = frozenset({"interim", "heard", "note"})
# The event after which a page reads everything anew. It has no number: none may follow it.
_READ_ANEW: Final = "again"


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One event for the pages that may see the channel. `mark`: its id for them. `chars`: the length of its data.

    `latest_of`: if not empty, a later event of the same kind and name replaces this one while it waits, and it has the
    id of the event before it. `present`: the ids of the people who heard what it tells.
    """

    mark: str
    session_id: SessionId
    guild_id: int
    channel_id: int
    kind: str
    data: Json
    chars: int
    latest_of: str = ""
    present: frozenset[str] = frozenset()

    def replaces(self, other: LiveEvent | str) -> bool:
        """Return whether `other`, which waits, is out of date with this event."""
        if not self.latest_of or not isinstance(other, LiveEvent):
            return False
        return (self.session_id, self.kind, self.latest_of) == (other.session_id, other.kind, other.latest_of)

    def text(self, access: Access, language: str) -> str:
        """Return the event as it is sent to a page in that language; empty if it has only words that its viewer may
        not read.
        """
        data = self.data
        if not access.reads_whole(self.guild_id, self.channel_id):
            hears = access.hears(self.guild_id, self.channel_id, self.present)
            if self.kind in _WORDS and not hears:
                return ""
            turn = data.get("turn")
            if isinstance(turn, Mapping) and not hears:
                data = {**data, "turn": {**turn, "parts": [], "gone": True}}
            if self.kind == "fold":
                # Nobody knows here whether they have heard all that it tells of.
                data = {**data, "summary": ""}
        return server_sent_event(self.mark, self.kind, data, language)


class Follower:
    """One page's events. Implements `bot.web.dashboard_port.LiveFeed`.

    `access`: returns what its viewer may see now. `language`: the page's. `is_outdated`: returns whether a room's
    events may have words that nobody shall see any more; then it has dropped them here.
    """

    def __init__(
        self, access: Callable[[], Awaitable[Access]], language: str, is_outdated: Callable[[SessionId], bool]
    ) -> None:
        self._access = access
        self._is_outdated = is_outdated
        self._language = language
        self._waiting: deque[LiveEvent | str] = deque()
        self._waiting_chars = 0
        self._added = asyncio.Event()
        # What its viewer could see when the page was last told something.
        self._known: Access | None = None
        self._over = False
        # Whether it was ended because too much waited.
        self.is_slow = False

    @property
    def waiting(self) -> int:
        """Return how many events wait."""
        return len(self._waiting)

    async def next(self) -> str | None:
        while True:
            # Before the event is taken: a cancelled call loses none.
            access = await self._access()
            if self._over:
                return None
            if self._known not in (None, access):
                self._known = access
                self._keep(lambda _: False)
                return server_sent_event(_READ_ANEW, _READ_ANEW, {}, self._language)
            self._known = access
            if not self._waiting:
                self._added.clear()
                await self._added.wait()
                continue
            event = self._waiting[0]
            if isinstance(event, LiveEvent) and self._is_outdated(event.session_id):
                continue
            self._waiting.popleft()
            if isinstance(event, str):
                return event
            self._waiting_chars -= event.chars
            if access.sees(event.guild_id, event.channel_id) and (text := event.text(access, self._language)):
                return text

    def add(self, event: LiveEvent | str) -> None:
        """Queue an event. If too many wait, the feed is over."""
        if self._over:
            return
        chars = event.chars if isinstance(event, LiveEvent) else 0
        if isinstance(event, LiveEvent) and event.latest_of:
            self._keep(lambda each: not event.replaces(each))
            if self._is_full(chars):
                return
        if self._is_full(chars):
            log.info("dashboard_page_dropped", reason="slow")
            self.is_slow = True
            self.end()
            return
        self._waiting.append(event)
        self._waiting_chars += chars
        self._added.set()

    def _is_full(self, chars: int) -> bool:
        """Return whether an event of so many characters is too much."""
        return len(self._waiting) >= WAITING_EVENTS or self._waiting_chars + chars > WAITING_CHARS

    def _keep(self, stays: Callable[[LiveEvent | str], bool]) -> None:
        """Drop the other events that wait."""
        self._waiting = deque(filter(stays, self._waiting))
        self._waiting_chars = sum(each.chars for each in self._waiting if isinstance(each, LiveEvent))

    def drop(self, session_id: SessionId) -> None:
        """Drop the waiting events of a session."""
        self._keep(lambda each: isinstance(each, str) or each.session_id != session_id)

    def end(self) -> None:
        """End the feed without what waits."""
        self._waiting.clear()
        self._over = True
        self._added.set()
