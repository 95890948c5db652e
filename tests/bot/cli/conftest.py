"""A data folder with a stored evening, for the commands that read and change the memory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.bot.cli.memory.stored_evening import at_evening
from tests.bot.evening import Evening


async def _fill(evening: Evening) -> None:
    await evening.say("I live in Lisbon.")
    await evening.say("The gate code is 4411.", "Bob")
    await evening.talk(98)
    await evening.upkeep.run_once()


@pytest.fixture(scope="session")
def stored_evening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that no test changes."""
    folder = tmp_path_factory.mktemp("stored") / "data"
    at_evening(folder, _fill)
    return folder


@pytest.fixture
def data_dir(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with one session of 100 turns and four segments, in which people say facts about themselves.

    If ROOMTONE_DATABASE_URL is set already, the session is in that database.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "data"))
    if "ROOMTONE_DATABASE_URL" in os.environ:
        at_evening(tmp_path / "data", _fill)
    else:
        shutil.copytree(request.getfixturevalue("stored_evening"), tmp_path / "data")
    return tmp_path / "data"
