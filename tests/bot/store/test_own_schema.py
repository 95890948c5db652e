"""A file with a schema that is not Roomtone's is not restored, and nothing in it has run. One of every version is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine

from bot.store import restore
from bot.store.backup import BackupError, examine_backup, write_backup
from bot.store.database import open_database
from bot.store.dialects.sqlite import verify_database_file
from bot.store.migrations.own_schema import foreign_part
from bot.store.migrations.upgrade import HEAD, make_tables
from bot.store.restore import restore_backup
from bot.store.turns import SqlTurnStore
from bot.texts.text import in_language
from compaction.errors import StoreError
from tests.bot.store.old_schemas import BEFORE_ALEMBIC
from tests.bot.store.test_older_databases import write_old_database
from tests.bot.store.test_restore import contents
from tests.compaction.turn_store_contract import EVENING, fill
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_790_000_000.0
BRINGS_BACK = """
    CREATE TRIGGER turn_restored AFTER DELETE ON turns BEGIN
        INSERT INTO turns (session_id, seq, kind, started_at, ended_at, parts, tombstone)
        VALUES (old.session_id, old.seq, old.kind, old.started_at, old.ended_at, old.parts, old.tombstone);
    END
"""


def edit(name: str, old: str, new: str) -> str:
    """Return the statement that changes a definition where SQLite itself would not let it be changed."""
    return f"UPDATE sqlite_schema SET sql = replace(sql, '{old}', '{new}') WHERE name = '{name}'"


# What a hostile file does, and what of it is named.
HOSTILE = {
    "a trigger brings deleted turns back": ([BRINGS_BACK], 'trigger "turn_restored"'),
    "a trigger copies what is said": (
        [
            "CREATE TABLE copies (parts)",
            "CREATE TRIGGER copied AFTER INSERT ON turns BEGIN INSERT INTO copies VALUES (new.parts); END",
        ],
        'table "copies"',
    ),
    "an own trigger does nothing": (
        ["DROP TRIGGER turn_deleted", "CREATE TRIGGER turn_deleted AFTER DELETE ON turns BEGIN SELECT 1; END"],
        'trigger "turn_deleted"',
    ),
    "an own trigger is missing": (["DROP TRIGGER turn_forgotten"], 'trigger "turn_forgotten"'),
    "a trigger counts what nothing reads": (
        [
            "PRAGMA writable_schema = ON",
            edit("passage_deleted", "''generation''", "''deletions''"),
        ],
        'trigger "passage_deleted"',
    ),
    "a view in the place of a table": (
        [
            "ALTER TABLE hearing_opt_outs RENAME TO hidden",
            "CREATE VIEW hearing_opt_outs AS SELECT guild_id, person_id, since FROM hidden WHERE 0",
        ],
        'table "hidden"',
    ),
    "a view of the version": (
        [
            "DROP TABLE alembic_version",
            "CREATE VIEW alembic_version AS WITH RECURSIVE n (x) AS (SELECT 1 UNION SELECT x FROM n) SELECT x FROM n",
        ],
        'view "alembic_version"',
    ),
    "a virtual table": (["CREATE VIRTUAL TABLE words USING fts5(word)"], 'table "words"'),
    "a generated column": (
        ["ALTER TABLE turns ADD COLUMN spy TEXT GENERATED ALWAYS AS (upper(parts)) VIRTUAL"],
        'table "turns"',
    ),
    "a check that calls a function": (
        [
            "PRAGMA writable_schema = ON",
            edit("hearing_opt_outs", "since FLOAT", "since FLOAT CHECK (abs(person_id) <> 5)"),
        ],
        'table "hearing_opt_outs"',
    ),
    "turns stay when their session goes": (
        [
            "PRAGMA writable_schema = ON",
            edit("turns", "ON DELETE CASCADE", ""),
        ],
        'table "turns"',
    ),
    "an index of an expression": (["CREATE INDEX spy ON turns (lower(parts))"], 'index "spy"'),
    "an own index is of something else": (
        ["DROP INDEX notes_by_status", "CREATE INDEX notes_by_status ON notes (lower(what))"],
        'index "notes_by_status"',
    ),
    "an older version than its tables": (
        ["UPDATE alembic_version SET version_num = '0005'", "PRAGMA user_version = 5"],
        'table "',
    ),
    "a name of many pages": ([f'CREATE TABLE "{"x" * 5000}\n" (a)'], f'table "{"x" * 60}" \\('),
}


async def write_database(path: Path) -> None:
    """Write a database of this version with one session."""
    async with open_database(path) as database:
        await fill(SqlTurnStore(database, FakeClock()), 10)


def change(path: Path, *statements: str) -> None:
    """Run statements as somebody would who wants to harm."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.asyncio
@pytest.mark.parametrize("how", HOSTILE)
async def test_a_hostile_backup_is_refused(tmp_path: Path, how: str) -> None:
    """The sentence names the thing and the remedy, and the present database is as it was."""
    statements, named = HOSTILE[how]
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    await write_database(path)
    write_backup(path, file)
    change(file, *statements)
    before = contents(path.parent)
    with pytest.raises(BackupError, match=f"indexes and triggers: {named}.*Take another backup.*Nothing was changed"):
        await restore_backup(file, path, now=NOW)
    assert contents(path.parent) == before


