"""Sentences for the chat are written in order; eight at most wait, and none that repeats what was taken back."""

from __future__ import annotations

import asyncio

from bot.background_task import background_task
from bot.channel.notice_queue import NOTICES_WAITING, NoticeQueue
from bot.texts.text import verbatim
from tests.fakes.room_channel import FakeRoomChannel
from tests.patience import PATIENCE_S


async def written(channel: FakeRoomChannel, notices: NoticeQueue) -> list[str]:
    """Let the queue write all that waits, and return it."""
    async with background_task(notices.run(), name="notices-under-test"), asyncio.timeout(PATIENCE_S):
        await notices.until_written()
    return channel.written


async def test_a_sentence_too_many_is_counted_and_not_written() -> None:
    """The first ones stay: people read in order what has happened."""
    channel = FakeRoomChannel()
    notices = NoticeQueue(channel, name="notices")
    for number in range(NOTICES_WAITING + 2):
        notices.add(verbatim(str(number)))
    figures = notices.figures
    assert (figures.name, figures.waiting, figures.dropped) == ("notices", NOTICES_WAITING, {"full": 2})
    assert await written(channel, notices) == [str(number) for number in range(NOTICES_WAITING)]
