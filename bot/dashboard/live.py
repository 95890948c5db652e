"""The open rooms, and the events that open pages get of them: in order, and only what their viewers may see.

Each event has a number. A page that has missed some, because its connection was lost or was not open yet, is told to
read everything anew, and so are the pages of a room in which words are forgotten or withheld, and a page whose viewer
may see something else, also because Discord does not answer. A page that does not keep up is dropped. Unfinished words
have no number and are the first to go where too much waits: the latest of a person replaces what still waits.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import structlog

from bot import events
from bot.background_task import background_task
from bot.dashboard.access import Access, Json, server_sent_event
from bot.dashboard.live_room import LiveRoom
from bot.texts.text import ENGLISH
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.participation.guild_state import GuildState
    from compaction.model import SessionId
    from compaction.session import SessionTimeline


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

    def replaces(self, other: LiveEvent) -> bool:
        """Return whether `other`, which waits, is out of date with this event."""
        its = (other.session_id, other.kind, other.latest_of)
        return bool(self.latest_of) and (self.session_id, self.kind, self.latest_of) == its

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
    """One page's events.

    `first`: what the page is sent in any case. `access`: returns what its viewer may see now. `language`: the page's.
    """

    def __init__(
        self,
        first: str,
        access: Callable[[], Awaitable[Access]],
        language: str,
    ) -> None:
        self._first = first
        self._access = access
        self._language = language
        self.waiting: deque[LiveEvent] = deque()
        self._added = asyncio.Event()
        # What its viewer could see when the page was last told something.
        self._known: Access | None = None
        self._over = False
        # Whether it was ended because too much waited.
        self.is_slow = False

    async def next(self) -> str | None:
        """Wait for the next message, as a whole server-sent event. None: the feed is over, and the page may ask anew.

        *Cancellation*: loses no message.
        """
        while True:
            # Before the event is taken: a cancelled call loses none.
            access = await self._access()
            if self._over:
                return None
            if self._known not in (None, access):
                self.waiting.clear()
                self._first = server_sent_event(_READ_ANEW, _READ_ANEW, {}, self._language)
            self._known = access
            if self._first:
                first, self._first = self._first, ""
                return first
            if not self.waiting:
                self._added.clear()
                await self._added.wait()
                continue
            event = self.waiting.popleft()
            if access.sees(event.guild_id, event.channel_id) and (text := event.text(access, self._language)):
                return text

    def add(self, event: LiveEvent) -> None:
        """Queue an event. If too much waits the feed is over, but not for what a later event replaces."""
        if self._over:
            return
        self.waiting = deque(each for each in self.waiting if not event.replaces(each))
        is_full = len(self.waiting) >= WAITING_EVENTS
        if not is_full and sum(each.chars for each in self.waiting) + event.chars <= WAITING_CHARS:
            self.waiting.append(event)
            self._added.set()
        elif not event.latest_of:
            log.info("dashboard_page_dropped", reason="slow")
            self.is_slow = True
            self.end()

    def drop(self, session_id: SessionId) -> None:
        """Drop the waiting events of a session."""
        self.waiting = deque(each for each in self.waiting if each.session_id != session_id)

    def end(self) -> None:
        """End the feed without what waits."""
        self.waiting.clear()
        self._over = True
        self._added.set()


LOOK_EVERY_S: Final = 2.0


class LiveRooms:
    """All open rooms and all followers.

    *Ownership*: `running` owns the task `dashboard-look`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rooms: dict[SessionId, LiveRoom] = {}
        self._followers: set[Follower] = set()
        self._count = 0
        # Numbers of an earlier process mean nothing here.
        self._boot = secrets.token_hex(4)
        self._slow_pages = 0

    @property
    def queue(self) -> QueueFigures:
        """Return how many events wait for the open pages. A page for which too many wait is dropped and asks anew."""
        waiting = sum(len(each.waiting) for each in self._followers)
        return QueueFigures(
            "dashboard", waiting, WAITING_EVENTS * len(self._followers), {"slow_page": self._slow_pages}
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Look at the rooms for the duration of the block, which gets itself. At its end all feeds are over."""
        try:
            async with background_task(self._look(), name="dashboard-look"):
                yield self
        finally:
            for follower in list(self._followers):
                follower.end()

    # -- the rooms' side ----------------------------------------------------------------------------------------------

    @contextmanager
    def show(
        self, session_id: SessionId, channel: RoomChannel, timeline: SessionTimeline, guild: GuildState
    ) -> Iterator[events.Observer]:
        """Show a room while the block runs. Yields what takes the room's events."""
        room = LiveRoom(session_id, channel, timeline, guild, clock=self._clock, publish=self._publish)
        self._rooms[session_id] = room
        self._publish(room, "opened", {"room": room.brief()})

        def observe(event: events.Event) -> None:
            try:
                room.observe(event)
            except Exception:
                # The room goes on; its page shows a little less.
                log.exception("dashboard_event_failed", kind=type(event).__name__)
                return
            if isinstance(event, events.CompactionLanded):
                # The timeline is still reporting the compaction; ask it when it has finished.
                asyncio.get_running_loop().call_soon(room.emit_fold)

        try:
            yield observe
        finally:
            self._forget(room)
            self._publish(room, "closed", {"session": session_id})
            del self._rooms[session_id]

    # -- the pages' side ----------------------------------------------------------------------------------------------

    @property
    def mark(self) -> str:
        """Return the id of the last event."""
        return f"{self._boot}-{self._count}"

    def rooms(self, access: Access) -> list[LiveRoom]:
        """Return the open rooms that somebody may see."""
        return [room for room in self._rooms.values() if access.sees(room.channel.guild_id, room.channel.channel_id)]

    @contextmanager
    def follow(
        self, access: Callable[[], Awaitable[Access]], last_event_id: str, *, language: str = ENGLISH
    ) -> Iterator[Follower]:
        """Collect for one open page, while this context is open, what happens in the rooms after `last_event_id`.

        `access`: returns what the page's viewer may see now.
        """
        # The first makes the page's connection known as open.
        is_new = last_event_id in {"", self.mark}
        first = "retry: 2000\n\n" if is_new else server_sent_event(self.mark, _READ_ANEW, {}, language)
        follower = Follower(first, access, language)
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            self._slow_pages += follower.is_slow
            follower.end()

    # -- events -----------------------------------------------------------------------------------------------------

    def _publish(self, room: LiveRoom, kind: str, data: Json, latest_of: str = "") -> None:
        if self._rooms.get(room.session_id) is not room:
            # It has ended, so nobody would drop these words when they are forgotten.
            return
        if kind == "reset":
            self._forget(room)
        channel, turn = room.channel, data.get("turn")
        # What it tells began then: a turn, when somebody began to speak.
        began_at = turn.get("at") if isinstance(turn, Mapping) else None
        self._count += not latest_of
        event = LiveEvent(
            self.mark,
            room.session_id,
            channel.guild_id,
            channel.channel_id,
            kind,
            data,
            len(json.dumps(data)),
            latest_of,
            room.present_since(began_at if isinstance(began_at, float) else self._clock.now()),
        )
        for follower in self._followers:
            follower.add(event)

    def _forget(self, room: LiveRoom) -> None:
        """Drop every waiting event of a room: it may have words that nobody shall see any more."""
        for follower in self._followers:
            follower.drop(room.session_id)

    async def _look(self) -> None:
        while True:
            await self._clock.sleep(LOOK_EVERY_S)
            for room in list(self._rooms.values()):
                try:
                    room.look()
                except Exception:
                    log.exception("dashboard_look_failed", session_id=room.session_id)
