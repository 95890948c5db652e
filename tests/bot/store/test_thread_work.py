"""A long computation inside a write transaction is not taken for a process that hangs."""

from __future__ import annotations

import ast
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bot import store
from bot.store.database import open_database
from bot.store.thread_work import in_thread

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

# As long as only a failing test waits.
PATIENCE_S = 30.0


class Listening:
    """A connection that counts what the database is asked, and lets the work end then."""

    def __init__(self, connection: AsyncConnection, heard: threading.Event) -> None:
        self._connection = connection
        self._heard = heard
        self.asked = 0

    async def execute(self, statement: object) -> None:
        """Ask the database."""
        await self._connection.execute(statement)  # type: ignore[call-overload]
        self.asked += 1
        self._heard.set()


@pytest.mark.asyncio
async def test_the_database_hears_of_work_that_takes_long(tmp_path: Path) -> None:
    """The work goes on until the database has heard something, and its result is returned."""
    heard = threading.Event()
    async with open_database(tmp_path / "a.db") as database, database.writing() as connection:
        listening = Listening(connection, heard)
        made = await in_thread(listening, lambda: heard.wait(PATIENCE_S), sign_every_s=0.0)  # type: ignore[arg-type]
    assert made
    assert listening.asked


@pytest.mark.asyncio
async def test_what_the_work_raises_is_raised(tmp_path: Path) -> None:
    """The transaction is rolled back as after any other error."""

    def broken() -> None:
        raise KeyError("x")

    async with open_database(tmp_path / "a.db") as database:
        with pytest.raises(KeyError):
            async with database.writing() as connection:
                await in_thread(connection, broken)


def test_whoever_has_a_connection_computes_in_this_way() -> None:
    """No function that is given a connection waits for a thread of its own: it may be in a write transaction."""
    others = []
    for path in sorted(Path(store.__file__).parent.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.AsyncFunctionDef) and path.name != "thread_work.py":
                given = {argument.arg for argument in function.args.args}
                called = {ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Attribute)}
                others += [f"{path.name}: {function.name}"] * ("connection" in given and "asyncio.to_thread" in called)
    assert others == []
