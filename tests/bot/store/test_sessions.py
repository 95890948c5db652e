"""A channel has one session at a time, and a new process continues the unfinished one."""

from __future__ import annotations

import asyncio

import pytest

from bot.store.database import Database
from bot.store.posted_transcripts import PostedKind, PostedTranscripts, TranscriptMessage
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from compaction.errors import StaleOwnerError, StoreError
from compaction.model import CompactionState, NoteId, Seq, SessionId
from tests.compaction.turn_store_contract import T0, fill, landing, note
from tests.fakes.clock import FakeClock

# Discord's ids need more than 53 bits.
GUILD, CHANNEL, OTHER_CHANNEL = 1_300_000_000_000_000_001, 1_300_000_000_000_000_003, 1_300_000_000_000_000_005
EVENING = SessionId("evening")


async def test_a_post_of_which_more_is_forgotten_while_it_is_made_anew_stays_marked(database: Database) -> None:
    """Also by a process whose clock is behind, or was set back."""
    await Sessions(database, FakeClock(T0)).open(
        guild_id=GUILD, channel_id=CHANNEL, resume_within_s=300, session_id=EVENING
    )
    posted, behind = (PostedTranscripts(database, FakeClock(at)) for at in (T0, T0 - 3_600.0))
    message = TranscriptMessage(GUILD, CHANNEL, 7)
    async with posted.filling(EVENING, message, PostedKind.FILE, begun=0):
        pass
    await posted.mark([7])
    (stale,) = await posted.stale()
    await behind.mark([7])
    await posted.renewed(stale, deleted=())
    (again,) = await posted.stale()
    await posted.renewed(again, deleted=())
    assert await posted.stale() == ()


async def test_a_post_is_stale_until_all_its_words_are_there(database: Database) -> None:
    """A process may be killed, or Discord may refuse them. Then it is made anew: of what was tried last."""
    sessions = Sessions(database, FakeClock(T0))
    await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=300, session_id=EVENING)
    posted, message = sessions.posted_transcripts, TranscriptMessage(GUILD, CHANNEL, 7)

    async def fails(last: int) -> None:
        async with posted.filling(EVENING, message, PostedKind.LINES, begun=0, turns=(Seq(1), Seq(last))):
            assert await posted.stale() == (), "nobody makes anew what is being written"
            raise StoreError("No.")

    for last in (1, 2):
        with pytest.raises(StoreError):
            await fails(last)
        (stale,) = await posted.stale()
        assert (stale.messages, stale.turns) == ((message,), (1, last))
    async with posted.filling(EVENING, message, PostedKind.LINES, begun=0, turns=(Seq(1), Seq(2))):
        pass
    assert await posted.stale() == ()


@pytest.fixture
def clock() -> FakeClock:
    """A clock at the beginning."""
    return FakeClock(T0)


async def test_a_killed_process_finds_its_session(clock: FakeClock, database: Database) -> None:
    """An unfinished session of the channel is resumed, and another channel gets its own."""
    sessions = Sessions(database, clock)
    first = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)
    assert not first.resumed
    assert (first.session.guild_id, first.session.channel_id, first.session.started_at) == (GUILD, CHANNEL, T0)
    await fill(SqlTurnStore(database, clock), 4, session_id=first.session.id)
    clock.advance(1000)
    again = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)
    assert again.resumed
    assert again.session.id == first.session.id
    assert (again.session.turn_count, again.session.last_turn_at) == (4, T0 + 11.25)
    other = await sessions.open(guild_id=GUILD, channel_id=OTHER_CHANNEL, resume_within_s=1800)
    assert not other.resumed
    assert other.session.id != first.session.id


async def test_a_stale_session_ends_where_it_fell_silent(clock: FakeClock, database: Database) -> None:
    """A session that is too old to resume is ended at its last turn, and a new one begins."""
    sessions = Sessions(database, clock)
    old = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)
    await fill(SqlTurnStore(database, clock), 4, session_id=old.session.id)
    clock.advance(7200)
    new = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)
    assert not new.resumed
    ended = await sessions.find(old.session.id)
    assert ended is not None
    assert ended.ended_at == T0 + 11.25


async def test_a_session_that_was_running_until_now_goes_on_however_long_nobody_spoke(
    clock: FakeClock, database: Database
) -> None:
    """People may be silent together for an evening. Another session was not the one that ran."""
    sessions = Sessions(database, clock)
    first = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)
    clock.advance(7200)
    running = first.session.id
    again = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800, running=running)
    assert (again.resumed, again.session.id) == (True, first.session.id)
    clock.advance(7200)
    other = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800, running="another")
    assert not other.resumed


