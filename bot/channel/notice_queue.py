"""Sentences that wait to be written into a voice channel's chat, so that nobody who speaks waits for Discord."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.channel.port import Place
    from bot.texts.text import Text

log = structlog.get_logger()

# A longer queue would come from somebody playing with the commands, or of sentences that are out of date because
# Discord stalls.
NOTICES_WAITING = 8


async def _nothing() -> None:
    """Do nothing before a sentence is written."""


@dataclass(frozen=True, slots=True)
class _Notice:
    """A sentence that waits to be written. For the others see `NoticeQueue.add`."""

    sentence: Text
    before: Callable[[], Awaitable[None]]
    repeats: bool
    offers_talk: bool


class NoticeQueue:
    """Writes sentences into the chat of `place`, in order. `name`: of the queue, in its figures.

    At most `NOTICES_WAITING` wait. A further one is not written; it is counted and logged. If something is to happen
    before it, the first that waits with nothing to happen gives way instead. *Ownership*: whoever calls `run`, on whose
    loop everything else is called too.
    """

    def __init__(self, place: Place, *, name: str) -> None:
        self._place = place
        self._name = name
        self._waiting: asyncio.Queue[_Notice] = asyncio.Queue(NOTICES_WAITING)
        self._full = 0

    @property
    def figures(self) -> QueueFigures:
        """Return how many sentences wait, and how many were not written."""
        return QueueFigures(self._name, self._waiting.qsize(), NOTICES_WAITING, {"full": self._full})

    def add(
        self,
        sentence: Text,
        *,
        before: Callable[[], Awaitable[None]] = _nothing,
        repeats: bool = False,
        offers_talk: bool = False,
    ) -> None:
        """Let a sentence wait until it is written. Does not wait itself. `before`: is awaited first.

        `repeats`: the sentence may repeat what people said, so `drop_repeats` drops it. `offers_talk`: with the button
        that ends the bot's silence.
        """
        if self._waiting.full():
            self._full += 1
            log.warning("notice_not_written", waiting=NOTICES_WAITING)
            if before is not _nothing:
                self._drop(lambda notice: notice.before is _nothing, most=1)
        if not self._waiting.full():
            self._waiting.put_nowait(_Notice(sentence, before, repeats, offers_talk))

    def drop_repeats(self) -> None:
        """Drop the waiting sentences that may repeat what people said. The others stay in order."""
        self._drop(lambda notice: notice.repeats, most=NOTICES_WAITING)

    def _drop(self, gives_way: Callable[[_Notice], bool], *, most: int) -> None:
        """Drop the first waiting sentences that give way, at most so many."""
        waiting = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
        for notice in waiting:
            if most and gives_way(notice):
                most -= 1
            else:
                self._waiting.put_nowait(notice)
        for _ in waiting:
            self._waiting.task_done()

    async def run(self) -> None:
        """Write what waits and what comes. Never returns."""
        while True:
            notice = await self._waiting.get()
            await notice.before()
            write = self._place.offer_talk if notice.offers_talk else self._place.write
            await write(notice.sentence)
            self._waiting.task_done()

    async def until_written(self) -> None:
        """Wait until nothing waits any more, while `run` runs."""
        await self._waiting.join()
