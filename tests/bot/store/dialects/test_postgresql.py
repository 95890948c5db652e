"""What only PostgreSQL has: its URL and sentences, its schema, its locks between processes, and how deleted rows go."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import text

from bot.cli.doctor.finding import Status
from bot.cli.doctor.machine import check_database
from bot.shards import ONLY_SHARD, Shards, Succession, parse_shards
from bot.store.claims import claim_room, fenced
from bot.store.database import Database, open_database
from bot.store.dialects import postgresql_lock
from bot.store.dialects.port import BotLock
from bot.store.dialects.postgresql import PostgresDialect
from bot.store.dialects.postgresql_lock import held_lock, held_shards
from bot.store.dialects.postgresql_sql import postgresql_failure
from bot.store.migrations.upgrade import HEAD
from bot.store.servers import OptOutStore
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from tests.bot.evening import forget
from tests.bot.store.frozen_writer import SERVER
from tests.compaction.turn_store_contract import fill, landing, turn
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import pass_loop_time, wait_out
from tests.patience import PATIENCE_S, patiently
from tests.postgres import running_server

pytestmark = pytest.mark.postgres
EVENING = SessionId("evening")
PASSWORD = "opensesame-17"
_END_HOLDERS = """
    SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


async def test_a_frozen_process_holds_up_nobody_elses_server(postgres_place: SecretStr) -> None:
    """Others write for other servers at once. For its own server they wait until the database has ended its
    transaction; when it comes back, it is stale and writes nothing.
    """
    frozen = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.bot.store.frozen_writer",
        postgres_place.get_secret_value(),
        stdout=asyncio.subprocess.PIPE,
    )
    assert frozen.stdout is not None
    try:
        assert await frozen.stdout.readline() == b"writing\n"
        # Nothing waits for a lock for longer than this.
        async with open_database(postgres_place, busy_timeout_s=0.05) as other:
            for server in (2, 3):
                async with other.writing() as connection:
                    claim = await claim_room(connection, server)
                store = SqlTurnStore(fenced(other, claim), FakeClock())
                await fill(store, 5, session_id=SessionId(f"session-{server}"))
            await OptOutStore(other, FakeClock()).put(SERVER, 5, out=True)
        async with open_database(postgres_place) as successor:
            async with successor.writing() as connection:
                claim = await claim_room(connection, SERVER)
            assert claim.number == 2
            await SqlTurnStore(fenced(successor, claim), FakeClock()).append_turn(SessionId("one"), turn(1))
            frozen.send_signal(signal.SIGCONT)
            told, _ = await frozen.communicate()
            assert told == b"ended\nstale\n"
            assert (await SqlTurnStore(successor, FakeClock()).load(SessionId("one"))).total_turns == 2
    finally:
        if frozen.returncode is None:
            frozen.kill()
            await frozen.wait()


@pytest.fixture
def empty_place() -> Iterator[SecretStr]:
    """A database without tables."""
    server = running_server()
    name = server.create()
    yield server.url(name)
    server.drop(name)


def run(place: SecretStr, statement: str) -> None:
    """Run a statement as another program would."""
    with psycopg.connect(place.get_secret_value(), autocommit=True) as connection:
        connection.execute(statement)


async def test_a_newer_database_is_left_alone(postgres_place: SecretStr) -> None:
    """A database of a later version is refused with a plain sentence, by the bot and by doctor."""
    run(postgres_place, "UPDATE alembic_version SET version_num = '0099'")
    try:
        with pytest.raises(StoreError, match="version 99"):
            async with open_database(postgres_place):
                pass
        assert check_database(postgres_place).status is Status.MISSING
    finally:
        run(postgres_place, f"UPDATE alembic_version SET version_num = '{HEAD}'")
    assert "PostgreSQL 1" in check_database(postgres_place).detail


async def test_a_command_makes_no_tables(empty_place: SecretStr) -> None:
    """A command that only looks at the memory says that there is none, and leaves the database as it is."""
    with pytest.raises(StoreError, match="no memory"):
        async with open_database(empty_place, create=False):
            pass
    assert "no memory in it yet" in check_database(empty_place).detail


