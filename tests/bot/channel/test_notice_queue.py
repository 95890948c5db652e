"""Sentences for the chat are written in order; eight at most wait, and those that may repeat people can be dropped."""

from __future__ import annotations

import asyncio

import pytest

from bot.background_task import background_task
from bot.channel.notice_queue import NOTICES_WAITING, NoticeQueue
from bot.texts.text import verbatim
from tests.fakes.place import FakePlace
from tests.patience import PATIENCE_S


async def written(place: FakePlace, notices: NoticeQueue) -> list[str]:
    """Let the queue write all that waits, and return it."""
    async with background_task(notices.run(), name="notices-under-test"), asyncio.timeout(PATIENCE_S):
        await notices.until_written()
    return place.written


@pytest.mark.asyncio
async def test_what_has_to_happen_before_a_sentence_happens_after_the_one_before() -> None:
    """So a silence is stored when people read of it, and no sentence overtakes another."""
    place = FakePlace()
    notices = NoticeQueue(place, name="notices")
    seen: list[list[str]] = []

    async def store() -> None:
        seen.append(list(place.written))

    notices.add(verbatim("one"))
    notices.add(verbatim("two"), before=store)
    notices.add(verbatim("three"))
    assert await written(place, notices) == ["one", "two", "three"]
    assert seen == [["one"]]


@pytest.mark.asyncio
async def test_a_sentence_too_many_is_counted_and_not_written() -> None:
    """The first ones stay: people read in order what has happened."""
    place = FakePlace()
    notices = NoticeQueue(place, name="notices")
    for number in range(NOTICES_WAITING + 2):
        notices.add(verbatim(str(number)))
    figures = notices.figures
    assert (figures.name, figures.waiting, figures.dropped) == ("notices", NOTICES_WAITING, {"full": 2})
    assert await written(place, notices) == [str(number) for number in range(NOTICES_WAITING)]


@pytest.mark.asyncio
async def test_what_has_to_happen_happens_though_too_many_sentences_wait() -> None:
    """A sentence with nothing to do gives way, the oldest first, so a silence is stored when Discord stalls. Where all
    have something to do, the last one is dropped.
    """
    place = FakePlace()
    notices = NoticeQueue(place, name="notices")
    stored: list[int] = []

    async def store() -> None:
        stored.append(len(place.written))

    for number in range(NOTICES_WAITING):
        notices.add(verbatim(str(number)))
    notices.add(verbatim("silenced"), before=store)
    assert notices.figures.dropped == {"full": 1}
    assert await written(place, notices) == ["1", "2", "3", "4", "5", "6", "7", "silenced"]
    assert stored == [7]
    for number in range(NOTICES_WAITING + 1):
        notices.add(verbatim(f"silenced {number}"), before=store)
    assert notices.figures.dropped == {"full": 2}
    assert (await written(place, notices))[-1] == "silenced 7"


@pytest.mark.asyncio
async def test_sentences_that_may_repeat_people_can_be_dropped() -> None:
    """The others are written in their order."""
    place = FakePlace()
    notices = NoticeQueue(place, name="notices")
    for sentence in ("one", "Ada said walrus", "two"):
        notices.add(verbatim(sentence), repeats="Ada" in sentence)
    notices.drop_repeats()
    assert await written(place, notices) == ["one", "two"]
