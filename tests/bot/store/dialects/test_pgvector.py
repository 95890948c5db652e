"""With pgvector the database finds what the search in memory finds, whenever the extension comes or goes."""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import psycopg
import pytest
from psycopg import sql

from bot.cli.doctor.storage import check_database
from bot.store.database import Database, open_database
from bot.store.dialects import pgvector
from bot.store.migrations import postgresql
from bot.store.search.vector_memory import MemoryVectorSearch
from bot.store.search.vector_search import DatabaseVectorSearch, vector_search
from compaction.memory.passage import PassageKind, Scope
from compaction.model import Seq
from tests.bot.store.dialects.test_postgresql import run
from tests.bot.store.old_schemas import STEPS
from tests.bot.store.search.test_search import _Room
from tests.bot.store.search.test_vector_store import count, like
from tests.compaction.memory.recall_index_contract import ELSEWHERE, EVENING, MORNING, SAID, T0, note, segment, turn
from tests.patience import PATIENCE_S
from tests.postgres import pgvector_server, running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pydantic import SecretStr

    from tests.postgres import PostgresServer

pytestmark = pytest.mark.postgres

# A user who may not create extensions, as the documentation tells to make one.
PLAIN = "plain"
IN_MEMORY = "the bot searches the embeddings in its memory"


class OwnedDatabase:
    """An empty database of the plain user, on the server with pgvector."""

    def __init__(self, server: PostgresServer) -> None:
        self.name = server.create()
        self.server = server
        self.administrators = server.url(self.name)
        self.place = server.url(self.name, user=PLAIN)
        self.administer(f"ALTER DATABASE {self.name} OWNER TO {PLAIN}")

    def administer(self, statement: str) -> None:
        """Run a statement as the server's administrator."""
        run(self.administrators, statement)


@pytest.fixture
def owned() -> Iterator[Callable[[], OwnedDatabase]]:
    """A function that makes another database of the plain user."""
    server = pgvector_server()
    with psycopg.connect(server.url("postgres").get_secret_value(), autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [PLAIN]).fetchone() is None:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(PLAIN)))
    made: list[OwnedDatabase] = []

    def make() -> OwnedDatabase:
        made.append(OwnedDatabase(server))
        return made[-1]

    yield make
    for each in made:
        server.drop(each.name)


def asks_the_database(database: Database) -> bool:
    """Return whether searches of this open database go to pgvector."""
    return isinstance(vector_search(database, most=9), DatabaseVectorSearch)


async def searched(database: Database) -> int:
    """Return how many embeddings pgvector can search."""
    return int((await database.rows("SELECT count(embedding) FROM searched_vectors"))[0][0])


@pytest.mark.asyncio
async def test_it_finds_what_the_search_in_memory_finds(pgvector_place: SecretStr) -> None:
    """For random embeddings and scopes both give the same passages in the same order, with the same cosines."""
    numbers, rng = np.random.default_rng(3), random.Random(3)

    def unit() -> list[float]:
        made = numbers.standard_normal(48)
        return [float(each) for each in made / np.linalg.norm(made)]

    async with open_database(pgvector_place) as database:
        room = _Room(database)
        for session_id in (EVENING, MORNING, ELSEWHERE):
            said = [turn(seq, f"The lighthouse {seq}.", rng.choice(["Ada Lovelace", "Bob"])) for seq in range(40)]
            await room.tell(session_id, *said)
        await room.tell(EVENING, note("n1", "A map of the Algarve"), segment(0, 4, "They settle on Lisbon."))
        while waiting := await room.vectors.unembedded(limit=50):
            await room.vectors.store("random", {each: unit() for each, _ in waiting})
        memory = MemoryVectorSearch(database, most=1_000)
        assert asks_the_database(database)
        found = 0
        for _ in range(60):
            scope = Scope(
                guild_id=rng.choice([None, 1, 2]),
                channels=rng.choice([None, frozenset({10, 11}), frozenset({20})]),
                session_id=rng.choice([None, None, EVENING, MORNING]),
                speaker=rng.choice([None, None, "bob", "22", "..."]),
                since=rng.choice([None, T0 + 40.0]),
                until=rng.choice([None, T0 + 100.0]),
                kinds=rng.choice([None, None, frozenset({PassageKind.NOTE, PassageKind.SEGMENT})]),
                in_view=rng.choice([None, (EVENING, Seq(12))]),
            )
            vector, model = unit(), rng.choice(["random"] * 9 + ["other"])
            theirs = await room.vectors.nearest(vector, scope, model=model, limit=7)
            mine = await memory.nearest(vector, scope, model=model, limit=7)
            assert [each for each, _ in theirs] == [each for each, _ in mine], scope
            assert [cosine for _, cosine in theirs] == pytest.approx([cosine for _, cosine in mine], abs=0.002)
            found += len(mine)
        assert found > 60
        # Another width than the stored one, and one that no halfvec can have.
        assert await room.vectors.nearest([1.0, 0.0], Scope(), model="random", limit=7) == ()
        assert await room.vectors.nearest([0.0] * 20_000, Scope(), model="random", limit=7) == ()


