"""The commands work with a PostgreSQL database as with the file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bot.store.database import open_database
from tests.bot.cli.memory.stored_evening import data_dir, told
from tests.postgres import running_server

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import SecretStr

__all__ = ["data_dir"]

pytestmark = pytest.mark.postgres


@pytest.fixture(autouse=True)
def url(postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch) -> SecretStr:
    """The URL of an empty database, in the environment."""
    monkeypatch.setenv("ROOMTONE_DATABASE_URL", postgres_place.get_secret_value())
    return postgres_place


def test_every_command_reads_and_changes_it(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sessions are listed, searched, exported, imported, archived, pruned and forgotten; no database file appears."""
    assert "evening" in told(capsys, "memory", "list")
    assert "4411" in told(capsys, "memory", "search", "gate code")
    told(capsys, "memory", "export", "out")
    assert "4 known segments" in told(capsys, "memory", "import", "out", "--guild", "77")
    told(capsys, "memory", "compress", "--regardless")
    assert "Archived 1 segment" in told(capsys, "memory", "archive")
    told(capsys, "memory", "forget", "--person", "Bob", "--yes")
    assert "4411" not in told(capsys, "memory", "search", "gate code")
    assert "Lisbon" in told(capsys, "memory", "search", "Lisbon")
    # The evening is older than what is kept.
    assert "Memory: postgresql://" in told(capsys, "memory", "prune", "--yes")
    assert "No session is stored yet" in told(capsys, "memory", "list", status=1)
    assert not list(data_dir.parent.rglob("*.db"))


@pytest.mark.usefixtures("data_dir")
def test_the_open_sessions_of_a_bot_on_another_machine_stay(url: SecretStr, capsys: pytest.CaptureFixture[str]) -> None:
    """Its data folder is not on this machine, but the database knows that a bot runs."""

    async def prune_beside_a_bot() -> str:
        async with open_database(url) as database, database.held_by_bot():
            return await asyncio.to_thread(told, capsys, "memory", "prune", "--yes")

    assert "Deleted 1 session." not in asyncio.run(prune_beside_a_bot())
    assert "evening" in told(capsys, "memory", "list")
    assert "Deleted 1 session." in told(capsys, "memory", "prune", "--yes")


def test_an_empty_database_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A database in which nothing was stored has no sessions; a name that does not exist is a sentence."""
    monkeypatch.chdir(tmp_path)
    assert "No session is stored yet" in told(capsys, "memory", "list", status=1)
    monkeypatch.setenv("ROOMTONE_DATABASE_URL", running_server().url("absent").get_secret_value())
    assert "does not exist. Create it on its server" in told(capsys, "memory", "list", status=1)
