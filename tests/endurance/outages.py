"""An hour of talk without a writable database: the disk is full, another program holds it, or its server is away. Then
it is drained.

The session and the store are real and the clock is the test's. On a full disk SQLite itself refuses: its file may not
grow by a page. PostgreSQL's server is stopped as in a crash and started again; its full disk is an error that it
reports for each new turn.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager

from benchmarks.report import Json
from bot.store.database import Database, open_database
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from compaction.model import Mode, Seq, SessionId, TurnKind
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from compaction.window import RECENT_WINDOW
from rehearsal.fault_plan import Faults, FaultStep
from tests.bot.conftest import Place
from tests.bot.store.outages import full, locked
from tests.endurance.databases import Databases, check_whole
from tests.endurance.promises import parts_of
from tests.fakes.clock import FakeClock
from tests.postgres import running_server

HOUR_S = 3600.0
SESSION = SessionId("evening")
# Somebody speaks every four seconds, as in an ordinary evening.
TURN_S = 4.0
# Before and after the hour people talk too.
BEFORE, AFTER = 80, 40

Outage = Callable[[Place, Database], AbstractContextManager[None]]


@contextmanager
def stopped(place: Place, database: Database) -> Iterator[None]:
    """PostgreSQL's server is away."""
    server = running_server()
    server.stop()
    try:
        yield
    finally:
        server.start()


OUTAGES: dict[str, Outage] = {"database away": locked, "disk full": full}
POSTGRESQL_OUTAGES: dict[str, Outage] = {"PostgreSQL away": stopped, "PostgreSQL's disk full": full}


async def measure_outage(fault: Outage, databases: Databases, *, seconds: float = HOUR_S) -> dict[str, Json]:
    """Let people talk through an outage, and compare what is stored afterwards with what was said.

    Raises AssertionError if a turn is missing, doubled or has other words, if no turn was refused, or if the
    database is damaged.
    """
    clock, place = FakeClock(), databases.create()
    begins, ends = FaultStep(BEFORE * TURN_S, fault), FaultStep(seconds, fault, mends=True)

    @asynccontextmanager
    async def broken(each: Outage) -> AsyncIterator[None]:
        with each(place, database):
            yield

    async with open_database(place, busy_timeout_s=0.001) as database:
        store = SqlTurnStore(database, clock)
        async with open_session(store, clock) as timeline:
            assert await talk(timeline, clock, begins.after_s) == 0
            await timeline.settle()
            faults = Faults(broken)
            await faults.carry_out(begins)
            refused = await talk(timeline, clock, ends.after_s)
            await faults.carry_out(ends)
            waiting = timeline.total_turns - (await store.load(SESSION)).total_turns
            assert refused > 0, "the outage refused nothing"
            assert await talk(timeline, clock, AFTER * TURN_S) == 0
            await timeline.settle()
            said = timeline.total_turns
        stored = await store.turns(SESSION, Seq(0), Seq(said + 1))
        after = await store.load(SESSION)
    check_whole(place)
    databases.remove(place)
    numbers = [turn.seq for turn in stored]
    lost, doubled = len(set(range(said)) - set(numbers)), len(numbers) - len(set(numbers))
    assert (lost, doubled) == (0, 0), f"{lost} turns are lost, {doubled} are there twice"
    assert all(turn.parts == parts_of(SESSION, turn.seq) for turn in stored)
    assert said - after.state.cursor <= RECENT_WINDOW + BEFORE, "folding did not go on"
    return {
        "seconds": seconds,
        "turns": said,
        "turns_said_meanwhile": round(seconds / TURN_S),
        "turns_waiting_at_its_end": waiting,
        "writes_refused": refused,
        "lost": lost,
        "doubled": doubled,
    }


def open_session(store: SqlTurnStore, clock: FakeClock) -> AbstractAsyncContextManager[SessionTimeline]:
    """Open a session that folds without a model."""
    return SessionTimeline.open(
        SESSION,
        store=store,
        summariser=ExtractiveSummariser(),
        mode=Mode.SUMMARY,
        clock=clock,
        guild_id="77",
        rng=random.Random(7),
    )


async def talk(timeline: SessionTimeline, clock: FakeClock, seconds: float) -> int:
    """Let people talk for so long, with a reply's context after each turn. Returns how many turns the store refused."""
    refused = 0
    for _ in range(round(seconds / TURN_S)):
        clock.advance(TURN_S)
        now = clock.now()
        said = parts_of(SESSION, timeline.total_turns)
        try:
            await timeline.append(TurnKind.SPEECH, said, started_at=now - 2.0, ended_at=now)
        except StoreError:
            refused += 1
        timeline.context(max_input_tokens=28_672)
    return refused