@pytest.mark.asyncio
async def test_a_stored_embedding_keeps_its_numbers(pgvector_place: SecretStr) -> None:
    """Negative, positive and zero components are those of the stored bytes."""
    async with open_database(pgvector_place) as database:
        room = _Room(database)
        await room.tell(EVENING, SAID[0])
        ((passage_id, _),) = await room.vectors.unembedded(limit=1)
        await room.vectors.store("letters", {passage_id: [-1.0, -0.5, 0.0, 0.25, 1.0]})
        ((kept,),) = await database.rows("SELECT embedding::real[] FROM searched_vectors")
    assert kept == pytest.approx([-1.0, -0.5, 0.0, 0.25, 1.0], abs=0.005)


@pytest.mark.asyncio
async def test_an_extension_that_comes_later_is_used_from_the_next_start(owned: Callable[[], OwnedDatabase]) -> None:
    """Until then the bot searches in memory, and doctor says what the administrator has to do. At the next start the
    stored embeddings are converted; what a bot stores that runs since before is found too.
    """
    later = owned()
    async with open_database(later.place) as running:
        room = _Room(running)
        await room.tell(EVENING, *SAID[:3])
        await room.embed()
        assert not asks_the_database(running)
        assert len(await like(room.vectors, "lighthouse")) == 3
        told = check_database(later.place).detail
        assert IN_MEMORY in told
        assert "`CREATE EXTENSION vector`" in told
        later.administer("CREATE EXTENSION vector")
        assert "from its next start on, pgvector 0." in check_database(later.place).detail
        async with open_database(later.place) as restarted:
            assert asks_the_database(restarted)
            assert await searched(restarted) == 3
            await room.tell(EVENING, SAID[3])
            await room.embed()
            assert len(await like(_Room(restarted).vectors, "lighthouse")) == 4
            await room.forget(EVENING, 1)
            assert len(await like(_Room(restarted).vectors, "lighthouse")) == 3
            assert len(await like(room.vectors, "lighthouse")) == 3
    assert "searches the embeddings" in check_database(later.place).detail
    assert IN_MEMORY not in check_database(later.place).detail


@pytest.mark.asyncio
async def test_an_extension_that_goes_is_done_without(owned: Callable[[], OwnedDatabase]) -> None:
    """After DROP EXTENSION the next start removes what was made for it, and searches in memory."""
    place = owned()
    place.administer("CREATE EXTENSION vector")
    async with open_database(place.place) as database:
        room = _Room(database)
        await room.tell(EVENING, *SAID[:3])
        await room.embed()
        assert asks_the_database(database)
    place.administer("DROP EXTENSION vector CASCADE")
    async with open_database(place.place) as database:
        room = _Room(database)
        await room.tell(EVENING, SAID[3])
        await room.embed()
        assert not asks_the_database(database)
        assert len(await like(room.vectors, "lighthouse")) == 4
        assert await database.rows("SELECT to_regclass('searched_vectors')") == [(None,)]


