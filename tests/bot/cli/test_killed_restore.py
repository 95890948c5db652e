"""A `restore` that is killed leaves the old or the new database whole, and the next one works."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bot.store.backup import write_backup
from bot.store.dialects.sqlite import verify_database_file
from bot.store.restore import remove_leftovers
from tests.bot.cli.killed_restores import IN_SQLITE, NAMING
from tests.bot.cli.memory.stored_evening import at_evening, data_dir, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bot.evening import Evening

__all__ = ["data_dir"]

ROOT = Path(__file__).parents[3]
SEED = 20_261_121


def words_in(path: Path) -> list[tuple[object, ...]]:
    """Return every turn and segment of a database."""
    with closing(sqlite3.connect(path)) as database:
        found = [
            database.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in ("turns", "segments", "sessions")
        ]
    return [row for rows in found for row in rows]


@pytest.fixture
def assert_restored_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Check that the command works in a folder in which it was killed, says so, and leaves no other file than usual."""

    def check(folder: Path, after: list[tuple[object, ...]], *, said_so: bool) -> None:
        monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(folder))
        said = told(capsys, "restore", str(tmp_path / "copy.db"), "--yes")
        assert "Restored and checked: 1 session with 100 turns" in said
        assert ("An earlier restore was killed" in said) == said_so
        assert words_in(folder / "roomtone.db") == after
        others = {each.name for each in folder.iterdir() if ".before-" not in each.name}
        assert others == {"roomtone.db", "roomtone.lock"}

    return check


@pytest.mark.slow
def test_a_killed_restore_leaves_one_database_whole(
    data_dir: Path, tmp_path: Path, assert_restored_again: Callable[..., None]
) -> None:
    """The bot before was killed too, so that its journal is still there. After each kill every page of the database is
    sound, and it is the one of before or the restored one.
    """
    path, file, killed = data_dir / "roomtone.db", tmp_path / "copy.db", tmp_path / "killed"
    write_backup(path, file)
    folder = tmp_path / "folder"

    async def go_on(evening: Evening) -> None:
        await evening.talk(30)
        shutil.copytree(data_dir, folder)

    at_evening(data_dir, go_on)
    assert (folder / "roomtone.db-wal").stat().st_size > 0
    done = subprocess.run(
        [sys.executable, "-m", "tests.bot.cli.killed_restores", str(folder), str(file), str(killed), str(SEED)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    kinds = dict(line.split() for line in done.stdout.splitlines())
    assert {*NAMING, IN_SQLITE} <= set(kinds.values())
    before, after = words_in(path), words_in(killed / "whole" / "roomtone.db")
    assert before != after
    outcomes: list[tuple[bool, list[tuple[object, ...]]]] = []
    for name, kind in kinds.items():
        path = killed / name / "roomtone.db"
        unfinished = path.with_name("roomtone.db.restoring").exists()
        if kind in NAMING or not outcomes:
            assert_restored_again(shutil.copytree(path.parent, killed / f"{name}-again"), after, said_so=unfinished)
        # A bot that is started instead goes on with what is there.
        assert remove_leftovers(path) == unfinished
        verify_database_file(path)
        outcomes.append((unfinished, words_in(path)))
        for aside in path.parent.glob("*.before-*"):
            assert words_in(aside) == before
            assert not aside.samefile(path)
    assert {(True, True), (False, False)} <= {(left, words == before) for left, words in outcomes}
    assert all(words == before or (words == after and not left) for left, words in outcomes)
