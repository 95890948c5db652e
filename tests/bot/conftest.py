"""Provides databases for tests: `place` is a file and a database of a PostgreSQL server, so a test that takes it runs
twice. `vector_place` is also a database of a server with pgvector, so a test that takes it runs three times.

Take `vector_place` where embeddings are stored, searched or forgotten: nothing else asks pgvector, so other tests would
only take longer.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import pytest

from bot.store.database import open_database
from tests.postgres import TEMPLATE, pgvector_server, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import SecretStr

    from tests.postgres import PostgresServer

Place: TypeAlias = "Path | SecretStr"


@pytest.fixture
def postgres_place() -> Iterator[SecretStr]:
    """A fresh PostgreSQL database that is up to date, on a server without pgvector."""
    with _database_of(running_server()) as url:
        yield url


@pytest.fixture
def pgvector_place() -> Iterator[SecretStr]:
    """A fresh PostgreSQL database that is up to date, with pgvector."""
    with _database_of(pgvector_server()) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A database that does not exist yet (SQLite) or has nothing in it (PostgreSQL)."""
    return _place(request, tmp_path)


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.postgres),
        pytest.param("pgvector", marks=pytest.mark.postgres),
    ]
)
def vector_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """As `place`, and also a database with pgvector."""
    return _place(request, tmp_path)


def _place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return tmp_path / "a.db"
    made: SecretStr = request.getfixturevalue("postgres_place" if request.param == "postgresql" else "pgvector_place")
    return made


@contextmanager
def _database_of(server: PostgresServer) -> Iterator[SecretStr]:
    """Yield the URL of a database that is up to date and has nothing in it."""
    if not server.spare:
        if not server.has(TEMPLATE):
            made = server.create()
            asyncio.run(_bring_up(server.url(made)))
            server.rename(made, TEMPLATE)
        server.spare.append(server.create(template=TEMPLATE))
    name = server.spare.pop()
    yield server.url(name)
    if server.empty(name, like=TEMPLATE):
        server.spare.append(name)
    else:
        server.drop(name)


async def _bring_up(url: SecretStr) -> None:
    async with open_database(url):
        pass
