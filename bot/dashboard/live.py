"""The open rooms, and the events that open pages get of them.

Each event has a number. The last ones are kept, so that a page that lost its connection gets what it missed; if they
are gone, it is told to read everything anew. A page that does not keep up is dropped. When words are forgotten or
withheld, all kept events of that room go, and its pages read anew. Unfinished words are passed on and never kept: the
latest of a person replaces what still waits, and is the first to go where too much waits.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import structlog

from bot import events
from bot.dashboard.live_room import LiveRoom
from bot.dashboard.messages import server_sent_event
from bot.texts.catalogue import ENGLISH
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from types import TracebackType

    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.dashboard.access import Access
    from bot.dashboard.shown_memory import ShownMemory
    from bot.participation.guild_participation import GuildParticipation
    from bot.web.dashboard_port import Json
    from compaction.model import SessionId

log = structlog.get_logger()

# What a page may have missed: some minutes of a lively room.
KEPT_EVENTS: Final = 1_000
# What may wait for one page. A snapshot of a burst; a page that is further behind is dropped and connects again.
WAITING_EVENTS: Final = 300
LOOK_EVERY_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One event for the pages that may see the channel. `mark`: its id for them.

    `latest_of`: if not empty, a later event of the same kind and name replaces this one while it waits, and it has the
    id of the event before it, because it is not kept.
    """

    number: int
    mark: str
    session_id: SessionId
    guild_id: int
    channel_id: int
    kind: str
    data: Json
    latest_of: str = ""

    def replaces(self, other: LiveEvent | str) -> bool:
        """Return whether `other`, which waits, is out of date with this event."""
        if not self.latest_of or not isinstance(other, LiveEvent):
            return False
        return (self.session_id, self.kind, self.latest_of) == (other.session_id, other.kind, other.latest_of)

    def text(self, language: str) -> str:
        """Return the event as it is sent to a page in that language."""
        return server_sent_event(self.mark, self.kind, self.data, language)


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
        self._added = asyncio.Event()
        self._over = False
        # Whether it was ended because too much waited.
        self.is_slow = False

    @property
    def waiting(self) -> int:
        """Return how many events wait."""
        return len(self._waiting)

    async def next(self) -> str | None:
        """See `LiveFeed.next`."""
        while True:
            while self._waiting:
                # Before the event is taken: a cancelled call loses none.
                access = await self._access()
                if not self._waiting:
                    break
                event = self._waiting[0]
                if isinstance(event, LiveEvent) and self._is_outdated(event.session_id):
                    continue
                self._waiting.popleft()
                if isinstance(event, str):
                    return event
                if access.sees(event.guild_id, event.channel_id):
                    return event.text(self._language)
            if self._over:
                return None
            self._added.clear()
            await self._added.wait()

    def add(self, event: LiveEvent | str) -> None:
        """Queue an event. If too many wait, the feed is over."""
        if self._over:
            return
        if isinstance(event, LiveEvent) and event.latest_of:
            self._waiting = deque(each for each in self._waiting if not event.replaces(each))
            if len(self._waiting) >= WAITING_EVENTS:
                return
        if len(self._waiting) >= WAITING_EVENTS:
            log.info("dashboard_page_dropped", reason="slow")
            self.is_slow = True
            self.end()
            return
        self._waiting.append(event)
        self._added.set()

    def drop(self, session_id: SessionId) -> None:
        """Drop the waiting events of a session."""
        self._waiting = deque(each for each in self._waiting if isinstance(each, str) or each.session_id != session_id)

    def end(self) -> None:
        """End the feed without what waits."""
        self._waiting.clear()
        self._over = True
        self._added.set()


