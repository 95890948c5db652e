"""A data folder with a stored evening, for the tests of the `memory` commands."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from bot.cli.app import run_command_line
from tests.bot.evening import Evening

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with one session of 100 turns and four segments, in which people say facts about themselves.

    If ROOMTONE_DATABASE_URL is set already, the session is in that database.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "data"))

    async def fill(evening: Evening) -> None:
        await evening.say("I live in Lisbon.")
        await evening.say("The gate code is 4411.", "Bob")
        await evening.talk(98)
        await evening.upkeep.run_once()

    at_evening(tmp_path / "data", fill)
    return tmp_path / "data"


def at_evening(data_dir: Path, work: Callable[[Evening], Awaitable[None]], *, name: str = "evening") -> None:
    """Run `work` in a session of that folder, or of the database that the environment names."""
    url = os.environ.get("ROOMTONE_DATABASE_URL")

    async def run() -> None:
        async with Evening(data_dir / "roomtone.db" if url is None else SecretStr(url), name=name) as evening:
            await work(evening)

    asyncio.run(run())


def told(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """Run a command and return its output on stdout and stderr."""
    assert run_command_line(words) == status
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out + captured.err
