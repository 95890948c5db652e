"""A child process answers requests, and what breaks in it is a plain sentence."""

from __future__ import annotations

import sys

import pytest

from benchmarks.child_process import child_process
from benchmarks.errors import BenchmarkError

ECHO = """
import asyncio
from benchmarks.child_process import keep_stdout_for_answers, serve

async def answer(request):
    print("noise on stdout")
    if request["op"] == "break":
        raise ZeroDivisionError("by zero")
    return {"said": request["words"]}

asyncio.run(serve(keep_stdout_for_answers(), answer))
"""


@pytest.mark.asyncio
async def test_it_answers_and_tells_what_broke() -> None:
    async with child_process("the echo", (sys.executable, "-c", ECHO)) as echo:
        assert await echo.ask("say", words="hello") == {"said": "hello"}
        with pytest.raises(BenchmarkError, match="The process for the echo failed: ZeroDivisionError: by zero"):
            await echo.ask("break")
        assert await echo.ask("say", words="again") == {"said": "again"}
    with pytest.raises(BenchmarkError, match="did not answer"):
        await echo.ask("say", words="gone")
