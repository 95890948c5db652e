"""Waiting for heartbeats: each one moves the deadline, and a connection that has gone is waited for no more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from rehearsal.discord.websocket.heartbeats import HeartbeatWatch
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from rehearsal.discord.websocket.connection import GatewayConnection

INTERVAL_S = 1000.0


def connection() -> GatewayConnection:
    """Return a connection that is only compared."""
    return cast("GatewayConnection", object())


@pytest.mark.asyncio
async def test_each_heartbeat_moves_the_deadline() -> None:
    """It is one and a half intervals away, and an earlier one is dropped."""
    silent: list[GatewayConnection] = []
    watch, one = HeartbeatWatch(INTERVAL_S, silent.append), connection()
    assert watch.interval_ms == 1_000_000
    began = asyncio.get_running_loop().time()
    watch.opened(one)
    first = watch._timers[one]
    watch.beat(one)
    second = watch._timers[one]
    assert first.cancelled()
    assert began + 1.5 * INTERVAL_S <= first.when() <= second.when()
    watch.close()
    assert second.cancelled()
    assert silent == []


@pytest.mark.asyncio
async def test_a_silent_connection_is_told_once() -> None:
    """One that has closed, or was never opened, is not waited for."""
    silent: list[GatewayConnection] = []
    told = asyncio.Event()

    def tell(each: GatewayConnection) -> None:
        silent.append(each)
        told.set()

    watch, one, gone, stranger = HeartbeatWatch(0.001, tell), connection(), connection(), connection()
    watch.opened(gone)
    assert watch.closed(gone)
    assert not watch.closed(gone)
    watch.beat(stranger)
    watch.opened(one)
    async with asyncio.timeout(PATIENCE_S):
        await told.wait()
    assert silent == [one]
    assert not watch.closed(one)
