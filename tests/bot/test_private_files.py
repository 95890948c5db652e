"""What Roomtone writes can be read only by its own user."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog

from bot.cli.environment import write_named_file
from bot.logs.output import configured_logging
from bot.private_files import (
    replace_private_text,
    write_private_text,
)
from bot.store.database import open_database
from tests.patience import PATIENCE_S


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Return the permission bits of everything below `folder`, by relative path."""
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
async def test_all_that_is_written_is_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    """Database, journals, logs and exports have 0600 and their folders 0700 with every umask."""
    data = tmp_path / "new" / "data"
    with umask(mask), configured_logging(data_dir=data, console=io.StringIO(), max_file_bytes=200):
        async with open_database(data / "roomtone.db") as database:
            await database.rows("SELECT 1")
            for number in range(5):
                structlog.get_logger().info("fact_told", number=number)
            write_named_file(data / "export" / "session.json", "said", example="x")
            found = modes(tmp_path)
    assert {"new/data/roomtone.db-wal", "new/data/roomtone.db-shm", "new/data/logs/roomtone.jsonl.1"} <= set(found)
    for name, mode in found.items():
        assert mode == (0o700 if (tmp_path / name).is_dir() else 0o600), name


async def test_an_existing_database_is_mended_when_it_is_opened(tmp_path: Path) -> None:
    """A database and its journals that others could read become private when any command opens them."""
    path = tmp_path / "roomtone.db"
    async with open_database(path):
        for name in ("roomtone.db", "roomtone.db-wal", "roomtone.db-shm"):
            (tmp_path / name).chmod(0o644)
        async with open_database(path):
            assert set(modes(tmp_path).values()) == {0o600}


def test_a_file_written_again_becomes_private(tmp_path: Path) -> None:
    """Writing to a file that others could read makes it private."""
    path = tmp_path / "report.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private_text(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)


def test_a_file_that_is_replaced_is_never_half_written(tmp_path: Path) -> None:
    """If the new text cannot be written, the former one stays whole. The new file is private too."""
    path = tmp_path / "address"
    path.write_text("old")
    path.chmod(0o644)
    with pytest.raises(UnicodeEncodeError):
        replace_private_text(path, "half\ud800")
    assert path.read_text() == "old"
    replace_private_text(path, "new", durable=True)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["address"]


def test_the_command_sets_the_umask_and_forbids_core_dumps() -> None:
    """The `roomtone` command sets a private umask and forbids core dumps; its child processes inherit both."""
    script = (
        "import os, resource, bot.cli.app as app, bot.__main__ as command\n"
        "app.run_command_line = lambda *_, **__: print(oct(os.umask(0)), resource.getrlimit(resource.RLIMIT_CORE))\n"
        "command.main()"
    )
    with umask(0o000):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
    assert done.stdout.strip() == "0o77 (0, 0)"
