"""The first Ctrl-C shuts down in order; a later second one ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import typer
from structlog.typing import EventDict

from bot.cli.failures import INTERRUPTED
from bot.cli.signals import SAME_SIGNAL_S, TIMED_OUT, stop_on_signals, unless_stopped, until_stopped
from tests.fakes.brain import until
from tests.fakes.loop_time import loop_turns, pass_loop_time
from tests.patience import PATIENCE_S, patiently


@pytest.fixture(autouse=True)
def _closed_terminal_ends() -> Iterator[None]:
    """Whoever runs the tests may have started them with `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The statuses with which the process would have ended."""
    statuses: list[int] = []
    monkeypatch.setattr(os, "_exit", statuses.append)
    return statuses


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_the_first_signal_asks_for_an_orderly_end(
    number: signal.Signals, ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first signal requests an orderly end, and its immediate repetition by a runner counts as the same one."""
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 0.0)
    stop = asyncio.Event()
    with stop_on_signals(stop):
        os.kill(os.getpid(), number)
        await patiently(stop.wait())
        os.kill(os.getpid(), number)
        await loop_turns()
    assert ended == []


async def test_nohup_lets_it_go_on_without_its_terminal() -> None:
    """Who starts it so wants it to outlive the terminal."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop = asyncio.Event()
    with stop_on_signals(stop):
        os.kill(os.getpid(), signal.SIGHUP)
        await loop_turns()
        assert not stop.is_set()
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


async def test_a_later_signal_ends_at_once(ended: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A second, later Ctrl-C does not wait for the shutdown."""
    stop = asyncio.Event()
    with stop_on_signals(stop):
        os.kill(os.getpid(), signal.SIGINT)
        await patiently(stop.wait())
        pass_loop_time(monkeypatch, SAME_SIGNAL_S)
        os.kill(os.getpid(), signal.SIGINT)
        await until(lambda: bool(ended))
    assert ended == [INTERRUPTED]


async def test_a_shutdown_that_takes_too_long_is_ended(ended: list[int], logs: list[EventDict]) -> None:
    """The log says so before the process ends. A shutdown that ends in time is left alone."""
    stop = asyncio.Event()
    with stop_on_signals(stop, within_s=0.0):
        os.kill(os.getpid(), signal.SIGTERM)
        await patiently(stop.wait())
        await until(lambda: bool(ended))
    assert ended == [TIMED_OUT]
    assert [line["event"] for line in logs] == ["stop_timed_out"]
    with stop_on_signals(stop, within_s=0.0):
        await loop_turns()
    assert ended == [TIMED_OUT]


async def test_work_is_ended_in_order_at_a_signal() -> None:
    """After a signal, the work is cancelled and cleans up before the command ends."""
    closed = asyncio.Event()

    async def work() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
        try:
            await asyncio.Future()
        finally:
            closed.set()

    with pytest.raises(typer.Abort):
        await patiently(until_stopped(work()))
    assert closed.is_set()


class Start:
    """Something that takes its time to be entered, until `ready` is set."""

    def __init__(self) -> None:
        self.begun, self.ready, self.closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[str]:
        """Begin, wait, and close what was begun."""
        self.begun.set()
        try:
            await self.ready.wait()
            yield "all"
        finally:
            # What closes may take turns of the loop.
            await loop_turns()
            self.closed.set()


async def test_a_stop_does_not_wait_for_the_start() -> None:
    """What was opened until then is closed in order, and the task goes on: it is not cancelled."""
    stop, start = asyncio.Event(), Start()

    async def run() -> str | None:
        async with unless_stopped(stop, start.entered()) as value:
            assert start.closed.is_set()
        await loop_turns()
        return value

    running = asyncio.create_task(run(), name="run")
    await start.begun.wait()
    stop.set()
    assert await patiently(running) is None
    assert running.cancelling() == 0


async def test_a_stop_after_the_start_is_the_blocks_own() -> None:
    """The block gets what was entered, and decides itself what a stop means; the context is closed after it."""
    stop, start = asyncio.Event(), Start()
    start.ready.set()
    async with asyncio.timeout(PATIENCE_S), unless_stopped(stop, start.entered()) as value:
        assert value == "all"
        stop.set()
        await loop_turns()
        assert not start.closed.is_set()
    assert start.closed.is_set()
