"""A command of a newer Roomtone beside a bot of an older one."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bot.folder_lock import folder_lock
from bot.store.database import open_database
from bot.store.migrations.upgrade import HEAD
from bot.texts.text import in_language, sentence_of
from compaction.errors import StoreError
from tests.bot.cli.memory.stored_evening import told
from tests.bot.store.old_schemas import BEFORE_ALEMBIC
from tests.bot.store.test_older_databases import write_old_database
from tests.postgres import running_server

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    ("list",),
    ("search", "hike"),
    ("prune", "--yes"),
    ("forget", "--person", "Ada", "--yes"),
    ("export", "out"),
    ("import", "segment.json"),
)
REFUSED = f"and this Roomtone needs version {int(HEAD)}. Only the bot itself brings it up to date"


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("ROOMTONE_RECALL__EMBEDDER", "off")
    (tmp_path / "data").mkdir()
    (tmp_path / "segment.json").write_text("{}")
    return tmp_path / "data"


def test_no_command_migrates_the_memory_of_a_bot_that_runs(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its tables would change under it. When it has ended, any command brings them up to date."""
    path = data_dir / "roomtone.db"
    write_old_database(path, BEFORE_ALEMBIC)
    with folder_lock(data_dir):
        for words in COMMANDS:
            assert REFUSED in told(capsys, "memory", *words, status=1)
    with closing(sqlite3.connect(path)) as unchanged:
        assert unchanged.execute("PRAGMA user_version").fetchone() == (BEFORE_ALEMBIC,)
        assert unchanged.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone() is None
    assert "evening" in told(capsys, "memory", "list")


@pytest.mark.postgres
def test_nobody_migrates_a_postgresql_database_that_a_bot_uses(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a command on any machine, nor a second bot, which would be refused only afterwards."""
    server = running_server()
    name = server.create()
    url = server.url(name)
    monkeypatch.setenv("ROOMTONE_DATABASE_URL", url.get_secret_value())

    async def beside_a_bot() -> None:
        async with open_database(url) as database, database.held_by_bot():
            async with database.writing() as connection:
                await connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{int(HEAD) - 1:04d}'")
            assert REFUSED in await asyncio.to_thread(told, capsys, "memory", "list", status=1)
            with pytest.raises(StoreError, match="Only the bot itself") as refused:
                async with open_database(url):
                    pass
            assert "PostgreSQL notices within half a minute" in str(refused.value)
            assert "merkt PostgreSQL das" in in_language(sentence_of(refused.value), "de")

    asyncio.run(beside_a_bot())
    assert not list(data_dir.iterdir())
    server.drop(name)
