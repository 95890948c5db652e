"""How long a memory search takes in 100,000 turns, through the store that the bot uses."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING

from benchmarks.figures import percentile
from benchmarks.memory.evenings import TemplateSet, evening

if TYPE_CHECKING:
    from benchmarks.memory.retrieval import Retriever
    from benchmarks.progress import Progress
    from benchmarks.report import Json

_EVENING_LINES = 2_000
_QUERIES = 300
_QUOTES = 10


async def measure_search(retriever: Retriever, turns: int, progress: Progress) -> dict[str, Json]:
    """Return how long it took to take in so many turns, and what a search takes then."""
    progress.step(f"search in {turns} turns", total=turns + _QUERIES)
    questions: list[str] = []
    started = time.perf_counter()
    for seed in range(-(-turns // _EVENING_LINES)):
        made = evening(1_000 + seed, TemplateSet.TUNING, lines=_EVENING_LINES)
        questions.extend(fact.question for fact in made.facts)
        lines = made.lines[: turns - seed * _EVENING_LINES]
        for first in range(0, len(lines), 100):
            await retriever.add(lines[first : first + 100])
            progress.advance(len(lines[first : first + 100]))
    added_s = time.perf_counter() - started
    asked = list(dict.fromkeys(questions))
    # From all evenings, not the first ones alone.
    Random(0).shuffle(asked)  # noqa: S311 - the same questions each time
    times_ms: list[float] = []
    # What it would take on an idle machine, all threads together.
    cpu_ms: list[float] = []
    for question in asked[:_QUERIES]:
        begun, worked = time.perf_counter(), time.process_time()
        await retriever.search(question, limit=_QUOTES)
        times_ms.append((time.perf_counter() - begun) * 1000)
        cpu_ms.append((time.process_time() - worked) * 1000)
        progress.advance()
    return {
        "retriever": retriever.name,
        "turns": turns,
        "queries": len(times_ms),
        "added_s": round(added_s, 1),
        "p50_ms": round(percentile(times_ms, 0.5), 2),
        "p95_ms": round(percentile(times_ms, 0.95), 2),
        "max_ms": round(max(times_ms), 2),
        "cpu_p50_ms": round(percentile(cpu_ms, 0.5), 2),
        "cpu_p95_ms": round(percentile(cpu_ms, 0.95), 2),
    }
