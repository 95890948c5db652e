"""A task beside a block of code."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from structlog.typing import EventDict

from bot.background_task import background_task, owned_task


async def test_a_task_that_fails_is_logged_at_once_by_its_name(logs: list[EventDict]) -> None:
    """`/healthz` refers to the log. Asyncio itself reports it only once nobody keeps the task: at the process's end."""

    async def fail() -> None:
        raise ValueError

    async with background_task(fail(), name="retention"):
        await asyncio.wait({task for task in asyncio.all_tasks() if task.get_name() == "retention"})
        await asyncio.sleep(0)
        assert [(line["event"], line["task"], line["log_level"]) for line in logs] == [
            ("task_failed", "retention", "error")
        ]
        assert isinstance(logs[0]["exc_info"], ValueError)


async def test_a_task_that_ends_with_its_block_is_not_logged(logs: list[EventDict]) -> None:
    """Cancelled or done."""

    async def end() -> None:
        pass

    async with background_task(asyncio.Event().wait(), name="loop-lag"), background_task(end(), name="greeting"):
        await asyncio.sleep(0)
    assert logs == []


async def test_a_block_gets_what_its_task_returns_or_raises() -> None:
    """The task has a name, for whoever looks at a process that hangs."""

    async def add() -> int:
        return 3

    async def fail() -> int:
        raise KeyError

    async with owned_task(add(), name="add") as task:
        assert task.get_name() == "add"
        assert await task == 3
    async with owned_task(fail(), name="fail") as task:
        with pytest.raises(KeyError):
            await task


async def test_a_block_that_fails_leaves_no_task_behind() -> None:
    """Its own error is raised, and asyncio has nothing to report of the task's."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    ended = asyncio.Event()

    async def fail_at_the_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
            raise ValueError

    async def block() -> None:
        async with owned_task(fail_at_the_end(), name="work"):
            await asyncio.sleep(0)
            raise KeyError

    with pytest.raises(KeyError):
        await block()
    assert ended.is_set()
    gc.collect()
    assert reported == []


async def test_a_task_that_ends_cancelled_by_mistake_is_logged(logs: list[EventDict]) -> None:
    """It awaited something that was cancelled elsewhere. Nobody asked for its end, and nobody else would notice it."""
    connection: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def use_connection() -> None:
        await connection

    async with background_task(use_connection(), name="gateway-link"):
        await asyncio.sleep(0)
        connection.cancel()
        await asyncio.wait({task for task in asyncio.all_tasks() if task.get_name() == "gateway-link"})
        await asyncio.sleep(0)
    assert [(line["event"], line["task"], line["log_level"]) for line in logs] == [
        ("task_ended_cancelled", "gateway-link", "error")
    ]
