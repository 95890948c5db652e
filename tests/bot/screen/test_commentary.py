"""When the bot may remark on a shared screen: in a pause, and not while the bot is busy."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.screen.commentary import CHECK_INTERVAL_S, INTERVAL_REMARK_EVERY_S, STALE_S, RemarkTiming, ScreenCommentary
from compaction.model import Note, NoteId, NoteTrigger
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def note(why: NoteTrigger, *, who: str = "Ada") -> Note:
    """Return a note of a shared screen."""
    return Note(NoteId("n"), 0, who, "now: a map", trigger=why)


class Watched:
    """A room that is busy or not, with a record of the requested remarks."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.busy = False
        self.remarks: list[float] = []
        self.wanted = True
        self.sharing = {"Ada", "Bo"}
        self.commentary = ScreenCommentary(
            every_s=15.0,
            clock=self.clock,
            is_busy=lambda: self.busy,
            is_shown=lambda note: note.who in self.sharing,
            request_remark=self._remark,
        )

    def _remark(self) -> bool:
        self.remarks.append(self.clock.monotonic())
        return self.wanted

    def see(self, why: NoteTrigger = NoteTrigger.CUT, *, who: str = "Ada") -> None:
        """Report a new note."""
        self.commentary.on_note(note(why, who=who))

    async def pass_time(self, seconds: float) -> None:
        """Let time pass in steps of the check interval."""
        for _ in range(round(seconds / CHECK_INTERVAL_S)):
            for _ in range(5):
                await asyncio.sleep(0)
            self.clock.advance(CHECK_INTERVAL_S)
        for _ in range(5):
            await asyncio.sleep(0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Watched]:
        """Run the commentary."""
        task = asyncio.create_task(self.commentary.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait({task})


async def test_a_remark_waits_for_a_pause() -> None:
    """A remark is deferred while somebody speaks or the bot is busy, and until the pause is long enough."""
    async with Watched().running() as room:
        room.busy = True
        room.see()
        await room.pass_time(8)
        assert room.remarks == []
        room.busy = False
        await room.pass_time(2)
        assert room.remarks == []
        await room.pass_time(2)
        assert len(room.remarks) == 1


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
        room.busy = True
        room.see(NoteTrigger.SHARE_START, who="Ada")
        await room.pass_time(2)
        room.sharing.remove("Ada")
        room.see(NoteTrigger.TEXT, who="Ada")
        room.busy = False
        await room.pass_time(8)
        assert room.remarks == []
        room.sharing.add("Ada")
        room.see(NoteTrigger.SHARE_START, who="Ada")
        room.see(NoteTrigger.TEXT, who="Bo")
        room.sharing.remove("Ada")
        await room.pass_time(4)
        assert len(room.remarks) == 1


def timing() -> RemarkTiming:
    return RemarkTiming(every_s=15, quiet_s=2.2)


@pytest.mark.parametrize("why", [NoteTrigger.SHARE_START, NoteTrigger.CUT, NoteTrigger.TEXT, NoteTrigger.INTERVAL])
def test_what_is_seen_gives_occasion_when_it_is_quiet(why: NoteTrigger) -> None:
    """A note is remarked on only after a long enough pause, and not after it is stale."""
    remarks = timing()
    assert not remarks.is_due(0, quiet_for_s=60)
    remarks.add_note(note(why), now=0)
    assert not remarks.is_due(1, quiet_for_s=2.1)
    assert remarks.is_due(1, quiet_for_s=2.2)
    assert not remarks.is_due(STALE_S, quiet_for_s=60)
    assert not remarks.is_pending(STALE_S)


def test_who_asked_waits_for_an_answer_and_not_for_a_remark() -> None:
    """A note that was made because somebody asked gets no remark."""
    remarks = timing()
    remarks.add_note(note(NoteTrigger.ASKED), now=0)
    assert not remarks.is_pending(0)


def test_what_has_gone_by_is_no_occasion() -> None:
    """A dropped note gets no remark, and does not prevent a later one."""
    remarks = timing()
    remarks.add_note(note(NoteTrigger.SHARE_START), now=0)
    remarks.drop_pending()
    assert not remarks.is_pending(0)
    remarks.add_note(note(NoteTrigger.TEXT), now=1)
    assert remarks.is_due(2, quiet_for_s=60)


def test_remarks_keep_their_distance() -> None:
    """Two remarks are at least fifteen seconds apart; a remark that was not made does not count."""
    remarks = timing()
    remarks.add_note(note(NoteTrigger.SHARE_START), now=0)
    remarks.finish_pending(3, model_asked=True)
    remarks.add_note(note(NoteTrigger.TEXT), now=4)
    assert not remarks.is_due(17.9, quiet_for_s=60)
    assert remarks.is_due(18, quiet_for_s=60)
    remarks.finish_pending(18, model_asked=False)
    remarks.add_note(note(NoteTrigger.CUT), now=19)
    assert remarks.is_due(19, quiet_for_s=60)


def test_a_screen_that_merely_goes_on_is_remarked_rarely() -> None:
    """Notes taken at intervals get remarks less often, and do not replace a better pending note."""
    remarks = timing()
    remarks.add_note(note(NoteTrigger.CUT), now=0)
    remarks.finish_pending(0, model_asked=True)
    remarks.add_note(note(NoteTrigger.INTERVAL), now=20)
    assert not remarks.is_due(20, quiet_for_s=60)
    remarks.add_note(note(NoteTrigger.TEXT), now=25)
    remarks.add_note(note(NoteTrigger.INTERVAL), now=40)
    assert remarks.is_due(41, quiet_for_s=60)
    assert not remarks.is_due(25 + STALE_S, quiet_for_s=60)
    remarks.finish_pending(41, model_asked=True)
    remarks.add_note(note(NoteTrigger.INTERVAL), now=41 + INTERVAL_REMARK_EVERY_S - 1)
    assert remarks.is_due(41 + INTERVAL_REMARK_EVERY_S, quiet_for_s=60)


@given(st.lists(st.tuples(st.sampled_from(list(NoteTrigger)), st.floats(0, 10), st.floats(0, 10)), max_size=60))
def test_never_more_often_than_allowed(seen: list[tuple[NoteTrigger, float, float]]) -> None:
    """Any sequence of notes keeps the minimum pause and the minimum distance of remarks."""
    remarks, now, remarked = timing(), 0.0, float("-inf")
    for why, gap, quiet in seen:
        now += gap
        remarks.add_note(note(why), now=now)
        if remarks.is_due(now, quiet_for_s=quiet):
            assert quiet >= 2.2
            assert now - remarked >= 15
            remarked = now
            remarks.finish_pending(now, model_asked=True)
