"""Measures how soon a new line on a shared screen becomes a note."""

from __future__ import annotations

import asyncio
import random
import time
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from benchmarks.screen.measured_share import FRAME_S, measured_share
from benchmarks.screen.ocr_accuracy import READ_SHARE
from benchmarks.screen.synthetic_screens import ScreenText, chat, hud, jpeg, scene, written
from benchmarks.stats import percentile

if TYPE_CHECKING:
    from benchmarks.progress import Progress
    from benchmarks.report import Json
    from voice.screen.notes import ScreenNote

_NOTE_TIMEOUT_S = 30.0


async def measure_note_latency(events: int, seed: int, progress: Progress) -> dict[str, Json]:
    """Return the time from a new line on the screen to the note that has it, through a complete share."""
    waits: list[float] = []
    missed = 0
    noted = asyncio.Event()
    # What the note must have; None: any note will do.
    wanted: str | None = None

    async def note(taken: ScreenNote) -> None:
        if wanted is None or tells_line(taken.what, wanted):
            noted.set()

    progress.step("event to note", total=events)
    async with measured_share(note, progress) as share:
        rng = random.Random(seed)  # noqa: S311 - pictures, no secret
        back, texts = scene(seed, unrest=30), hud(rng)
        await share.offer(jpeg(written(back, texts)))
        async with asyncio.timeout(_NOTE_TIMEOUT_S):
            await noted.wait()
        for number in range(events):
            await asyncio.sleep(4.2)
            line = ScreenText(
                60 + 37 * number % 500, 120 + 45 * number % 400, 28, f"{chat(rng)} {number * 7919 % 1000}"
            )
            wanted = line.words
            noted.clear()
            began = time.perf_counter()
            # The page sends a picture every half second, so a change waits half of that on average.
            await asyncio.sleep(FRAME_S / 2)
            await share.offer(jpeg(written(back, [*texts, line])))
            try:
                async with asyncio.timeout(_NOTE_TIMEOUT_S):
                    await noted.wait()
                waits.append(time.perf_counter() - began)
            except TimeoutError:
                missed += 1
            progress.advance()
    return {
        "events": events,
        "missed": missed,
        "event_to_note_s_p50": round(percentile(waits, 0.5), 2) if waits else None,
        "event_to_note_s_p95": round(percentile(waits, 0.95), 2) if waits else None,
    }


def tells_line(note: str, words: str) -> bool:
    """Return whether a note has a line of the screen, as well as a reader of text reads one."""
    said, line = (text.replace(" ", "") for text in (note, words))
    return any(
        SequenceMatcher(None, line, said[at : at + len(line)], autojunk=False).ratio() >= READ_SHARE
        for at in range(max(1, len(said) - len(line) + 1))
    )
