"""Helpers for the tests of commands that read and change the memory."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.cli.app import run_command_line
from tests.bot.evening import Evening


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


class Answers(io.StringIO):
    """What somebody answers to questions. An event loop that ran meanwhile would keep Ctrl-C from ending the command at
    once.
    """

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override] # as typeshed has it
        """Return the next answer."""
        with pytest.raises(RuntimeError, match="event loop"):
            asyncio.get_running_loop()
        return super().readline(size)