@pytest.mark.asyncio
async def test_an_interrupted_conversion_goes_on(
    owned: Callable[[], OwnedDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest are converted first, in several transactions. The next start converts those that are missing."""
    place = owned()
    async with open_database(place.place) as database:
        room = _Room(database)
        await room.tell(EVENING, *(turn(seq, f"Some words about the lighthouse {seq}.") for seq in range(9)))
        await room.embed()
    place.administer("CREATE EXTENSION vector")
    monkeypatch.setattr(pgvector, "_FILL", pgvector._FILL.replace("LIMIT 1000", "LIMIT 2"))
    async with open_database(place.place) as database:
        assert await searched(database) == 9
    # What a start that was killed after two transactions leaves.
    run(place.place, "DELETE FROM searched_vectors WHERE vector_id <= (SELECT max(id) - 4 FROM passage_vectors)")
    async with open_database(place.place) as database:
        assert await searched(database) == 9
        assert len(await like(_Room(database).vectors, "lighthouse")) == 9


@pytest.mark.asyncio
async def test_a_process_that_may_not_migrate_uses_what_is_prepared_and_changes_nothing(
    owned: Callable[[], OwnedDatabase],
) -> None:
    """Neither before pgvector is used, nor while embeddings are still converted; then the database searches them."""
    place = owned()
    async with open_database(place.place) as database:
        room = _Room(database)
        await room.tell(EVENING, *SAID[:3])
        await room.embed()
    place.administer("CREATE EXTENSION vector")
    async with open_database(place.place, migrates=False) as database:
        assert not asks_the_database(database)
        assert await database.rows("SELECT to_regclass('searched_vectors')") == [(None,)]
    async with open_database(place.place), open_database(place.place, migrates=False) as database:
        assert asks_the_database(database)
        assert len(await like(_Room(database).vectors, "lighthouse")) == 3
    run(place.place, "DELETE FROM searched_vectors WHERE vector_id = (SELECT min(id) FROM passage_vectors)")
    async with open_database(place.place, migrates=False) as database:
        assert not asks_the_database(database)


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["0014", "0015", "0016"])
@pytest.mark.parametrize("has_pgvector", [False, True], ids=["without", "with"])
async def test_an_older_database_comes_forward(*, has_pgvector: bool, version: str) -> None:
    """A database of every older schema is brought up to date on both kinds of servers, and its embeddings are found."""
    server = pgvector_server() if has_pgvector else running_server()
    name = server.create()
    place = server.url(name)
    try:
        for statement in postgresql.STATEMENTS:
            run(place, statement)
        for statement in (each for step in STEPS[int(postgresql.FIRST) : int(version)] for each in step):
            run(place, statement)
        run(place, "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        run(place, f"INSERT INTO alembic_version VALUES ('{version}')")
        run(place, "INSERT INTO sessions (id, guild_id, started_at) VALUES ('evening', 1, 0)")
        run(
            place,
            "INSERT INTO passages (session_id, kind, key, start_seq, at, own, preceding, following, tags, embedded_by)"
            " VALUES ('evening', 'turn', '0', 0, 0, 'lighthous', '', '', 'g1', 'm')",
        )
        run(place, r"INSERT INTO passage_vectors (passage_id, model, scale, vector) VALUES (1, 'm', 0.01, '\x8164')")
        async with open_database(place) as database:
            assert asks_the_database(database) is has_pgvector
            ((found, cosine),) = await _Room(database).vectors.nearest(
                [0.0, 1.0], Scope(guild_id=1), model="m", limit=3
            )
            assert (found, round(cosine, 2)) == (1, 1.0)
    finally:
        server.drop(name)


@pytest.mark.asyncio
async def test_what_is_forgotten_is_in_no_file_of_the_database(pgvector_place: SecretStr) -> None:
    """After a wipe no file has a byte of the embedding of a forgotten turn, as pgvector has it, and the others stay."""
    server = pgvector_server()
    async with open_database(pgvector_place) as database:
        room = _Room(database)
        await room.tell(EVENING, *SAID[:3])
        waiting = [each for each, _ in await room.vectors.unembedded(limit=9)]
        made = np.random.default_rng(5).standard_normal((3, 64))
        await room.vectors.store("m", {each: [float(x) for x in row] for each, row in zip(waiting, made, strict=True)})
        stored = await database.rows("SELECT halfvec_send(embedding) FROM searched_vectors ORDER BY passage_id")
        # A halfvec has its length first; its numbers are sent with the high byte first.
        kept = [np.frombuffer(sent[4:], dtype=">f2").astype("<f2").tobytes() for (sent,) in stored]
        assert all(each in server.bytes_of(pgvector_place) for each in kept)
        await room.forget(EVENING, 1)
        assert await searched(database) == await count(database) == 2
        assert await database.wipe()
    held = server.bytes_of(pgvector_place)
    assert [each in held for each in kept] == [True, False, True]


@pytest.mark.asyncio
async def test_a_dump_is_restored_with_and_without_it(owned: Callable[[], OwnedDatabase], tmp_path: Path) -> None:
    """A dump of a database with pgvector is restored without it, and a dump of that with it again. Nothing is lost:
    pg_restore says what it cannot make, and the next start removes what is left of it.
    """
    first, without, again = owned(), owned(), owned()
    for each in (first, again):
        each.administer("CREATE EXTENSION vector")
    async with open_database(first.place) as database:
        room = _Room(database)
        await room.tell(EVENING, *SAID[:3])
        await room.embed()
        assert asks_the_database(database)
    said = carry(first, without, tmp_path / "first.dump")
    assert "errors ignored on restore" in said
    async with open_database(without.place) as database:
        room = _Room(database)
        assert not asks_the_database(database)
        assert len(await like(room.vectors, "lighthouse")) == 3
        await room.store.append_turn(EVENING, SAID[3])
        await room.embed()
        assert len(await like(room.vectors, "lighthouse")) == 4
    assert carry(without, again, tmp_path / "second.dump") == ""
    async with open_database(again.place) as database:
        assert asks_the_database(database)
        assert len(await like(_Room(database).vectors, "lighthouse")) == 4
        assert await database.rows("SELECT count(*) FROM turns") == [(4,)]


def carry(source: OwnedDatabase, target: OwnedDatabase, file: Path) -> str:
    """Dump one database and restore it as another, as its owner; return what pg_restore says."""
    programs = source.server.programs
    dumping = [str(programs / "pg_dump"), "--format=custom", f"--file={file}", source.place.get_secret_value()]
    subprocess.run(dumping, check=True, timeout=PATIENCE_S)
    restoring = [str(programs / "pg_restore"), f"--dbname={target.place.get_secret_value()}", str(file)]
    restored = subprocess.run(restoring, check=False, timeout=PATIENCE_S, capture_output=True, text=True)
    return restored.stderr


def test_a_server_without_it_says_how_to_get_it(postgres_place: SecretStr) -> None:
    """Doctor names the package and the image."""
    told = check_database(postgres_place).detail
    assert IN_MEMORY in told
    assert "postgresql-NN-pgvector" in told
