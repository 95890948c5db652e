"""The moment for a remark about a screen: in a pause, and not while the bot is busy."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.screen.commentary import CHECK_INTERVAL_S, INTERVAL_REMARK_EVERY_S, STALE_S, RemarkTiming, ScreenCommentary
from compaction.model import Note, NoteId, NoteReason
from tests.fakes.clock import FakeClock
from voice.screen.settings import ScreenSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Watched:
    """A room that is busy or not, and the remarks that were asked for."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.busy = False
        self.remarks: list[float] = []
        self.wanted = True
        self.sharing = True
        self.commentary = ScreenCommentary(
            ScreenSettings(),
            clock=self.clock,
            is_busy=lambda: self.busy,
            is_sharing=lambda: self.sharing,
            request_remark=self._remark,
        )

    def _remark(self) -> bool:
        self.remarks.append(self.clock.monotonic())
        return self.wanted

    def see(self, why: NoteReason = NoteReason.CUT) -> None:
        """Something is noted."""
        self.commentary.on_note(Note(NoteId("n"), 0, "Ada", "now: a map", why))

    async def pass_time(self, seconds: float) -> None:
        """Time passes."""
        for _ in range(round(seconds / CHECK_INTERVAL_S)):
            for _ in range(5):
                await asyncio.sleep(0)
            self.clock.advance(CHECK_INTERVAL_S)
        for _ in range(5):
            await asyncio.sleep(0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Watched]:
        """Watch."""
        task = asyncio.create_task(self.commentary.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait({task})


@pytest.mark.asyncio
async def test_a_remark_waits_for_a_pause() -> None:
    """Deferred while somebody speaks or the bot is busy, and for a moment after."""
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


@pytest.mark.asyncio
async def test_an_occasion_goes_by() -> None:
    """Who talks on has long spoken of something else."""
    async with Watched().running() as room:
        room.busy = True
        room.see()
        await room.pass_time(STALE_S + 1)
        assert room.clock.sleeping == 0
        room.busy = False
        await room.pass_time(10)
        assert room.remarks == []
        room.see()
        await room.pass_time(4)
        assert len(room.remarks) == 1


@pytest.mark.asyncio
async def test_what_the_decider_refuses_costs_no_time() -> None:
    """The next occasion is as good as the first."""
    async with Watched().running() as room:
        room.wanted = False
        room.see()
        await room.pass_time(4)
        room.see()
        await room.pass_time(4)
        assert len(room.remarks) == 2


@pytest.mark.asyncio
async def test_what_an_answer_knows_is_not_remarked_upon_again() -> None:
    """Somebody asked, and the notes were before the model; what is noted after that is another occasion."""
    async with Watched().running() as room:
        room.see()
        room.commentary.on_question()
        await room.pass_time(8)
        assert room.remarks == []
        room.see()
        await room.pass_time(4)
        assert len(room.remarks) == 1


@pytest.mark.asyncio
async def test_a_share_that_is_over_is_not_remarked_upon() -> None:
    """Its last note waits for a pause in vain."""
    async with Watched().running() as room:
        room.busy = True
        room.see()
        await room.pass_time(2)
        room.sharing = room.busy = False
        await room.pass_time(8)
        assert room.remarks == []
        room.sharing = True
        await room.pass_time(8)
        assert room.remarks == []


def timing() -> RemarkTiming:
    return RemarkTiming(every_s=15, quiet_s=2.2)


@pytest.mark.parametrize("why", [NoteReason.SHARE_START, NoteReason.CUT, NoteReason.TEXT, NoteReason.INTERVAL])
def test_what_is_seen_gives_occasion_when_it_is_quiet(why: NoteReason) -> None:
    """Not before the pause is long enough, and not when it is long past."""
    remarks = timing()
    assert not remarks.is_due(0, quiet_for_s=60)
    remarks.add_note(why, now=0)
    assert not remarks.is_due(1, quiet_for_s=2.1)
    assert remarks.is_due(1, quiet_for_s=2.2)
    assert not remarks.is_due(STALE_S, quiet_for_s=60)
    assert not remarks.is_pending(STALE_S)


def test_who_asked_waits_for_an_answer_and_not_for_a_remark() -> None:
    """A look that somebody asked for is no occasion."""
    remarks = timing()
    remarks.add_note(NoteReason.ASKED, now=0)
    assert not remarks.is_pending(0)


def test_what_has_gone_by_is_no_occasion() -> None:
    """And keeps no later one from being one."""
    remarks = timing()
    remarks.add_note(NoteReason.SHARE_START, now=0)
    remarks.drop_pending()
    assert not remarks.is_pending(0)
    remarks.add_note(NoteReason.TEXT, now=1)
    assert remarks.is_due(2, quiet_for_s=60)


def test_remarks_keep_their_distance() -> None:
    """Fifteen seconds from one to the next; an occasion that was not taken costs none."""
    remarks = timing()
    remarks.add_note(NoteReason.SHARE_START, now=0)
    remarks.finish_pending(3, model_asked=True)
    remarks.add_note(NoteReason.TEXT, now=4)
    assert not remarks.is_due(17.9, quiet_for_s=60)
    assert remarks.is_due(18, quiet_for_s=60)
    remarks.finish_pending(18, model_asked=False)
    remarks.add_note(NoteReason.CUT, now=19)
    assert remarks.is_due(19, quiet_for_s=60)


def test_a_screen_that_merely_goes_on_is_remarked_rarely() -> None:
    """And takes the place of nothing better."""
    remarks = timing()
    remarks.add_note(NoteReason.CUT, now=0)
    remarks.finish_pending(0, model_asked=True)
    remarks.add_note(NoteReason.INTERVAL, now=20)
    assert not remarks.is_due(20, quiet_for_s=60)
    remarks.add_note(NoteReason.TEXT, now=25)
    remarks.add_note(NoteReason.INTERVAL, now=40)
    assert remarks.is_due(41, quiet_for_s=60)
    assert not remarks.is_due(25 + STALE_S, quiet_for_s=60)
    remarks.finish_pending(41, model_asked=True)
    remarks.add_note(NoteReason.INTERVAL, now=41 + INTERVAL_REMARK_EVERY_S - 1)
    assert remarks.is_due(41 + INTERVAL_REMARK_EVERY_S, quiet_for_s=60)


@given(st.lists(st.tuples(st.sampled_from(list(NoteReason)), st.floats(0, 10), st.floats(0, 10)), max_size=60))
def test_never_more_often_than_allowed(seen: list[tuple[NoteReason, float, float]]) -> None:
    """Whatever is seen, and however quiet it is."""
    remarks, now, remarked = timing(), 0.0, float("-inf")
    for why, gap, quiet in seen:
        now += gap
        remarks.add_note(why, now=now)
        if remarks.is_due(now, quiet_for_s=quiet):
            assert quiet >= 2.2
            assert now - remarked >= 15
            remarked = now
            remarks.finish_pending(now, model_asked=True)
