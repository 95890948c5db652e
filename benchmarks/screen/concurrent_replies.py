"""Measures how long people wait for a reply while a constantly changing screen is shared, and while none is shared."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from benchmarks.reply.latency import measure_latency
from benchmarks.reply.pauses import PauseListener
from benchmarks.reply.recordings import load_recordings
from benchmarks.screen.measured_share import FRAME_S, measured_share
from benchmarks.screen.synthetic_screens import ScreenText, jpeg, scene, written
from config.load import load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from benchmarks.progress import Progress
    from benchmarks.report import Json
    from voice.screen.notes import ScreenNote

_PICTURES = 8


async def measure_concurrent_replies(answers: int, progress: Progress) -> dict[str, Json]:
    """Return the times of replies (in milliseconds) without and with a screen share."""
    settings, said = load(), load_recordings(None).some(answers)
    found: dict[str, Json] = {}
    for name in ("alone", "beside a share"):
        async with _sharing(progress, wanted=name != "alone"):
            figures = await measure_latency(
                said,
                listener=PauseListener(settings.models, turn_model=settings.listening.turn_model != "off"),
                settings={},
                first_token_ms=0.0,
                progress=progress,
            )
        kept = ("unanswered", "besides_the_model_server_ms", "to_text_ms", "warned_of")
        found[name] = {key: figures[key] for key in kept}
    return found


@asynccontextmanager
async def _sharing(progress: Progress, *, wanted: bool) -> AsyncIterator[None]:
    """Share a screen in this process. Each picture differs, and pictures come as fast as the page sends them."""
    if not wanted:
        yield
        return

    async def note(_: ScreenNote) -> None:
        """Ignore the note."""

    pictures = [
        jpeg(written(scene(number), [ScreenText(60 + 70 * number, 40 + 60 * number, 28, f"Wave {number * 37}")]))
        for number in range(_PICTURES)
    ]
    async with measured_share(note, progress) as share:

        async def show() -> None:
            number = 0
            while True:
                await share.offer(pictures[number % _PICTURES])
                number += 1
                await asyncio.sleep(FRAME_S)

        showing = asyncio.create_task(show(), name="screen-beside")
        try:
            yield
        finally:
            showing.cancel()
            await asyncio.wait({showing})