async def test_a_killed_migration_leaves_nothing(empty_place: SecretStr) -> None:
    """If one of its statements fails, nothing is made, and the next start makes all of it."""
    run(empty_place, "CREATE FUNCTION turn_deleted() RETURNS BIGINT LANGUAGE SQL AS 'SELECT 1'")
    with pytest.raises(StoreError, match="turn_deleted"):
        async with open_database(empty_place):
            pass
    with psycopg.connect(empty_place.get_secret_value()) as connection:
        assert connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchone() is None
    run(empty_place, "DROP FUNCTION turn_deleted")
    async with open_database(empty_place) as first, open_database(empty_place) as second:
        await fill(SqlTurnStore(first, FakeClock()), 3)
        assert (await SqlTurnStore(second, FakeClock()).load(EVENING)).total_turns == 3


async def test_a_restarted_server_is_found_again(postgres_place: SecretStr) -> None:
    """When the server is away a turn is refused with a plain sentence; when it is back the same turn is stored, and
    threads read again.
    """
    server = running_server()
    async with open_database(postgres_place) as database:
        store = SqlTurnStore(database, FakeClock())
        await fill(store, 3)
        assert await database.rows("SELECT count(*) FROM turns") == [(3,)]
        await asyncio.to_thread(server.stop, how="fast")
        try:
            for wanted in (store.append_turn(EVENING, turn(3)), database.rows("SELECT 1")):
                with pytest.raises(StoreError, match=r"away|reached"):
                    await wanted
        finally:
            await asyncio.to_thread(server.start)
        await store.append_turn(EVENING, turn(3))
        assert await database.rows("SELECT count(*) FROM turns") == [(4,)]


def test_an_absent_server_is_told_in_time() -> None:
    """An address where nothing listens is an error at once; the sentence names it without user and password."""
    url = SecretStr(f"postgresql://me:{PASSWORD}@127.0.0.1:1/rooms")
    begun = time.monotonic()
    found = check_database(url)
    assert time.monotonic() - begun < PATIENCE_S
    assert found.status is Status.MISSING
    assert found.detail == "postgresql://127.0.0.1:1/rooms cannot be reached"
    assert PASSWORD not in f"{found}"


