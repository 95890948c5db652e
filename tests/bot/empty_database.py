"""A SQLite database that is up to date and has nothing in it, to copy: making one takes six times as long as opening
it, and longer than most tests.
"""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from threading import Thread

from bot.store.database import open_database


def put_empty_database(path: Path) -> None:
    """Put one at `path`, if nothing is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(_made(), path)


@cache
def _made() -> Path:
    """Make it once in each process. In a thread: the caller may be in an event loop, whose clock may be a test's."""
    folder = Path(tempfile.mkdtemp(prefix="rt-empty-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    async def make() -> None:
        async with open_database(folder / "empty.db"):
            pass

    making = Thread(target=lambda: asyncio.run(make()), name="empty database")
    making.start()
    making.join()
    return folder / "empty.db"
