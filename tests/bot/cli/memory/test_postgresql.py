"""The commands work with a PostgreSQL database as with the file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.store.database import open_database
from tests.bot.cli.memory.stored_evening import at_evening, told
from tests.bot.evening import Evening

pytestmark = pytest.mark.postgres


@pytest.fixture(autouse=True)
def url(postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch) -> SecretStr:
    """The URL of an empty database, in the environment."""
    monkeypatch.setenv("ROOMTONE_DATABASE_URL", postgres_place.get_secret_value())
    return postgres_place


@pytest.mark.usefixtures("in_tmp_path")
def test_the_open_sessions_of_a_bot_on_another_machine_stay(
    url: SecretStr, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its data folder is not on this machine, but the database knows that a bot runs."""

    async def fill(evening: Evening) -> None:
        await evening.say("Hello.")

    at_evening(tmp_path, fill)

    async def prune_beside_a_bot() -> str:
        async with open_database(url) as database, database.held_by_bot():
            return await asyncio.to_thread(told, capsys, "memory", "prune", "--yes")

    assert "Deleted 1 session." not in asyncio.run(prune_beside_a_bot())
    assert "evening" in told(capsys, "memory", "list")
    assert "Deleted 1 session." in told(capsys, "memory", "prune", "--yes")