@pytest.mark.asyncio
async def test_what_is_wrong_is_told_in_german_as_a_whole(tmp_path: Path) -> None:
    """Also the part in brackets."""
    path = tmp_path / "roomtone.db"
    await write_database(path)
    change(path, "CREATE TABLE copies (parts)")
    with closing(sqlite3.connect(path)) as connection:
        found = foreign_part(connection)
    assert found is not None
    assert 'table "copies" (das hat kein Roomtone angelegt)' in in_language(found.sentence(path), "de")


@pytest.mark.asyncio
@pytest.mark.parametrize("disguise", ["name = 'turn_deleted'", "type = 'table'"])
async def test_a_trigger_in_disguise_is_refused(tmp_path: Path, disguise: str) -> None:
    """One under the name of an own trigger, which is there too, or called a table. SQLite takes some for damage."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    path.parent.mkdir()
    await write_database(file)
    disguised = f"UPDATE sqlite_schema SET {disguise} WHERE name = 'turn_restored'"
    change(file, BRINGS_BACK, "PRAGMA writable_schema = ON", disguised)
    with pytest.raises(BackupError, match=r"tables, indexes and triggers: |is damaged"):
        await restore_backup(file, path, now=NOW)
    assert contents(path.parent) == {}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("rows", "expected"),
    [(("0099",), "of version 99,"), (("x'; --",), "of version x'; --,"), (("0020", "0005"), "of version ")],
)
async def test_a_version_that_is_none_is_refused(tmp_path: Path, rows: tuple[str, ...], expected: str) -> None:
    """What Alembic's table says is believed only if it is one version that this Roomtone knows."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    path.parent.mkdir()
    await write_database(file)
    change(file, "DELETE FROM alembic_version")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany("INSERT INTO alembic_version VALUES (?)", [(each,) for each in rows])
    with pytest.raises(StoreError, match=expected):
        await restore_backup(file, path, now=NOW)
    assert contents(path.parent) == {}


@pytest.mark.asyncio
@pytest.mark.parametrize("version", [1, 8, BEFORE_ALEMBIC])
async def test_a_trigger_does_not_act_in_the_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """An old backup is compared with its own version before the first step runs, and so is a file that was exchanged
    after it had been examined.
    """
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "old.db"
    path.parent.mkdir()
    write_old_database(file, version)
    change(file, "CREATE TRIGGER acts AFTER UPDATE ON segments BEGIN DELETE FROM turns; END")
    with pytest.raises(BackupError, match='trigger "acts"'):
        examine_backup(file)
    upgraded: list[Path] = []

    async def note(upgrading: Path) -> None:
        upgraded.append(upgrading)

    monkeypatch.setattr(restore, "_examine", lambda *_: None)
    monkeypatch.setattr(restore, "_upgrade", note)
    with pytest.raises(BackupError, match='trigger "acts"'):
        await restore_backup(file, path, now=NOW)
    assert not upgraded
    assert contents(path.parent) == {}


@pytest.mark.asyncio
@pytest.mark.parametrize("version", range(1, BEFORE_ALEMBIC + 1))
@pytest.mark.parametrize("first_forms", [False, True], ids=["as shipped", "as first committed"])
async def test_a_backup_of_before_alembic_is_ours(tmp_path: Path, version: int, first_forms: bool) -> None:
    """What any old version wrote passes as it is, and upgraded."""
    path = tmp_path / "old.db"
    write_old_database(path, version, first_forms=first_forms)
    assert examine_backup(path).turns == 63
    async with open_database(path):
        pass
    assert examine_backup(path).turns == 63


@pytest.mark.asyncio
@pytest.mark.parametrize("version", range(BEFORE_ALEMBIC + 1, int(HEAD) + 1))
async def test_a_backup_of_a_later_version_is_ours(tmp_path: Path, version: int) -> None:
    """The same with a version that is in Alembic's table."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "old.db"
    engine = create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        make_tables(connection, f"{version:04d}")
        connection.exec_driver_sql("INSERT INTO sessions (id, started_at) VALUES (?, 5.0)", (EVENING,))
    engine.dispose()
    assert (await restore_backup(file, path, now=NOW)).content.sessions == 1


@pytest.mark.asyncio
async def test_what_sqlite_counts_for_itself_is_no_harm(tmp_path: Path) -> None:
    """An owner has run ANALYZE."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    await write_database(file)
    change(file, "ANALYZE")
    assert (await restore_backup(file, path, now=NOW)).content.turns == 10


@pytest.mark.asyncio
async def test_a_database_with_something_foreign_is_not_backed_up(tmp_path: Path) -> None:
    """No restore would take it. Whoever put a file into the data folder by hand hears it here, and from `doctor`."""
    path, file = tmp_path / "roomtone.db", tmp_path / "copy.db"
    await write_database(path)
    verify_database_file(path)
    change(path, BRINGS_BACK)
    with pytest.raises(StoreError, match=r'roomtone.db does not have .* trigger "turn_restored".*undo the change'):
        write_backup(path, file)
    assert not file.exists()
    with pytest.raises(StoreError, match=r'trigger "turn_restored".*Stop the bot'):
        verify_database_file(path)


def test_nothing_of_ours_hides_behind_a_comment() -> None:
    """Space is compared as one blank, also where a line ends; a comment would end there, so ours have none."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        make_tables(connection, HEAD)
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        assert foreign_part(driver) is None
        definitions = [sql for (sql,) in driver.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
    engine.dispose()
    assert not [each for each in definitions if "--" in each or "/*" in each]