class LiveRooms:
    """All open rooms and all followers. An async context manager.

    *Ownership*: owns the task that looks at the rooms.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rooms: dict[SessionId, LiveRoom] = {}
        self._kept: deque[LiveEvent] = deque(maxlen=KEPT_EVENTS)
        self._followers: set[Follower] = set()
        self._count = 0
        # Numbers of an earlier process mean nothing here.
        self._boot = secrets.token_hex(4)
        self._looking: asyncio.Task[None] | None = None
        self._slow_pages = 0

    @property
    def queue(self) -> QueueFigures:
        """Return how many events wait for the open pages. A page for which too many wait is dropped and asks anew."""
        waiting = sum(each.waiting for each in self._followers)
        return QueueFigures(
            "dashboard", waiting, WAITING_EVENTS * len(self._followers), {"slow_page": self._slow_pages}
        )

    async def __aenter__(self) -> Self:
        self._looking = asyncio.create_task(self._look(), name="dashboard-look")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._looking is not None, "entered"
        self._looking.cancel()
        with suppress(asyncio.CancelledError):
            await self._looking
        for follower in list(self._followers):
            follower.end()

    # -- the rooms' side ----------------------------------------------------------------------------------------------

    @contextmanager
    def show(
        self, session_id: SessionId, place: Place, memory: ShownMemory, guild: GuildParticipation, machine: str = ""
    ) -> Iterator[events.Observer]:
        """Show a room while the block runs. Yields what takes the room's events. `machine`: see `LiveRoom`."""
        room = LiveRoom(session_id, place, memory, guild, clock=self._clock, publish=self._publish, machine=machine)
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
                # The memory is still reporting the compaction; ask it when it has finished.
                asyncio.get_running_loop().call_soon(room.tell_fold)

        try:
            yield observe
        finally:
            del self._rooms[session_id]
            self._forget(room)
            self._publish(room, "closed", {"session": session_id})

    # -- the pages' side ----------------------------------------------------------------------------------------------

    @property
    def mark(self) -> str:
        """Return the id of the last event."""
        return f"{self._boot}-{self._count}"

    def rooms(self, access: Access) -> list[LiveRoom]:
        """Return the open rooms that somebody may see."""
        return [room for room in self._rooms.values() if access.sees(room.place.guild_id, room.place.channel_id)]

    @contextmanager
    def follow(
        self, access: Callable[[], Awaitable[Access]], last_event_id: str, *, language: str = ENGLISH
    ) -> Iterator[Follower]:
        """Follow what happens from `last_event_id` on. `access`: returns what the page's viewer may see now."""
        for session_id in list(self._rooms):
            self._reset_outdated(session_id)
        follower = Follower(access, language, self._reset_outdated)
        missed = self._since(last_event_id)
        if missed is None:
            follower.add(server_sent_event(self.mark, "again", {}, language))
        else:
            # Makes the page's connection known as open.
            follower.add("retry: 2000\n\n")
            for event in missed:
                follower.add(event)
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            self._slow_pages += follower.is_slow
            follower.end()

    def _since(self, last_event_id: str) -> list[LiveEvent] | None:
        """Return the events after the one with this id; None if they are not known any more."""
        if not last_event_id:
            return []
        boot, _, number = last_event_id.partition("-")
        if boot != self._boot or not number.isascii() or not number.isdecimal() or len(number) > 15:
            return None
        missed = [event for event in self._kept if event.number > int(number)]
        if int(number) > self._count or len(missed) > WAITING_EVENTS // 2:
            return None
        oldest = self._kept[0].number if self._kept else self._count + 1
        return missed if int(number) >= min(oldest - 1, self._count) else None

    # -- events -----------------------------------------------------------------------------------------------------

    def _publish(self, room: LiveRoom, kind: str, data: Json, latest_of: str = "") -> None:
        place = room.place
        self._count += not latest_of
        event = LiveEvent(
            self._count, self.mark, room.session_id, place.guild_id, place.channel_id, kind, data, latest_of
        )
        if not latest_of:
            self._kept.append(event)
        for follower in self._followers:
            follower.add(event)

    def _forget(self, room: LiveRoom) -> None:
        """Drop every kept and waiting event of a room: it may have words that nobody shall see any more."""
        self._kept = deque((each for each in self._kept if each.session_id != room.session_id), maxlen=KEPT_EVENTS)
        for follower in self._followers:
            follower.drop(room.session_id)

    def reset(self) -> None:
        """Have the pages of all rooms read anew, because words were forgotten."""
        for room in list(self._rooms.values()):
            self._reset(room)

    def _reset_outdated(self, session_id: SessionId) -> bool:
        """Have the pages of a room read anew if words were forgotten or withheld since. Returns whether that was so."""
        room = self._rooms.get(session_id)
        if room is None or not room.is_outdated():
            return False
        self._reset(room)
        return True

    def _reset(self, room: LiveRoom) -> None:
        self._forget(room)
        self._publish(room, "reset", {"session": room.session_id})

    async def _look(self) -> None:
        while True:
            await self._clock.sleep(LOOK_EVERY_S)
            for room in list(self._rooms.values()):
                try:
                    room.look()
                    self._reset_outdated(room.session_id)
                except Exception:
                    log.exception("dashboard_look_failed", session_id=room.session_id)
