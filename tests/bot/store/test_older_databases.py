"""A database that any earlier version wrote opens, its facts are read, and its session goes on."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from bot.store.database import open_database
from bot.store.migrations import postgresql
from bot.store.migrations.upgrade import HEAD
from bot.store.prompts import PromptStore
from bot.store.search.indexing import catch_up
from bot.store.search.vector_store import VectorStore
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from compaction.model import CompactionState, Mode, Seq, SessionId
from compaction.payload import text_digest
from compaction.ports import Landing
from compaction.session import SessionMemory
from compaction.settings import CompactionSettings
from compaction.summary.extractive import ExtractiveSummariser
from tests.bot.store.old_schemas import BEFORE_ALEMBIC, FIRST_FORMS, POSTGRESQL_STEPS, STEPS
from tests.compaction.turn_store_contract import EVENING, T0, segment, turn
from tests.fakes.clock import FakeClock
from tests.postgres import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.bot.conftest import Place

FIRST_WITH_CHAPTERS = 9
OLD_TURNS = 63
OLD_DIGEST = text_digest("You take part.")
FIRST_WITH_PROMPTS = 3
PARAGRAPH = "Ada plans a hike! Bob is late, v1.5 of the map is his. They leave at nine."
OLD_FACTS: list[Mapping[str, Any]] = [
    {
        "turn_seq": 3,
        "slot": slot,
        "speaker": speaker,
        "at": T0 + 9.0,
        "text": text,
        "supersedes": tuple(supersedes),
        "note_id": note_id,
    }
    for slot, speaker, text, supersedes, note_id in (
        ("people", "Zoë", 'I said "slot": "people" — Grüße 🦄 \ud800', [], None),
        ("activity", "Bob", "On Bob's screen: a map.", [], "n1"),
        ("thread", "Ada", "When do we leave?", [], None),
        ("decision", "Ada", "We leave at nine.", ["evening:0-10#2", "old#0"], None),
        ("background", "Ada", "It rained.\\n", [], None),
        # A forgotten fact.
        ("background", "", "", ["evening:0-10#5"], None),
    )
]


def write_old_database(place: Place, version: int, *, first_forms: bool = False) -> None:
    """Write a database of this version with one open session: `OLD_TURNS` turns, a ledger segment and a recursive one.

    `place`: a new file, or a PostgreSQL database without tables. `first_forms`: its steps ran as they were committed
    first.
    """
    if isinstance(place, SecretStr):
        with psycopg.connect(place.get_secret_value()) as server:
            made = (postgresql.STATEMENTS, *POSTGRESQL_STEPS[int(postgresql.FIRST) : version])
            for statement in (statement for step in made for statement in step):
                server.execute(statement.encode())
            server.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
            server.execute("INSERT INTO alembic_version VALUES (%s)", [f"{version:04d}"])
            for table, row in _old_rows(version):
                names, holders = (
                    sql.SQL(", ").join(map(sql.Identifier, row)),
                    sql.SQL(", ").join(map(sql.Placeholder, row)),
                )
                insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(table), names, holders)
                server.execute(insert, row)
        return
    steps = [FIRST_FORMS.get(number, step) if first_forms else step for number, step in enumerate(STEPS, start=1)]
    with closing(sqlite3.connect(place)) as file, file:
        for statement in (statement for step in steps[:version] for statement in step):
            file.execute(statement)
        file.execute(f"PRAGMA user_version = {version}")
        for table, row in _old_rows(version):
            marks = ", ".join(f":{name}" for name in row)
            file.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", row)


def _old_rows(version: int) -> Iterator[tuple[str, dict[str, object]]]:
    if version >= FIRST_WITH_PROMPTS:
        yield "prompts", {"digest": OLD_DIGEST, "text": "You take part."}
    yield "sessions", {"id": EVENING, "started_at": T0, "cursor": 20, "revision": 2, "summary": "old", "last_at": T0}
    for seq in range(OLD_TURNS):
        said = turn(seq)
        yield (
            "turns",
            {
                "session_id": EVENING,
                "seq": seq,
                "kind": said.kind.value,
                "started_at": said.started_at,
                "ended_at": said.ended_at,
                "parts": json.dumps([[each.speaker_id, each.speaker, each.text] for each in said.parts]),
                "tombstone": False,
            },
        )
    for start, gist, facts, summariser in (
        (0, "Ada counted.", OLD_FACTS if version < FIRST_WITH_CHAPTERS else [], "llm ledger.v2"),
        (10, PARAGRAPH, [], "llm recursive.v2"),
    ):
        yield (
            "segments",
            {
                "session_id": EVENING,
                "id": f"{EVENING}:{start}-{start + 10}",
                "position": start // 10,
                "start_seq": start,
                "end_seq": start + 10,
                "started_at": T0 + start,
                "ended_at": T0 + start + 9,
                "gist": gist,
                "facts": json.dumps(facts),
                "note_ids": "[]",
                "summariser": summariser,
                "degraded": False,
                "closing": False,
                "created_at": T0 + 50,
                "original_tokens": 100,
                "compressed_tokens": 10,
            },
        )


@pytest.mark.asyncio
async def test_a_recursive_gist_becomes_the_paragraph(tmp_path: Path) -> None:
    """The whole text is the paragraph, and its first sentence is the gist."""
    write_old_database(tmp_path / "a.db", FIRST_WITH_CHAPTERS - 1)
    async with open_database(tmp_path / "a.db") as database:
        memory = await SqlTurnStore(database, FakeClock()).load(EVENING)
    recursive = memory.segments[1]
    assert (recursive.paragraph, recursive.gist, recursive.facts) == (PARAGRAPH, "Ada plans a hike!", ())


@pytest.mark.asyncio
async def test_the_search_index_of_an_older_database_stays(tmp_path: Path) -> None:
    """Only segments whose gist changed are indexed again."""
    path = tmp_path / "a.db"
    write_old_database(path, FIRST_WITH_CHAPTERS - 1)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            'INSERT INTO passages (session_id, kind, "key", start_seq, at, own, preceding, following, tags)'
            " VALUES (?, 'segment', ?, ?, 0, 'ada', '', '', '')",
            [(EVENING, f"{EVENING}:{start}-{start + 10}", start) for start in (0, 10)],
        )
    async with open_database(path) as database:
        kept = await database.rows("SELECT \"key\" FROM passages WHERE kind = 'segment'")
        assert kept == [(f"{EVENING}:0-10",)]
        await catch_up(database)
        again = await database.rows('SELECT "key" FROM passages WHERE kind = \'segment\' ORDER BY "key"')
        assert again == [(f"{EVENING}:0-10",), (f"{EVENING}:10-20",)]


@pytest.mark.asyncio
@pytest.mark.parametrize("version", [1, 2, 8, BEFORE_ALEMBIC])
async def test_the_first_forms_of_steps_come_forward(tmp_path: Path, version: int) -> None:
    """A database of steps that were changed soon after their commit becomes like any other: what is deleted is noticed
    by searches and is purged.
    """
    write_old_database(tmp_path / "a.db", version, first_forms=True)
    async with open_database(tmp_path / "a.db") as database:
        await catch_up(database)
        vectors = VectorStore(database)
        await vectors.purge()
        marks = dict(await database.rows("SELECT name, value FROM search_marks"))
        assert {"generation", "purged"} <= set(marks)
        assert "deletions" not in marks
        async with database.writing() as connection:
            await connection.exec_driver_sql("DELETE FROM turns WHERE seq = 20")
        after = dict(await database.rows("SELECT name, value FROM search_marks"))
        assert after["generation"] == marks["generation"] + 1
        assert await vectors.purge()
        async with database.writing() as connection:
            await connection.exec_driver_sql("DELETE FROM sessions")
        assert await database.rows("SELECT count(*) FROM turns, segments, passages") == [(0,)]


@pytest.mark.asyncio
@pytest.mark.parametrize("version", range(1, BEFORE_ALEMBIC + 1))
async def test_a_session_of_an_older_database_goes_on(tmp_path: Path, version: int) -> None:
    """The next batches are folded and stored after the migration."""
    write_old_database(tmp_path / "a.db", version)
    await _goes_on(tmp_path / "a.db")


@pytest.mark.postgres
@pytest.mark.asyncio
@pytest.mark.parametrize("version", range(int(postgresql.FIRST), int(HEAD)))
async def test_a_session_of_an_older_postgresql_database_goes_on(version: int) -> None:
    """The same on PostgreSQL, which begins with a later version."""
    server = running_server()
    name = server.create()
    write_old_database(server.url(name), version)
    await _goes_on(server.url(name))
    server.drop(name)


PROMPT_WITHOUT_SESSIONS = 18


@pytest.mark.asyncio
async def test_a_prompt_of_before_goes_with_the_last_session_of_that_time(tmp_path: Path) -> None:
    """Which session was sent it, nobody knows: it counts as sent in each, until its end or its last turn."""
    path = tmp_path / "a.db"
    write_old_database(path, BEFORE_ALEMBIC)
    with closing(sqlite3.connect(path)) as old, old:
        old.execute("INSERT INTO sessions (id, started_at, ended_at) VALUES ('ended', 5.0, 7.0)")
    await _keeps_its_prompt(path)


@pytest.mark.postgres
@pytest.mark.asyncio
async def test_a_prompt_of_before_goes_with_the_last_session_on_postgresql_too() -> None:
    """The same on PostgreSQL."""
    server = running_server()
    name = server.create()
    write_old_database(server.url(name), PROMPT_WITHOUT_SESSIONS)
    with psycopg.connect(server.url(name).get_secret_value()) as old:
        old.execute("INSERT INTO sessions (id, started_at, ended_at) VALUES ('ended', 5.0, 7.0)")
    await _keeps_its_prompt(server.url(name))
    server.drop(name)


async def _keeps_its_prompt(place: Place) -> None:
    async with open_database(place) as database:
        sent = await database.rows("SELECT session_id, sent_at FROM sent_prompts ORDER BY session_id")
        assert sent == [("ended", 7.0), (EVENING, turn(OLD_TURNS - 1).ended_at)]
        prompts, sessions = PromptStore(database), Sessions(database, FakeClock())
        for session_id, left in ((SessionId("ended"), {OLD_DIGEST: "You take part."}), (EVENING, {})):
            await sessions.delete(session_id)
            assert await prompts.prompts_by_digest([OLD_DIGEST]) == left


async def _goes_on(place: Place) -> None:
    async with open_database(place) as database:
        store = SqlTurnStore(database, FakeClock())
        extractive = ExtractiveSummariser()
        async with SessionMemory.open(
            EVENING,
            store=store,
            summariser=extractive,
            settings=CompactionSettings(),
            mode=Mode.SUMMARY,
            clock=FakeClock(),
        ) as memory:
            assert memory.cursor == 20
            for seq in range(63, 83):
                said = turn(seq)
                await memory.append(said.kind, said.parts, started_at=said.started_at, ended_at=said.ended_at)
            memory.context(max_input_tokens=8_000)
            await memory.settle()
            assert memory.cursor == 30
        stored = await store.load(EVENING)
        assert [each.end for each in stored.segments] == [10, 20, 30]
        landed = Landing(EVENING, Seq(30), 3, segment(30, 40), CompactionState(Seq(40), 4, "x", T0), ())
        assert await store.land(landed)
