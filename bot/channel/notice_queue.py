"""Sentences that wait to be written into a voice channel's chat, so that nobody who speaks waits for Discord."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.channel.port import RoomChannel
    from bot.texts.text import Text
    from bot.words import Lease

log = structlog.get_logger()

# A longer queue would come from somebody playing with the commands, or of sentences that are out of date because
# Discord stalls.
NOTICES_WAITING = 8


class NoticeQueue:
    """Writes sentences into the chat of `channel`, in order. `name`: of the queue, in its figures.

    At most `NOTICES_WAITING` wait. A further one is not written; it is counted and logged.

    *Ownership*: whoever calls `run`, on whose loop everything else is called too.
    """

    def __init__(self, channel: RoomChannel, *, name: str) -> None:
        self._channel = channel
        self._name = name
        # Each with its lease if it repeats people, and what writes it.
        self._waiting: asyncio.Queue[tuple[Text, Lease | None, Callable[[Text], Awaitable[None]]]] = asyncio.Queue(
            NOTICES_WAITING
        )
        self._full = 0

    @property
    def figures(self) -> QueueFigures:
        """Return how many sentences wait, and how many were not written."""
        return QueueFigures(self._name, self._waiting.qsize(), NOTICES_WAITING, {"full": self._full})

    def add(self, sentence: Text, *, lease: Lease | None = None, offers_talk: bool = False) -> None:
        """Let a sentence wait until it is written. Does not wait itself.

        `lease`: of what people said, if it repeats that. `offers_talk`: with the button that ends the bot's silence.
        """
        if self._waiting.full():
            self._full += 1
            log.warning("notice_not_written", waiting=NOTICES_WAITING)
            return
        self._waiting.put_nowait((sentence, lease, self._channel.offer_talk if offers_talk else self._channel.write))

    async def run(self) -> None:
        """Write what waits and what comes. Never returns."""
        while True:
            sentence, lease, write = await self._waiting.get()
            if lease is None or lease.valid:
                await write(sentence)
            self._waiting.task_done()

    async def until_written(self) -> None:
        """Wait until nothing waits any more, while `run` runs."""
        await self._waiting.join()
