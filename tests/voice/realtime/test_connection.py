"""A connection to a Realtime endpoint ends, and tells so, whatever ends one of its tasks."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tests.patience import PATIENCE_S
from voice.errors import RealtimeError
from voice.realtime.connection import RealtimeConnection


class Socket:
    """A socket from which nothing comes. `received`: what a reader waits for."""

    def __init__(self) -> None:
        self.received = asyncio.get_running_loop().create_future()

    async def recv_bytes(self) -> bytes:
        """Wait for a message."""
        message: bytes = await self.received
        return message


def held(socket: Socket, **beside: asyncio.Future[None]) -> asyncio.Task[Any]:
    """Return the task that holds a connection, beside waiting for these."""

    def waiting(something: asyncio.Future[None]) -> Any:
        async def wait() -> None:
            await something

        return wait

    connection = RealtimeConnection(
        cast("Any", socket), translate=lambda error: RealtimeError(type(error).__name__, retryable=True)
    )
    holding = connection.hold(
        on_event=lambda _: None, beside=[(name, waiting(something)) for name, something in beside.items()]
    )
    return asyncio.create_task(holding, name="connection")


@pytest.mark.parametrize("what", ["read", "renewal"])
async def test_a_task_that_is_cancelled_from_inside_ends_the_connection(what: str) -> None:
    """A task group ignores such a child: the connection would go on without anybody who reads or renews it."""
    socket, renewal = Socket(), asyncio.get_running_loop().create_future()
    task = held(socket, renewal=renewal)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    (socket.received if what == "read" else renewal).cancel()
    async with asyncio.timeout(PATIENCE_S):
        end = await task
    assert (end.reason, str(end.error)) == ("lost", "CancelledInsideError")


async def test_who_holds_a_connection_may_be_cancelled() -> None:
    """Its tasks end with it, and nothing is lost."""
    task = held(Socket())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
