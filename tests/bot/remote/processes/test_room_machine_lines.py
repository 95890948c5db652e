"""A machine reads the lines that its processes write, and leaves out those that are too long."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.remote.processes.room_child import RoomChild
from bot.remote.processes.room_machine import LOADED, RoomMachine, lines_of
from tests.fakes.clock import FakeClock

LIMIT = 8


async def read(pieces: list[bytes]) -> tuple[list[bytes], int]:
    """Return the lines of a stream to which these pieces come one after the other, and how often it was told of long
    ones.
    """
    stream, told = asyncio.StreamReader(limit=LIMIT), list[bool]()

    async def feed() -> None:
        for piece in pieces:
            stream.feed_data(piece)
            for _ in range(3):
                await asyncio.sleep(0)
        stream.feed_eof()

    feeding = asyncio.create_task(feed())
    lines = [line async for line in lines_of(stream, lambda: told.append(True))]
    await feeding
    return lines, len(told)


@given(
    st.lists(st.binary(max_size=3 * LIMIT).map(lambda line: line.replace(b"\n", b"_")), max_size=6),
    st.integers(1, 3 * LIMIT),
    st.booleans(),
)
def test_every_line_that_is_short_enough_is_read(lines: list[bytes], step: int, ends: bool) -> None:
    """However they come. Nothing of a long one is, although its end may look like a line; that is said once."""
    whole = [line + b"\n" for line in lines]
    if whole and not ends:
        whole[-1] = lines[-1]
    text = b"".join(whole)
    found, told = asyncio.run(read([text[at : at + step] for at in range(0, len(text), step)]))
    assert found == [line for line in whole if line and len(line.removesuffix(b"\n")) <= LIMIT]
    assert told == any(len(line.removesuffix(b"\n")) > LIMIT for line in whole)


@pytest.mark.asyncio
async def test_a_process_that_writes_a_long_line_is_heard_all_the_same() -> None:
    """It was taken for one that loads for ever, and what it wrote later filled the pipe. The line is not in the log."""
    stream = asyncio.StreamReader()
    machine = RoomMachine(lambda _: (), FakeClock(), most=1)
    child = RoomChild("one", cast("Any", SimpleNamespace(returncode=None)))
    hearing = asyncio.create_task(machine._hear(child, cast("Any", SimpleNamespace(stdout=stream))))
    with capture_logs() as logs:
        for piece in (b"the walrus sleeps " * 10_000, b"\n", LOADED.encode(), b"\n"):
            stream.feed_data(piece)
        stream.feed_eof()
        await hearing
    assert child.is_loaded
    (line,) = logs
    assert line["event"] == "room_process_line_skipped"
    assert "walrus" not in str(line)


@pytest.mark.asyncio
async def test_a_defect_in_hearing_a_process_is_logged_at_once() -> None:
    """Nobody awaits it, and the process would be taken for one that loads for ever."""

    async def fail(_: bytes) -> bytes:
        raise KeyError

    ended = asyncio.Event()
    process = SimpleNamespace(returncode=None, stdout=SimpleNamespace(readuntil=fail), wait=ended.wait)
    machine = RoomMachine(lambda _: (), FakeClock(), most=1)
    with capture_logs() as logs:
        machine._watched("one", cast("Any", process))
        (watching,) = machine._watching
        for _ in range(5):
            await asyncio.sleep(0)
        assert [(line["event"], line["task"]) for line in logs] == [("task_failed", "room-process-one-says")]
        ended.set()
        await watching
