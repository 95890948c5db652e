"""The moment for a remark about a screen: a pause, and not while the bot is busy."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from bot.brain.commentary import STALE_S
from bot.screen.commentary import LOOK_S, Commenting
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
        self.commenting = Commenting(
            ScreenSettings(),
            clock=self.clock,
            busy=lambda: self.busy,
            sharing=lambda: self.sharing,
            remark=self._remark,
        )

    def _remark(self) -> bool:
        self.remarks.append(self.clock.monotonic())
        return self.wanted

    def see(self, why: NoteReason = NoteReason.CUT) -> None:
        """Something is noted."""
        self.commenting.noted(Note(NoteId("n"), 0, "Ada", "now: a map", why))

    async def pass_time(self, seconds: float) -> None:
        """Time passes."""
        for _ in range(round(seconds / LOOK_S)):
            for _ in range(5):
                await asyncio.sleep(0)
            self.clock.advance(LOOK_S)
        for _ in range(5):
            await asyncio.sleep(0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Watched]:
        """Watch."""
        task = asyncio.create_task(self.commenting.run())
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
        room.commenting.asked()
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
