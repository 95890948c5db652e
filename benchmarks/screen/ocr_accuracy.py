"""Measures OCR on generated screens: how much of their text is read, and what it costs."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from benchmarks.screen.synthetic_screens import hud, jpeg, scene, written
from benchmarks.stats import mean_of_sum, percentile
from voice.screen.frame_diff import WHOLE, Box
from voice.screen.ocr import OcrReader
from voice.screen.port import VisionError, VisionRequest

if TYPE_CHECKING:
    from benchmarks.progress import Progress
    from benchmarks.report import Json

# A line counts as read if at least this share of it is right.
READ_SHARE = 0.9
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
                wanted, letters, lines = wanted + 1, letters + best, lines + (best >= READ_SHARE)
            progress.advance()
    return {
        "lines_read": mean_of_sum(lines, wanted),
        "letters_right": mean_of_sum(letters, wanted),
        "whole_screen_ms_p50": round(1000 * percentile([each.wall_s for each in whole], 0.5)),
        "whole_screen_cpu_ms_p50": round(1000 * percentile([each.cpu_s for each in whole], 0.5)),
        "changed_part_ms_p50": round(1000 * percentile([each.wall_s for each in part], 0.5)),
        "changed_part_cpu_ms_p50": round(1000 * percentile([each.cpu_s for each in part], 0.5)),
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
