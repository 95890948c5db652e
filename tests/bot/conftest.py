"""Provides `place`: tests that take it run twice, on a database file and on a database of a PostgreSQL server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import pytest

from bot.store.database import open_database
from tests.postgres import TEMPLATE, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import SecretStr

Place: TypeAlias = "Path | SecretStr"

# Emptied databases of this test process, for the next tests.
_spare: list[str] = []


@pytest.fixture
def postgres_place() -> Iterator[SecretStr]:
    """A fresh PostgreSQL database that is up to date."""
    server = running_server()
    if not _spare:
        if not server.has(TEMPLATE):
            made = server.create()
            asyncio.run(_bring_up(server.url(made)))
            server.rename(made, TEMPLATE)
        _spare.append(server.create(template=TEMPLATE))
    name = _spare.pop()
    yield server.url(name)
    if server.empty(name, like=TEMPLATE):
        _spare.append(name)
    else:
        server.drop(name)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | SecretStr:
    """A database that does not exist yet (SQLite) or has nothing in it (PostgreSQL)."""
    if request.param == "sqlite":
        return tmp_path / "a.db"
    made: SecretStr = request.getfixturevalue("postgres_place")
    return made


async def _bring_up(url: SecretStr) -> None:
    async with open_database(url):
        pass
