"""A stream that is read ahead comes whole, with its failure in its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from bot.brain.speech_output import ReadAhead
from bot.llm.port import ChatModelError
from tests.fakes.brain import until
from tests.patience import PATIENCE_S


class Stream:
    """Yields its steps in order; one that is an exception is raised, and one that is an event is waited for."""

    def __init__(self, *steps: str | BaseException | asyncio.Event) -> None:
        self._steps = steps
        self.read = 0
        self.over = False

    async def items(self) -> AsyncGenerator[str, None]:
        try:
            for step in self._steps:
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, asyncio.Event):
                    await step.wait()
                else:
                    self.read += 1
                    yield step
        finally:
            self.over = True


@pytest.mark.parametrize(
    ("failure", "told"), [(ValueError("broken"), ValueError), (asyncio.CancelledError(), ChatModelError)]
)
async def test_a_failure_comes_in_its_place(failure: BaseException, told: type[Exception]) -> None:
    """Also if something that the stream waits for is cancelled: it has not come to its end."""
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(PATIENCE_S):
        taken = ReadAhead(Stream("a", failure, "b").items(), tasks).take()
        assert await anext(taken) == "a"
        with pytest.raises(told):
            await anext(taken)


@pytest.mark.parametrize("failure", [ValueError("broken"), asyncio.CancelledError()])
async def test_a_failure_that_nobody_takes_ends_nothing(failure: BaseException) -> None:
    """The group goes on with its other tasks."""
    stream = Stream("a", failure)
    async with asyncio.TaskGroup() as tasks:
        ReadAhead(stream.items(), tasks)
        await until(lambda: stream.over)
        other = tasks.create_task(asyncio.sleep(0, "goes on"))
    assert other.result() == "goes on"