async def test_an_ended_session_is_not_resumed(clock: FakeClock, database: Database) -> None:
    """An ended session is not resumed, whether the memory closed it or only its row was ended."""
    sessions, store = Sessions(database, clock), SqlTurnStore(database, clock)
    first = (await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)).session
    clock.advance(5)
    await store.close(first.id, None, CompactionState())
    second = (await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)).session
    assert await sessions.end_open(GUILD) == (second.id,)
    third = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)
    assert len({first.id, second.id, third.session.id}) == 3
    closed = await sessions.find(first.id)
    assert closed is not None
    assert closed.ended_at == T0 + 5
    clock.advance(5)
    assert await sessions.end_open(GUILD) == (third.session.id,)
    assert await sessions.find(first.id) == closed


async def test_what_earlier_rooms_have_left_open_is_ended(clock: FakeClock, database: Database) -> None:
    """What earlier rooms have left open in other channels ends with its last turn. Other servers, and sessions without
    a channel, are left alone.
    """
    sessions, store = Sessions(database, clock), SqlTurnStore(database, clock)
    crashed = (await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)).session
    elsewhere = (await sessions.open(guild_id=GUILD + 1, channel_id=CHANNEL + 1, resume_within_s=1800)).session
    await fill(store, 1, session_id=EVENING)
    clock.advance(60)
    last = (await sessions.open(guild_id=GUILD, channel_id=OTHER_CHANNEL, resume_within_s=1800)).session
    assert await sessions.end_open(GUILD, except_session=last.id) == (crashed.id,)
    ended = await sessions.find(crashed.id)
    assert ended is not None
    assert ended.ended_at == crashed.last_turn_at
    assert {each.id for each in await sessions.recent() if each.ended_at is None} == {elsewhere.id, EVENING, last.id}
    assert await sessions.end_open(GUILD) == (last.id,)
    assert await sessions.end_open(GUILD) == ()
    assert {each.id for each in await sessions.recent() if each.ended_at is None} == {elsewhere.id, EVENING}


async def test_two_openings_at_once_get_one_session(database: Database) -> None:
    """Several joins of one channel at the same time get the same session."""
    sessions = Sessions(database, FakeClock(T0))
    opened = await asyncio.gather(
        *(sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800) for _ in range(5))
    )
    assert len({each.session.id for each in opened}) == 1
    assert sorted(each.resumed for each in opened) == [False, True, True, True, True]


async def test_only_an_empty_session_of_our_own_is_discarded(clock: FakeClock, database: Database) -> None:
    """A session with turns stays, and so does one that another process may be going on with."""
    sessions = Sessions(database, clock)
    begun = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)
    taken_over = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)
    with pytest.raises(StaleOwnerError):
        await sessions.discard(begun)
    await fill(SqlTurnStore(database, clock), 1, session_id=begun.session.id)
    await sessions.discard(taken_over)
    assert await sessions.find(begun.session.id) is not None
    await sessions.end_open(GUILD)
    empty = await sessions.open(guild_id=GUILD, channel_id=CHANNEL, resume_within_s=1800)
    await sessions.discard(empty)
    assert await sessions.find(empty.session.id) is None


async def test_deleting_leaves_nothing(clock: FakeClock, database: Database) -> None:
    """Deleting a session deletes its turns, notes and segments, and other sessions stay."""
    sessions, store = Sessions(database, clock), SqlTurnStore(database, clock)
    await fill(store, 10)
    await fill(store, 3, session_id=SessionId("other"))
    await store.add_note(EVENING, note("a"))
    await store.move_notes_to_pending(EVENING, [NoteId("a")])
    assert await store.land(landing(0, 10, revision=0))
    assert await sessions.delete(EVENING)
    assert not await sessions.delete(EVENING)
    async with database.reading() as connection:
        for table in ("turns", "notes", "segments", "sessions"):
            column = "id" if table == "sessions" else "session_id"
            left = await connection.exec_driver_sql(f"SELECT count(*) FROM {table} WHERE {column} = 'evening'")
            assert left.scalar_one() == 0, table
    assert (await store.load(SessionId("other"))).total_turns == 3
    assert await sessions.find(EVENING) is None


async def test_an_id_that_nobody_has_is_no_session(database: Database) -> None:
    """Whatever is typed into an address, it is no failure of the database."""
    sessions = Sessions(database, FakeClock(T0))
    for typed in ("", "evening", "20251009-085320-%", "evening\0", "\0", "\ud800", "x" * 4_000):
        assert await sessions.find(SessionId(typed)) is None, typed
