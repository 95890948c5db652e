"""Bad days of the real database: while it refuses writes, the session goes on and readiness is red. Afterwards every
turn is stored once.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pytest

from bot.monitoring.service_checks import CHECK_EVERY_S, DATABASE_FAULT, ServiceChecks
from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from bot.store.write_check import check_writable
from compaction.errors import StoreError
from compaction.model import Mode, Seq, TurnKind, TurnPart
from compaction.session import SessionMemory
from compaction.settings import CompactionSettings
from compaction.summary.extractive import ExtractiveSummariser
from tests.compaction.turn_store_contract import EVENING
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

HOUR_S = 3600.0


class JumpingClock(FakeClock):
    """A clock whose wall time can be set."""

    jump_s = 0.0

    def now(self) -> float:
        """Return the wall clock."""
        return super().now() + self.jump_s


def session(store: SqlTurnStore, clock: FakeClock) -> AbstractAsyncContextManager[SessionMemory]:
    """Open the session's memory."""
    return SessionMemory.open(
        EVENING,
        store=store,
        summariser=ExtractiveSummariser(),
        fallback=ExtractiveSummariser(),
        settings=CompactionSettings(),
        mode=Mode.SUMMARY,
        clock=clock,
        guild_id="77",
        rng=Random(7),
    )


async def say(memory: SessionMemory, clock: FakeClock, text: str) -> None:
    """Append a turn."""
    now = clock.now()
    await memory.append(TurnKind.SPEECH, (TurnPart("id-Ada", "Ada", text),), started_at=now, ended_at=now)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_database_that_is_away_for_an_hour(tmp_path: Path) -> None:
    """Another program holds the database for an hour in which people speak."""
    clock, path = FakeClock(), tmp_path / "roomtone.db"
    async with open_database(path, busy_timeout_s=0.01) as database:
        store = SqlTurnStore(database, clock)
        checks = ServiceChecks(partial(check_writable, database), tmp_path, clock=clock)
        async with session(store, clock) as memory:
            await say(memory, clock, "Turn 0")
            await checks.check()
            assert DATABASE_FAULT not in checks.faults()
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                for number in range(1, 13):
                    clock.advance(HOUR_S / 12)
                    with pytest.raises(StoreError, match="is locked: another process is writing to it"):
                        await say(memory, clock, f"Turn {number}")
                    await checks.check()
                assert DATABASE_FAULT in checks.faults()
                assert memory.total_turns == 13
                other.execute("ROLLBACK")
            clock.advance(CHECK_EVERY_S)
            await checks.check()
            assert DATABASE_FAULT not in checks.faults()
            await say(memory, clock, "Turn 13")
        stored = await store.turns(EVENING, Seq(0), Seq(99))
        assert [turn.parts[0].text for turn in stored] == [f"Turn {number}" for number in range(14)]


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_clock_that_jumps_an_hour_and_back(tmp_path: Path) -> None:
    """Turns keep their numbers and their order, folds go on, and a restart finds all of them."""
    clock, path = JumpingClock(), tmp_path / "roomtone.db"
    async with open_database(path) as database:
        store = SqlTurnStore(database, clock)
        async with session(store, clock) as memory:
            for number in range(90):
                clock.advance(4.0)
                clock.jump_s = {30: HOUR_S, 60: -HOUR_S}.get(number, clock.jump_s)
                await say(memory, clock, f"Turn {number}")
                memory.context(max_input_tokens=28_672)
                await memory.settle()
        stored = await store.turns(EVENING, Seq(0), Seq(999))
        assert [turn.parts[0].text for turn in stored] == [f"Turn {number}" for number in range(90)]
        after = await store.load(EVENING)
        assert after.total_turns == 90
        assert after.state.cursor > 0
        assert [each.start for each in after.segments] == sorted(each.start for each in after.segments)
