"""Measures how long a memory search over 100,000 turns takes with the bot's own store."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.stats import percentile

if TYPE_CHECKING:
    from benchmarks.memory.roomtone_search import RoomtoneSearch
    from benchmarks.progress import Progress
    from benchmarks.report import Json

_EVENING_LINES = 2_000
_QUERIES = 300
_QUOTES = 10
_PIECE = 500


@dataclass(frozen=True, slots=True)
class FilledIndex:
    """A filled index: the number of turns, the seconds that filling took, and questions about the turns."""

    turns: int
    seconds: float
    questions: tuple[str, ...]


async def fill_index(search: RoomtoneSearch, turns: int, progress: Progress) -> FilledIndex:
    """Add `turns` turns of generated evenings."""
    progress.step(f"taking in {turns} turns", total=turns)
    questions: list[str] = []
    started = time.perf_counter()
    for seed in range(-(-turns // _EVENING_LINES)):
        made = generate_evening(1_000 + seed, TemplateSet.TUNING, lines=_EVENING_LINES)
        questions.extend(fact.question for fact in made.facts)
        lines = made.lines[: turns - seed * _EVENING_LINES]
        for first in range(0, len(lines), _PIECE):
            await search.add(lines[first : first + _PIECE])
            progress.advance(len(lines[first : first + _PIECE]))
    asked = list(dict.fromkeys(questions))
    # Shuffle, so that the questions come from all evenings and not only from the first.
    Random(0).shuffle(asked)  # noqa: S311 - the same questions each time
    return FilledIndex(turns, round(time.perf_counter() - started, 1), tuple(asked[:_QUERIES]))


async def measure_search_speed(search: RoomtoneSearch, filled: FilledIndex, progress: Progress) -> dict[str, Json]:
    """Return how long searches in a filled index take."""
    progress.step(f"search in {filled.turns} turns", total=len(filled.questions))
    times_ms: list[float] = []
    # CPU time of all threads together, which is the time on an idle machine.
    cpu_ms: list[float] = []
    # Search once before the measurement, to load what is then kept in memory.
    await search.search(filled.questions[0], limit=_QUOTES)
    for question in filled.questions:
        begun, worked = time.perf_counter(), time.process_time()
        await search.search(question, limit=_QUOTES)
        times_ms.append((time.perf_counter() - begun) * 1000)
        cpu_ms.append((time.process_time() - worked) * 1000)
        progress.advance()
    return {
        "turns": filled.turns,
        "queries": len(times_ms),
        "added_s": filled.seconds,
        "p50_ms": round(percentile(times_ms, 0.5), 2),
        "p95_ms": round(percentile(times_ms, 0.95), 2),
        "max_ms": round(max(times_ms), 2),
        "cpu_p50_ms": round(percentile(cpu_ms, 0.5), 2),
        "cpu_p95_ms": round(percentile(cpu_ms, 0.95), 2),
    }
