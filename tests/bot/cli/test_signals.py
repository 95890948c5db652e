"""The first Ctrl-C shuts down in order; a later second one ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
import typer
from structlog.testing import capture_logs

from bot.cli import signals
from bot.cli.failures import INTERRUPTED
from bot.cli.signals import TIMED_OUT, stop_on_signals, until_stopped
from tests.fakes.brain import until


async def turn() -> None:
    """Let the event loop handle a signal."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.asyncio
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_first_signal_asks_for_an_orderly_end(number: signal.Signals) -> None:
    """The first signal requests an orderly end, and its immediate repetition by a runner counts as the same one."""
    stop, ended = asyncio.Event(), list[int]()
    with stop_on_signals(stop, end_at_once=ended.append):
        os.kill(os.getpid(), number)
        async with asyncio.timeout(5):
            await stop.wait()
        os.kill(os.getpid(), number)
        await turn()
    assert ended == []


@pytest.mark.asyncio
async def test_a_later_signal_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second, later Ctrl-C does not wait for the shutdown."""
    monkeypatch.setattr(signals, "SAME_SIGNAL_S", 0.0)
    stop, ended = asyncio.Event(), list[int]()
    with stop_on_signals(stop, end_at_once=ended.append):
        os.kill(os.getpid(), signal.SIGINT)
        async with asyncio.timeout(5):
            await stop.wait()
        await turn()
        os.kill(os.getpid(), signal.SIGINT)
        await turn()
    assert ended == [INTERRUPTED]


@pytest.mark.asyncio
async def test_a_shutdown_that_takes_too_long_is_ended() -> None:
    """The log says so before the process ends. A shutdown that ends in time is left alone."""
    stop, ended = asyncio.Event(), list[int]()
    with capture_logs() as logs, stop_on_signals(stop, within_s=0.0, end_at_once=ended.append):
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(5):
            await stop.wait()
        await until(lambda: bool(ended))
    assert ended == [TIMED_OUT]
    assert [line["event"] for line in logs] == ["stop_timed_out"]
    with stop_on_signals(stop, within_s=0.0, end_at_once=ended.append):
        await turn()
    assert ended == [TIMED_OUT]


@pytest.mark.asyncio
async def test_afterwards_signals_are_what_they_were() -> None:
    """Leaving the context restores the signal handlers."""
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals(asyncio.Event()):
        pass
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.asyncio
async def test_work_that_ends_is_returned() -> None:
    """If no signal comes, the result of the work is returned."""

    async def answer() -> int:
        return 42

    assert await until_stopped(answer()) == 42


@pytest.mark.asyncio
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
        async with asyncio.timeout(5):
            await until_stopped(work())
    assert closed.is_set()
