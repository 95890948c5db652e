"""Measures how long a memory search over 100,000 turns takes with the bot's own store."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING

from benchmarks.figures import percentile
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.roomtone_search import open_roomtone_search

if TYPE_CHECKING:
    from benchmarks.measuring import Progress
    from benchmarks.memory.roomtone_search import RoomtoneSearch
    from benchmarks.report import Json

_EVENING_LINES = 2_000
_QUERIES = 300
_QUOTES = 10
_PIECE = 500


async def measure_search_speed(turns: int, progress: Progress) -> dict[str, Json]:
    """Return how long searches among `turns` turns of generated evenings take, and how long filling the index took."""
    async with open_roomtone_search() as search:
        begun = time.perf_counter()
        questions = await _filled(search, turns, progress)
        added_s = time.perf_counter() - begun
        progress.step(f"search in {turns} turns", total=len(questions))
        # CPU time of all threads together is the time on an idle machine.
        times: list[tuple[float, float]] = []
        # Search once before the measurement, to load what is then kept in memory.
        await search.search(questions[0], limit=_QUOTES)
        for question in questions:
            begun, worked = time.perf_counter(), time.process_time()
            await search.search(question, limit=_QUOTES)
            times.append(((time.perf_counter() - begun) * 1000, (time.process_time() - worked) * 1000))
            progress.advance()
    times_ms, cpu_ms = zip(*times, strict=True)
    return {
        "turns": turns,
        "queries": len(times),
        "added_s": round(added_s, 1),
        "p50_ms": round(percentile(times_ms, 0.5), 2),
        "p95_ms": round(percentile(times_ms, 0.95), 2),
        "max_ms": round(max(times_ms), 2),
        "cpu_p50_ms": round(percentile(cpu_ms, 0.5), 2),
        "cpu_p95_ms": round(percentile(cpu_ms, 0.95), 2),
    }


async def _filled(search: RoomtoneSearch, turns: int, progress: Progress) -> list[str]:
    """Add the turns. Returns questions about them, of all evenings and not only of the first."""
    progress.step(f"taking in {turns} turns", total=turns)
    questions: list[str] = []
    for seed in range(-(-turns // _EVENING_LINES)):
        made = generate_evening(1_000 + seed, TemplateSet.TUNING, lines=_EVENING_LINES)
        questions.extend(fact.question for fact in made.facts)
        lines = made.lines[: turns - seed * _EVENING_LINES]
        for first in range(0, len(lines), _PIECE):
            await search.add(lines[first : first + _PIECE])
            progress.advance(len(lines[first : first + _PIECE]))
    asked = list(dict.fromkeys(questions))
    Random(0).shuffle(asked)  # noqa: S311 - the same questions each time
    return asked[:_QUERIES]
