"""How long a memory search takes in 100,000 turns."""

from __future__ import annotations

import time
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
    progress.step("search in many turns", total=turns + _QUERIES)
    questions: list[str] = []
    started = time.perf_counter()
    for seed in range(-(-turns // _EVENING_LINES)):
        made = evening(1_000 + seed, TemplateSet.TUNING, lines=_EVENING_LINES)
        questions.extend(fact.question for fact in made.facts)
        await retriever.add(made.lines[: turns - seed * _EVENING_LINES])
        progress.advance(_EVENING_LINES)
    added_s = time.perf_counter() - started
    times_ms: list[float] = []
    asked = list(dict.fromkeys(questions))[:_QUERIES]
    for question in asked:
        begun = time.perf_counter()
        await retriever.search(question, limit=_QUOTES)
        times_ms.append((time.perf_counter() - begun) * 1000)
        progress.advance()
    return {
        "retriever": retriever.name,
        "turns": turns,
        "queries": len(asked),
        "added_s": round(added_s, 1),
        "p50_ms": round(percentile(times_ms, 0.5), 2),
        "p95_ms": round(percentile(times_ms, 0.95), 2),
        "max_ms": round(max(times_ms), 2),
    }
