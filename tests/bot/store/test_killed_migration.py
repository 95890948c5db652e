"""A migration that is killed half-way leaves the older database, and the next start migrates it."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from tests.bot.store.test_older_databases import write_old_database
from tests.compaction.turn_store_contract import EVENING
from tests.fakes.clock import FakeClock

ROOT = Path(__file__).parents[3]
# Ends itself by SIGKILL when the third of the missing steps has run, inside the transaction of the migration.
KILLED = """
import asyncio, os, pathlib, signal, sys
from bot.store.migrations import step
run, calls = step.run_on_sqlite, []
def run_and_die(statements):
    run(statements)
    calls.append(1)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
step.run_on_sqlite = run_and_die
from bot.store.database import open_database
async def main():
    async with open_database(pathlib.Path(sys.argv[1])):
        pass
asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_killed_migration_is_made_again(tmp_path: Path) -> None:
    """After the kill the version and all turns are those of before. The next start brings them up to date."""
    path = tmp_path / "roomtone.db"
    write_old_database(path, 8)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=ROOT, check=False)  # noqa: ASYNC221
    assert killed.returncode == -signal.SIGKILL
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (8,)
        assert connection.execute("SELECT count(*) FROM turns").fetchone() == (63,)
    async with open_database(path) as database:
        assert (await SqlTurnStore(database, FakeClock()).load(EVENING)).total_turns == 63
