"""Ctrl-C: the first ends in order, an impatient second at once."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from bot.cli import signals
from bot.cli.failures import INTERRUPTED
from bot.cli.signals import stop_on_signals


async def turn() -> None:
    """Let the loop take a signal."""
    for _ in range(5):
        await asyncio.sleep(0.001)


@pytest.mark.asyncio
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_first_signal_asks_for_an_orderly_end(number: signal.Signals) -> None:
    """The same signal passed on twice by a runner is one."""
    stop, ended = asyncio.Event(), list[int]()
    with stop_on_signals(stop, end_at_once=ended.append):
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 5)
        os.kill(os.getpid(), number)
        await turn()
    assert ended == []


@pytest.mark.asyncio
async def test_a_later_signal_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who presses again has waited enough."""
    monkeypatch.setattr(signals, "SAME_SIGNAL_S", 0.0)
    stop, ended = asyncio.Event(), list[int]()
    with stop_on_signals(stop, end_at_once=ended.append):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.wait_for(stop.wait(), 5)
        await turn()
        os.kill(os.getpid(), signal.SIGINT)
        await turn()
    assert ended == [INTERRUPTED]


@pytest.mark.asyncio
async def test_afterwards_signals_are_what_they_were() -> None:
    """Leaving gives them back."""
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals(asyncio.Event()):
        pass
    assert signal.getsignal(signal.SIGTERM) == before
