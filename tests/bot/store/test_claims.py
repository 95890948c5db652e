"""A room's writes carry a number; once somebody has claimed the room since, the database refuses them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.store.claims import RoomClaim, claim_room, fenced
from bot.store.database import Database, open_database
from bot.store.people import PeopleStore
from bot.store.prompts import PromptStore
from bot.store.sessions import Sessions
from bot.store.tiers import TierStore
from bot.store.turns import SqlTurnStore
from compaction.errors import StaleOwnerError
from compaction.memory.people import ExtractedFacts
from compaction.memory.tiers import TierChanges
from compaction.model import CompactionState, NoteId, SessionId, Turn
from tests.bot.conftest import Place
from tests.bot.store.sent_prompts import a_prompt
from tests.compaction.turn_store_contract import fill, landing, note, turn
from tests.fakes.clock import FakeClock

GUILD, CHANNEL = 1_300_000_000_000_000_001, 1_300_000_000_000_000_003
EVENING = SessionId("evening")
# Each example of the property has a server of its own.
_guilds = itertools.count(1)

# Every write of a room.
WRITES: dict[str, Callable[[Database], Awaitable[object]]] = {
    "turn": lambda mine: SqlTurnStore(mine, FakeClock()).append_turn(EVENING, turn(12)),
    "note": lambda mine: SqlTurnStore(mine, FakeClock()).add_note(EVENING, note("b")),
    "pending notes": lambda mine: SqlTurnStore(mine, FakeClock()).move_notes_to_pending(EVENING, [NoteId("a")]),
    "dropped notes": lambda mine: SqlTurnStore(mine, FakeClock()).drop_notes(EVENING, [NoteId("a")]),
    "landing": lambda mine: SqlTurnStore(mine, FakeClock()).land(landing(0, 10, revision=0)),
    "end": lambda mine: SqlTurnStore(mine, FakeClock()).close(EVENING, None, CompactionState()),
    "tiers": lambda mine: TierStore(mine).apply(EVENING, TierChanges(), [], total_turns=12, now=1.0),
    "facts": lambda mine: PeopleStore(mine).store_facts(
        EVENING, ExtractedFacts((), ()), through=12, is_current=lambda _: True
    ),
    "prompts": lambda mine: PromptStore(mine).store([a_prompt()], is_current=lambda _: True),
}


@pytest_asyncio.fixture
async def processes(place: Place) -> AsyncIterator[tuple[Database, Database]]:
    """One database, as two processes have it open."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(open_database(place, synchronous="normal"))
        yield first, await stack.enter_async_context(open_database(place, synchronous="normal"))


async def claimed(database: Database, guild_id: int = GUILD) -> RoomClaim:
    """Claim the room of a server."""
    async with database.writing() as connection:
        return await claim_room(connection, guild_id)


@pytest.mark.parametrize("kind", WRITES)
async def test_a_stale_owner_writes_nothing(processes: tuple[Database, Database], kind: str) -> None:
    """Each write of a room is refused after a newer claim, by whichever process, and leaves the session as it was."""
    first, second = processes
    mine = fenced(first, await claimed(first))
    await fill(SqlTurnStore(mine, FakeClock()), 12)
    await SqlTurnStore(mine, FakeClock()).add_note(EVENING, note("a"))
    theirs = fenced(second, await claimed(second))
    before = await SqlTurnStore(second, FakeClock()).load(EVENING)
    with pytest.raises(StaleOwnerError, match="works on this server now"):
        await WRITES[kind](mine)
    assert await SqlTurnStore(second, FakeClock()).load(EVENING) == before
    await WRITES[kind](theirs)


async def test_opening_a_session_claims_the_servers_room(processes: tuple[Database, Database]) -> None:
    """Who opens a session last has the room, also for another channel of the server; other servers are not touched."""
    first, second = (Sessions(each, FakeClock()) for each in processes)
    old = (await first.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)).claim
    elsewhere = (await first.open(guild_id=GUILD + 1, channel_id=CHANNEL + 9, resume_within_s=1800)).claim
    await first.check(old)
    new = (await second.open(guild_id=GUILD, channel_id=CHANNEL + 1, resume_within_s=1800)).claim
    assert (old.number, new.number, elsewhere.number) == (1, 2, 1)
    with pytest.raises(StaleOwnerError):
        await first.check(old)
    await first.check(new)
    await first.check(elsewhere)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=25))
async def test_no_interleaving_lets_a_stale_owner_write(
    processes: tuple[Database, Database], steps: list[tuple[int, bool]]
) -> None:
    """Four owners in two processes claim and write in any order: exactly the newest one's writes are stored."""
    guild_id = next(_guilds)
    session_id = SessionId(f"session-{guild_id}")
    stores: dict[int, SqlTurnStore] = {}
    newest = -1
    stored: list[Turn] = []
    for owner, claims in steps:
        database = processes[owner % 2]
        if claims:
            stores[owner] = SqlTurnStore(fenced(database, await claimed(database, guild_id)), FakeClock())
            newest = owner
        elif owner in stores:
            said = turn(len(stored), f"Owner {owner} wrote this.")
            if owner == newest:
                await stores[owner].append_turn(session_id, said)
                stored.append(said)
            else:
                with pytest.raises(StaleOwnerError):
                    await stores[owner].append_turn(session_id, said)
    assert list((await SqlTurnStore(processes[0], FakeClock()).load(session_id)).window) == stored


async def test_owners_at_the_same_time_write_one_after_another(processes: tuple[Database, Database]) -> None:
    """Owners that claim, read and write at the same time: no turn is lost, doubled, or written under an older number
    than the turn before it.
    """
    sessions = [Sessions(each, FakeClock()) for each in processes]
    written: list[tuple[int, int]] = []

    async def own(process: int) -> None:
        opened = await sessions[process].open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1e12)
        store = SqlTurnStore(fenced(processes[process], opened.claim), FakeClock())
        seq = (await store.load(opened.session.id)).total_turns
        for _ in range(5):
            await store.append_turn(opened.session.id, turn(seq, f"{opened.claim.number}"))
            written.append((seq, opened.claim.number))
            seq += 1

    ends = await asyncio.gather(*(own(number % 2) for number in range(12)), return_exceptions=True)
    assert {type(end) for end in ends} <= {type(None), StaleOwnerError}
    assert sum(end is None for end in ends) >= 1
    (session,) = await sessions[0].recent()
    stored = (await SqlTurnStore(processes[0], FakeClock()).load(session.id)).window
    numbers = [int(each.parts[0].text) for each in stored]
    assert [(each.seq, number) for each, number in zip(stored, numbers, strict=True)] == sorted(written)
    assert numbers == sorted(numbers)
