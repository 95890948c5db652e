"""When the bot may remark on a shared screen: in a pause, and not while the bot is busy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from bot.participation.participation import Participation
from bot.screen.commentary import CHECK_INTERVAL_S, STALE_S, ScreenCommentary
from bot.screen.screens import Screens
from compaction.model import Note, NoteId, NoteTrigger
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import loop_turns


class Watched:
    """A room that is busy or not, with a record of the requested remarks."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.is_busy = False
        self.remarks: list[float] = []
        self.wanted = True
        self.sharing = {"Ada", "Bo"}
        self.remark_every_s = 15.0
        # It stands for the screens, for those of its server, and for its participation.
        self.commentary = ScreenCommentary(cast("Screens", self), 10, cast("Participation", self))

    def room(self, guild_id: int) -> Watched:
        return self

    def is_shown(self, note: Note) -> bool:
        return note.who in self.sharing

    def request_remark(self) -> bool:
        self.remarks.append(self.clock.monotonic())
        return self.wanted

    def see(self, why: NoteTrigger = NoteTrigger.CUT, *, who: str = "Ada") -> None:
        """Report a new note. Ids of people are their names."""
        self.commentary.on_note(Note(NoteId("n"), 0, who, "now: a map", trigger=why, person_id=who))

    async def pass_time(self, seconds: float) -> None:
        """Let time pass in steps of the check interval."""
        for _ in range(round(seconds / CHECK_INTERVAL_S)):
            await loop_turns()
            self.clock.advance(CHECK_INTERVAL_S)
        await loop_turns()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Watched]:
        """Run the commentary."""
        task = asyncio.create_task(self.commentary.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait({task})


@pytest.mark.parametrize(("busy_s", "quiet_s", "remarks"), [(8, 0, 0), (8, 2, 0), (8, 4, 1), (STALE_S, 8, 0)])
async def test_a_remark_waits_for_a_pause(busy_s: float, quiet_s: float, remarks: int) -> None:
    """A remark is deferred while somebody speaks or the bot is busy, and until the pause is long enough. It is not made
    about a note that is stale then.
    """
    async with Watched().running() as room:
        room.is_busy = True
        room.see()
        await room.pass_time(busy_s)
        room.is_busy = False
        await room.pass_time(quiet_s)
        assert len(room.remarks) == remarks


async def test_what_an_answer_knows_is_not_remarked_upon_again() -> None:
    """A question drops the pending remark, since its answer already uses the notes; a later note can get a remark."""
    async with Watched().running() as room:
        room.see()
        room.commentary.on_question()
        await room.pass_time(8)
        assert room.remarks == []
        room.see()
        await room.pass_time(4)
        assert len(room.remarks) == 1


async def test_who_stops_sharing_while_another_person_shares_is_not_remarked_upon() -> None:
    """The notes of a share go with it, also its last one, which comes when it has ended. Those of others stay."""
    async with Watched().running() as room:
        room.is_busy = True
        room.see(NoteTrigger.SHARE_START, who="Ada")
        await room.pass_time(2)
        room.sharing.remove("Ada")
        room.see(NoteTrigger.TEXT, who="Ada")
        room.is_busy = False
        await room.pass_time(8)
        assert room.remarks == []
        room.sharing.add("Ada")
        room.see(NoteTrigger.SHARE_START, who="Ada")
        room.see(NoteTrigger.TEXT, who="Bo")
        room.sharing.remove("Ada")
        await room.pass_time(4)
        assert len(room.remarks) == 1


CUT, START, TEXT, INTERVAL, ASKED = (
    NoteTrigger.CUT,
    NoteTrigger.SHARE_START,
    NoteTrigger.TEXT,
    NoteTrigger.INTERVAL,
    NoteTrigger.ASKED,
)


@pytest.mark.parametrize(
    ("seen", "wanted", "after_s"),
    [
        *[([(each, 10)], True, [2.4]) for each in (START, CUT, TEXT, INTERVAL)],
        # Who asked waits for an answer, and not for a remark.
        ([(ASKED, 10)], True, []),
        # Two remarks keep their distance; one that was not made does not count.
        ([(START, 4), (TEXT, 20)], True, [2.4, 17.6]),
        ([(START, 4), (TEXT, 20)], False, [2.4, 6.4]),
        # A screen that merely goes on is remarked upon rarely, and hides nothing better.
        ([(CUT, 20), (INTERVAL, 40)], True, [2.4]),
        ([(CUT, 4), (TEXT, 4), (INTERVAL, 20)], True, [2.4, 17.6]),
        ([(CUT, 80), (INTERVAL, 20)], True, [2.4, 92.4]),
        # It has been quiet for long enough when something better comes.
        ([(CUT, 4), (INTERVAL, 36), (INTERVAL, 20), (TEXT, 4)], True, [2.4, 60.4]),
    ],
)
async def test_remarks_keep_their_distance(
    seen: list[tuple[NoteTrigger, float]], wanted: bool, after_s: list[float]
) -> None:
    """In a quiet room: `seen` are notes, each with the seconds until the next; `after_s` is when remarks are made."""
    async with Watched().running() as room:
        room.wanted = wanted
        began_at = room.clock.monotonic()
        for why, pause_s in seen:
            room.see(why)
            await room.pass_time(pause_s)
        assert [at - began_at for at in room.remarks] == pytest.approx(after_s, abs=0.5)