@pytest.mark.parametrize("url", [f"mysql://me:{PASSWORD}@x/y", f"postgresql://me:{PASSWORD}@h/d?odd=1", "rooms"])
def test_what_is_no_url_is_told_without_it(url: str) -> None:
    """Anything else than a URL of PostgreSQL is refused with an example, and is not quoted."""
    found = check_database(SecretStr(url))
    assert "ROOMTONE_DATABASE_URL" in found.detail
    assert "postgresql://user:password@host:5432/name" in found.remedy
    assert PASSWORD not in f"{found}"


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (psycopg.errors.DiskFull("x"), "full"),
        (psycopg.errors.ReadOnlySqlTransaction("x"), "read-only"),
        (psycopg.errors.TooManyConnections("x"), "connection"),
        (psycopg.errors.QueryCanceled("x"), "in time"),
        (psycopg.errors.InsufficientPrivilege("x"), "owner"),
        (psycopg.errors.InvalidPassword("x"), "refuses"),
        (psycopg.errors.AdminShutdown("x"), "away"),
        (psycopg.errors.DataCorrupted("x"), "damaged"),
        (psycopg.errors.DeadlockDetected("x"), "locked"),
        (psycopg.OperationalError('FATAL:  password authentication failed for user "me"'), "refuses"),
        (psycopg.OperationalError('FATAL:  database "rooms" does not exist'), "CREATE DATABASE"),
        (TimeoutError(), "in time"),
        (psycopg.errors.NotNullViolation("Failing row contains (what Ada said)"), "NotNull"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_each_error_has_its_sentence(error: BaseException, word: str) -> None:
    """The sentence of an error has the cause and the remedy, and nothing that people said."""
    told = str(postgresql_failure(error, "postgresql://h/rooms"))
    assert word in told
    assert "postgresql://h/rooms" in told
    assert "Ada" not in told


async def test_a_second_bot_is_kept_away(postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a bot holds the database a second one is refused with a plain sentence; commands may look. When the first
    ends, however that comes, the next may start.
    """
    monkeypatch.setattr(PostgresDialect, "held_by_bot", _held_at_once)
    async with open_database(postgres_place) as first, open_database(postgres_place) as second:
        async with first.held_by_bot():
            with pytest.raises(StoreError, match="Another bot"):
                async with second.held_by_bot():
                    pass
            assert (await SqlTurnStore(second, FakeClock()).load(EVENING)).total_turns == 0
        async with second.held_by_bot():
            pass


async def test_of_two_that_begin_in_the_same_moment_one_holds_it(
    postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each looks for others and takes its locks while no other one looks."""
    monkeypatch.setattr(PostgresDialect, "held_by_bot", _held_at_once)
    tried = asyncio.Barrier(2)

    async def hold(database: Database) -> str:
        try:
            async with database.held_by_bot():
                await tried.wait()
                return "held"
        except StoreError as refused:
            await tried.wait()
            return str(refused)

    async with open_database(postgres_place) as first, open_database(postgres_place) as second:
        for _ in range(5):
            told = sorted(await asyncio.gather(hold(first), hold(second)))
            assert told[0].startswith("Another bot runs with postgresql://")
            assert told[1] == "held"


async def test_a_lost_connection_is_no_other_bot(postgres_place: SecretStr) -> None:
    """The server may notice late that it is lost, and keep its locks until then."""
    async with open_database(postgres_place) as database, open_database(postgres_place) as other, other.held_by_bot():
        for opened, found in ((other, []), (database, [ONLY_SHARD])):
            dialect = opened.dialect
            assert isinstance(dialect, PostgresDialect)
            with psycopg.connect(**dialect.options) as connection:
                assert held_shards(connection) == found


async def test_the_shards_of_a_process_that_hangs_are_taken_over(postgres_place: SecretStr) -> None:
    """Whoever keeps the processes has given it up. All its connections end, also one with rows that it has locked; when
    it looks, it knows that another one has its servers. Processes with other shards notice nothing.
    """
    async with (
        open_database(postgres_place) as stale,
        open_database(postgres_place) as other,
        open_database(postgres_place) as following,
        stale.held_by_bot(parse_shards("0-1/4")) as lock,
        other.held_by_bot(parse_shards("2-3/4")) as beside,
    ):
        writing = asyncio.create_task(hung_write(stale, begun := asyncio.Event()))
        await begun.wait()
        async with following.held_by_bot(parse_shards("0-1/4"), Succession.TAKES_OVER):
            assert await lock.look()
            await patiently(lock.taken_over())
            assert not await beside.look()
            async with following.writing() as connection:
                await connection.execute(text("SELECT 1"))
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def test_a_process_that_follows_waits_until_the_one_before_has_ended(
    postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than one that refuses. The one before notices nothing."""
    heard = _HeardEvents()
    monkeypatch.setattr(postgresql_lock, "log", heard)
    shards, has_it, done = parse_shards("0-1/4"), asyncio.Event(), asyncio.Event()
    async with open_database(postgres_place) as before, open_database(postgres_place) as following:

        async def follow() -> None:
            async with following.held_by_bot(shards, Succession.FOLLOWS):
                has_it.set()
                await done.wait()

        async with before.held_by_bot(shards) as lock:
            waiting = asyncio.create_task(follow())
            await heard.event("waiting_for_other_bot")
            assert not await lock.look()
            assert not has_it.is_set()
        pass_loop_time(monkeypatch, postgresql_lock.RETRY_S)
        await patiently(has_it.wait())
        done.set()
        await waiting


async def hung_write(database: Database, begun: asyncio.Event) -> None:
    """Begin to write, and hang."""
    async with database.writing() as connection:
        await connection.execute(text("SELECT 1"))
        begun.set()
        await asyncio.Event().wait()


async def test_processes_with_different_shards_share_a_database(
    postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each shard has one process, and all have the same total; whoever comes later is told what overlaps. `roomtone
    doctor` names the shards that nobody serves.
    """
    monkeypatch.setattr(PostgresDialect, "held_by_bot", _held_at_once)
    async with open_database(postgres_place) as first, open_database(postgres_place) as second:
        async with first.held_by_bot(parse_shards("0-1/6")), second.held_by_bot(parse_shards("2,4/6")):
            found = await asyncio.to_thread(check_database, postgres_place)
            assert found.status is Status.WARNING
            assert "of 6 shards, 0-2, 4 are served, and nobody serves 3, 5" in found.detail
            assert '--shards "3, 5/6"' in found.remedy
            for shards, problem in (
                (parse_shards("0-3/6"), r"^Another process of this bot already serves shard 0-\d of 6"),
                (parse_shards("5/8"), "into 8 shards, but .* into 6"),
                (ONLY_SHARD, "into 1 shards, but .* into 6"),
            ):
                async with open_database(postgres_place) as third:
                    with pytest.raises(StoreError, match=problem):
                        async with third.held_by_bot(shards):
                            pass
        async with second.held_by_bot(parse_shards("0-7/8")):
            pass


async def test_a_lost_lock_is_taken_again(postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the server ends the connection that holds the lock, a task takes it again; if another bot was faster, the
    log says so, and who asks for the state of the bot is told.
    """
    monkeypatch.setattr(PostgresDialect, "held_by_bot", _held_at_once)
    heard = _HeardEvents()
    monkeypatch.setattr("bot.store.dialects.postgresql_lock.log", heard)
    async with (
        open_database(postgres_place) as first,
        open_database(postgres_place) as second,
        first.held_by_bot() as lock,
    ):
        run(postgres_place, _END_HOLDERS)
        await wait_out(monkeypatch, postgresql_lock.CHECK_S)
        await wait_out(monkeypatch, postgresql_lock.CHECK_S)
        await heard.event("bot_lock_held_again")
        assert not lock.has_rival
        run(postgres_place, _END_HOLDERS)
        async with second.held_by_bot():
            await wait_out(monkeypatch, postgresql_lock.CHECK_S)
            await wait_out(monkeypatch, postgresql_lock.CHECK_S)
            await heard.event("second_bot_on_database")
            assert lock.has_rival


async def test_who_looks_learns_of_another_bot_at_once(
    postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bot that was frozen asks before it does anything to rooms; one whose lock was only lost has it again."""
    monkeypatch.setattr(PostgresDialect, "held_by_bot", _held_at_once)
    async with (
        open_database(postgres_place) as first,
        open_database(postgres_place) as second,
        first.held_by_bot() as lock,
    ):
        assert not await lock.look()
        run(postgres_place, _END_HOLDERS)
        assert not await lock.look()
        run(postgres_place, _END_HOLDERS)
        async with second.held_by_bot():
            assert await lock.look()
            assert lock.has_rival
        # The server lets go of the locks when it has ended the other bot's process there, a moment later.
        async with asyncio.timeout(PATIENCE_S):
            while await lock.look():
                pass


def _held_at_once(
    dialect: PostgresDialect, shards: Shards, succession: Succession
) -> AbstractAsyncContextManager[BotLock]:
    """Hold the locks as `PostgresDialect.held_by_bot` does, without waiting for another process to end."""
    return held_lock(dialect.options, dialect.place, shards, succession, wait_s=0.0)


class _HeardEvents:
    """A log that tells when an event comes."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def info(self, event: str, **_: object) -> None:
        self._events[event].set()

    warning = error = info

    async def event(self, name: str) -> None:
        await patiently(self._events[name].wait())


async def test_what_is_forgotten_is_in_no_file_of_the_database(postgres_place: SecretStr) -> None:
    """After a person was forgotten, no file of the database has a byte of their words, and others' words are there."""
    server = running_server()
    async with open_database(postgres_place) as database:
        clock = FakeClock()
        store = SqlTurnStore(database, clock)
        for seq in range(40):
            words = "quetzalcoatl sleeps" if seq % 2 else "the lighthouse is closed"
            part = TurnPart(str(seq % 2), "Ada" if seq % 2 else "Bob", f"{words} {seq}")
            await store.append_turn(EVENING, Turn(Seq(seq), TurnKind.SPEECH, float(seq), seq + 0.5, (part,)))
        assert b"quetzalcoatl" in server.bytes_of(postgres_place)
        await forget(database, clock, "1")
        assert await database.wipe()
    held = server.bytes_of(postgres_place)
    assert b"lighthouse" in held
    assert b"quetzalcoatl" not in held


async def test_writes_of_one_server_follow_one_another(postgres_place: SecretStr) -> None:
    """Of rival landings through two open databases, each of three rounds has one winner, and no turn is lost."""
    async with open_database(postgres_place) as mine, open_database(postgres_place) as theirs:
        async with mine.writing() as connection:
            claim = await claim_room(connection, 1)
        stores = [SqlTurnStore(fenced(each, claim), FakeClock()) for each in (mine, theirs)]
        await fill(stores[0], 30)
        for number in range(3):
            rivals = [store.land(landing(number * 10, number * 10 + 10, revision=number)) for store in stores]
            assert sorted(await asyncio.gather(*rivals)) == [False, True]
        await asyncio.gather(*(stores[seq % 2].append_turn(EVENING, turn(seq)) for seq in range(30, 50)))
        memory = await stores[1].load(EVENING)
        assert (memory.total_turns, memory.state.cursor, memory.state.revision) == (50, 30, 3)
