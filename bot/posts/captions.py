"""Captions: what is said, written while the bot takes part, as long as somebody has asked for that or the server wants
it. Both may change while a session runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.background_task import owned_task
from bot.errors import BotError
from bot.room_part import RoomPart

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot import events
    from bot.clock import Clock
    from bot.posts.transcript import TranscriptWriter
    from bot.server_settings import ListenRequest
    from voice.queue_figures import QueueFigures

LOOK_EVERY_S = 1.0


class Captions(RoomPart):
    """The captions of one room. `wanted`: returns which ones are wanted now; None: none. `open_writer`: returns what
    writes them. `announce`: tells people which ones there are now; it raises `NotAnnouncedError`. `give_up`: tells them
    why there are none any more.

    *Ownership*: the room runs `run` in a task, and calls `finish` when it ends in order, before it cancels that task.
    """

    task = "captions"

    def __init__(
        self,
        *,
        wanted: Callable[[], ListenRequest | None],
        open_writer: Callable[[ListenRequest], TranscriptWriter],
        announce: Callable[[ListenRequest | None], Awaitable[None]],
        give_up: Callable[[BotError], Awaitable[None]],
        clock: Clock,
    ) -> None:
        self._wanted = wanted
        self._open_writer = open_writer
        self._announce = announce
        self._give_up = give_up
        self._clock = clock
        self._writer: TranscriptWriter | None = None
        # What was tried in vain.
        self._impossible: ListenRequest | None = None

    def retry(self) -> None:
        """Try anew what was impossible: somebody has asked for it again."""
        self._impossible = None

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how many lines wait to be written."""
        return () if self._writer is None else self._writer.queues

    def on_event(self, event: events.Event) -> None:
        if self._writer is not None:
            self._writer.on_event(event)

    async def run(self) -> None:
        """Write the captions that are wanted. Never returns."""
        while True:
            wanted = self._wanted()
            if wanted is None or wanted == self._impossible:
                self._impossible = wanted
                await self._clock.sleep(LOOK_EVERY_S)
                continue
            try:
                await self._write(wanted)
            except BotError as error:
                self._impossible = wanted
                await self._give_up(error)
            self._writer = None
            await self._announce(None)

    async def _write(self, wanted: ListenRequest) -> None:
        """Write as long as these captions are wanted. Raises `ChatError` and `NotAnnouncedError`."""
        await self._announce(wanted)
        self._writer = self._open_writer(wanted)
        async with owned_task(self._writer.run(), name="transcript") as writing:
            while self._wanted() == wanted and not writing.done():
                await self._clock.sleep(LOOK_EVERY_S)
            if writing.done():
                writing.result()
            await self._writer.finish()

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Write the rest."""
        del goes_on, process_ends
        if self._writer is not None:
            await self._writer.finish()
