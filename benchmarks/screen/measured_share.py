"""A screen share in this process with the embedded reader, as a room runs it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.clock import SystemClock
from bot.screen.readers import OcrOnlyReaders
from bot.screen.share import Share
from voice.screen.frame_decoder import FrameDecoder
from voice.screen.ocr import OcrReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from benchmarks.progress import Progress
    from voice.screen.notes import ScreenNote

# The page sends two pictures a second.
FRAME_S = 0.5


@asynccontextmanager
async def measured_share(on_note: Callable[[ScreenNote], Awaitable[None]], progress: Progress) -> AsyncIterator[Share]:
    """Run a share until the block is left. Offer it pictures; `on_note` gets its notes."""
    async with OcrReader() as reader, FrameDecoder() as decoder:
        share = Share(
            "Ada",
            "a window",
            readers=OcrOnlyReaders(reader, decoder),
            clock=SystemClock(),
            on_note=on_note,
            on_trouble=progress.say,
        )
        running = asyncio.create_task(share.run(), name="measured-share")
        try:
            yield share
        finally:
            running.cancel()
            await asyncio.wait({running})
