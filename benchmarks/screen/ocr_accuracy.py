"""Measures OCR on generated screens: how much of their text is read, the cost, and how soon a note is taken."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from benchmarks.screen.synthetic_screens import ScreenText, chat, hud, jpeg, scene, written
from benchmarks.stats import mean_of_sum, percentile
from bot.clock import SystemClock
from bot.screen.readers import OcrOnlyReaders
from bot.screen.share import Share
from voice.screen.frame_decoder import FrameDecoder
from voice.screen.frame_diff import WHOLE, Box
from voice.screen.ocr import OcrReader
from voice.screen.port import VisionError, VisionRequest
from voice.screen.settings import ScreenSettings

if TYPE_CHECKING:
    from benchmarks.progress import Progress
    from benchmarks.report import Json
    from voice.screen.notes import ScreenNote

# The page sends two pictures a second.
_FRAME_S = 0.5
_NOTE_TIMEOUT_S = 30.0
# A line counts as read if at least this share of it is right.
_READ = 0.9
_PART = Box(0.03, 0.86, 0.42, 1.0)


@dataclass(frozen=True, slots=True)
class _Taken:
    """The duration of one reading: wall-clock time, and CPU time in the reader's own process."""

    wall_s: float
    cpu_s: float


async def measure_ocr_accuracy(readings: int, seed: int, progress: Progress) -> dict[str, Json]:
    """Return how much text is read, by letters and by lines, and how long reading takes."""
    lines, letters = 0, 0.0
    wanted = 0
    whole: list[_Taken] = []
    part: list[_Taken] = []
    progress.step("reading", total=readings)
    async with OcrReader() as reader:
        await reader.read(lambda: VisionRequest(jpeg(scene(seed))), urgent=True)
        for number in range(readings):
            rng = random.Random(seed * 1_000 + number)  # noqa: S311 - pictures, no secret
            texts = hud(rng, height=rng.choice((20, 24, 28)))
            picture = jpeg(written(scene(number, brightness=rng.choice((40, 90, 140)), unrest=30), texts))
            read, taken = await _timed(reader, VisionRequest(picture, boxes=(WHOLE,)))
            whole.append(taken)
            part.append((await _timed(reader, VisionRequest(picture, boxes=(_PART,))))[1])
            for text in texts:
                best = max((_alike(text.words, line) for line in read), default=0.0)
                wanted, letters, lines = wanted + 1, letters + best, lines + (best >= _READ)
            progress.advance()
    return {
        "lines_read": mean_of_sum(lines, wanted),
        "letters_right": mean_of_sum(letters, wanted),
        "whole_screen_ms_p50": round(1000 * percentile([each.wall_s for each in whole], 0.5)),
        "whole_screen_cpu_ms_p50": round(1000 * percentile([each.cpu_s for each in whole], 0.5)),
        "changed_part_ms_p50": round(1000 * percentile([each.wall_s for each in part], 0.5)),
        "changed_part_cpu_ms_p50": round(1000 * percentile([each.cpu_s for each in part], 0.5)),
    }


async def measure_latency(events: int, seed: int, progress: Progress) -> dict[str, Json]:
    """Return the time from a new line on the screen to its note, through a complete share."""
    waits: list[float] = []
    missed = 0
    noted = asyncio.Event()

    async def note(_: ScreenNote) -> None:
        noted.set()

    progress.step("event to note", total=events)
    async with OcrReader() as reader, FrameDecoder() as decoder:
        share = Share(
            "Ada",
            "a window",
            readers=OcrOnlyReaders(reader, decoder),
            settings=ScreenSettings(),
            clock=SystemClock(),
            on_note=note,
            on_trouble=progress.say,
        )
        living = asyncio.create_task(share.run(), name="measured-share")
        try:
            rng = random.Random(seed)  # noqa: S311 - pictures, no secret
            back, texts = scene(seed, unrest=30), hud(rng)
            await share.offer(jpeg(written(back, texts)))
            async with asyncio.timeout(_NOTE_TIMEOUT_S):
                await noted.wait()
            for number in range(events):
                await asyncio.sleep(4.2)
                noted.clear()
                line = ScreenText(
                    60 + 37 * number % 500, 120 + 45 * number % 400, 28, f"{chat(rng)} {number * 7919 % 1000}"
                )
                began = time.perf_counter()
                # The page sends a picture every half second, so a change waits half of that on average.
                await asyncio.sleep(_FRAME_S / 2)
                await share.offer(jpeg(written(back, [*texts, line])))
                try:
                    async with asyncio.timeout(_NOTE_TIMEOUT_S):
                        await noted.wait()
                    waits.append(time.perf_counter() - began)
                except TimeoutError:
                    missed += 1
                progress.advance()
        finally:
            living.cancel()
            await asyncio.wait({living})
    return {
        "events": events,
        "missed": missed,
        "event_to_note_s_p50": round(percentile(waits, 0.5), 2) if waits else None,
        "event_to_note_s_p95": round(percentile(waits, 0.95), 2) if waits else None,
    }


async def _timed(reader: OcrReader, look: VisionRequest) -> tuple[list[str], _Taken]:
    began, cpu_s = time.perf_counter(), reader.cpu_s
    try:
        read = [line.text for line in (await reader.read(lambda: look, urgent=True)).lines]
    except VisionError:
        read = []
    return read, _Taken(time.perf_counter() - began, reader.cpu_s - cpu_s)


def _alike(words: str, line: str) -> float:
    return SequenceMatcher(None, words.replace(" ", ""), line.replace(" ", ""), autojunk=False).ratio()
