"""Provides databases for tests: `place` is a file and a database of a PostgreSQL server, so a test that takes it runs
twice.

What opens a database is imported when it is needed: tests/conftest.py marks every test of which a fixture's module
imports it, and two fixtures of this one are every test's.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import pytest
import pytest_asyncio

from tests.patience import lengthened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from pydantic import SecretStr

    from tests.bot.evening import Evening
    from tests.postgres import PostgresServer

Place: TypeAlias = "Path | SecretStr"

# How long, in real time, the bot waits for its database, its threads, a page or another of its processes. After them it
# goes on without what it waited for, and a test would fail because the machine stood still for a moment.
BOT_LIMITS = (
    ("bot.brain.embedded.chat", "WAIT_S"),
    ("bot.brain.replier", "ONE_MOMENT_AFTER_S"),
    ("bot.llm.chat_client", "CONNECT_TIMEOUT_S"),
    ("bot.mcp.connection", "CONNECT_TIMEOUT_S"),
    ("bot.mcp.connection", "CHECK_TIMEOUT_S"),
    ("bot.mcp.servers", "DOCTOR_TIMEOUT_S"),
    ("bot.models.loaded_voices", "WAIT_FOR_VOICE_S"),
    ("bot.conversation.conversation", "LAST_NOTICES_S"),
    ("bot.conversation.conversation", "LAST_WORDS_OF_PROCESS_S"),
    ("bot.conversation.conversation", "LAST_WORDS_S"),
    ("bot.conversation.eager_recognition", "TEXT_TIMEOUT_S"),
    ("bot.conversation.hearing", "PASS_ON_S"),
    ("bot.conversation.speaking", "SHUT_DOWN_S"),
    ("bot.conversation.turn_taking", "RECORD_REPLY_S"),
    ("bot.room.watches", "ANSWER_WITHIN_S"),
    ("bot.room.room", "FINISH_S"),
    ("bot.room.room", "UPKEEP_S"),
    ("bot.store.dialects.postgresql_lock", "ANSWER_S"),
    ("bot.store.dialects.postgresql_lock", "CHECK_S"),
    ("bot.web.dashboard_routes", "WRITE_TIMEOUT_S"),
    ("bot.web.socket", "HELLO_TIMEOUT_S"),
    ("bot.web.socket", "SEND_TIMEOUT_S"),
    ("voice.endpoint", "CONNECT_TIMEOUT_S"),
    ("voice.listening.turn_detection", "ANSWER_TIMEOUT_S"),
)


@pytest.fixture(autouse=True)
def _time_for_the_bot(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the bot wait on a busy machine, unless it talks to the local Discord in real time."""
    in_real_time = any(request.node.get_closest_marker(each) is not None for each in ("rehearsal", "discord"))
    with lengthened(() if in_real_time else BOT_LIMITS):
        yield


@pytest.fixture(autouse=True)
def _data_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the key of who was forgotten in a PostgreSQL database out of the working directory."""
    monkeypatch.setattr("bot.store.database.DATA_DIR", tmp_path_factory.getbasetemp() / "data")


@pytest.fixture
def postgres_place() -> Iterator[SecretStr]:
    """A fresh PostgreSQL database that is up to date."""
    from tests.postgres import running_server

    with _database_of(running_server()) as url:
        yield url


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A SQLite database that is up to date and has nothing in it, for what does not depend on the kind of database."""
    from tests.bot.empty_database import put_empty_database

    path = tmp_path / "a.db"
    put_empty_database(path)
    return path


@pytest_asyncio.fixture
async def evening(file: Path) -> AsyncIterator[Evening]:
    """A session without turns, in a SQLite database."""
    from tests.bot.evening import Evening

    async with Evening(file) as opened:
        yield opened


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest) -> Place:
    """A database that is up to date and has nothing in it, of each kind."""
    made: Place = request.getfixturevalue("file" if request.param == "sqlite" else "postgres_place")
    return made


@contextmanager
def _database_of(server: PostgresServer) -> Iterator[SecretStr]:
    """Yield the URL of a database that is up to date and has nothing in it."""
    from tests.postgres import TEMPLATE

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


async def _bring_up(place: SecretStr) -> None:
    from bot.store.database import open_database

    async with open_database(place):
        pass
