"""A task beside a block of code."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from bot.background_task import background_task


@pytest.mark.asyncio
async def test_a_task_that_fails_is_logged_at_once_by_its_name() -> None:
    """`/healthz` refers to the log. Asyncio itself reports it only once nobody keeps the task: at the process's end."""

    async def fail() -> None:
        raise ValueError

    with capture_logs() as logs:
        async with background_task(fail(), name="retention"):
            await asyncio.wait({task for task in asyncio.all_tasks() if task.get_name() == "retention"})
            await asyncio.sleep(0)
            assert [(line["event"], line["task"], line["log_level"]) for line in logs] == [
                ("task_failed", "retention", "error")
            ]
            assert isinstance(logs[0]["exc_info"], ValueError)


@pytest.mark.asyncio
async def test_a_task_that_ends_with_its_block_is_not_logged() -> None:
    """Cancelled or done."""

    async def end() -> None:
        pass

    with capture_logs() as logs:
        async with background_task(asyncio.Event().wait(), name="loop-lag"), background_task(end(), name="greeting"):
            await asyncio.sleep(0)
    assert logs == []
