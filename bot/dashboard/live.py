"""The open rooms, and the events that open pages get of them.

Each event has a number. A page that has missed some, because its connection was lost or was not open yet, is told to
read everything anew, and so are the pages of a room in which words are forgotten or withheld. Unfinished words have no
number. `follower` has what waits for each page.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import structlog

from bot import events
from bot.background_task import background_task
from bot.dashboard.follower import WAITING_EVENTS, Follower, LiveEvent
from bot.dashboard.live_room import LiveRoom
from bot.dashboard.messages import server_sent_event
from bot.texts.catalogue import ENGLISH
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.dashboard.access import Access
    from bot.participation.guild_participation import GuildParticipation
    from bot.web.dashboard_port import Json
    from compaction.model import SessionId
    from compaction.session import SessionMemory

log = structlog.get_logger()

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
        waiting = sum(each.waiting for each in self._followers)
        return QueueFigures(
            "dashboard", waiting, WAITING_EVENTS * len(self._followers), {"slow_page": self._slow_pages}
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look at the rooms for the duration of the block. At its end all feeds are over."""
        try:
            async with background_task(self._look(), name="dashboard-look"):
                yield
        finally:
            for follower in list(self._followers):
                follower.end()

    # -- the rooms' side ----------------------------------------------------------------------------------------------

    @contextmanager
    def show(
        self, session_id: SessionId, place: Place, memory: SessionMemory, guild: GuildParticipation
    ) -> Iterator[events.Observer]:
        """Show a room while the block runs. Yields what takes the room's events."""
        room = LiveRoom(session_id, place, memory, guild, clock=self._clock, publish=self._publish)
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
        return [room for room in self._rooms.values() if access.sees(room.place.guild_id, room.place.channel_id)]

    @contextmanager
    def follow(
        self, access: Callable[[], Awaitable[Access]], last_event_id: str, *, language: str = ENGLISH
    ) -> Iterator[Follower]:
        """Follow what happens from `last_event_id` on. `access`: returns what the page's viewer may see now."""
        for session_id in list(self._rooms):
            self._reset_outdated(session_id)
        follower = Follower(access, language, self._reset_outdated)
        if last_event_id in {"", self.mark}:
            # Makes the page's connection known as open.
            follower.add("retry: 2000\n\n")
        else:
            follower.add(server_sent_event(self.mark, "again", {}, language))
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
        place = room.place
        self._count += not latest_of
        event = LiveEvent(
            self.mark,
            room.session_id,
            place.guild_id,
            place.channel_id,
            kind,
            data,
            len(json.dumps(data)),
            latest_of,
            room.present_since(_said_at(data, self._clock.now())),
        )
        for follower in self._followers:
            follower.add(event)

    def _forget(self, room: LiveRoom) -> None:
        """Drop every waiting event of a room: it may have words that nobody shall see any more."""
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


def _said_at(data: Json, now: float) -> float:
    """Return when what an event tells began: a turn, when somebody began to speak."""
    turn = data.get("turn")
    at = turn.get("at") if isinstance(turn, Mapping) else None
    return at if isinstance(at, float) else now
