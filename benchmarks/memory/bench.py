"""`roomtone bench memory`: what a summary tells of labelled facts, what is quoted without a model, search, tiers."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.figures import number_at, sample_at
from benchmarks.measuring import Progress, measuring
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.conversations.transcripts import read_conversation_file, read_conversations
from benchmarks.memory.evidence import measure_evidence
from benchmarks.memory.names import measure_names
from benchmarks.memory.quoting import measure_quoting
from benchmarks.memory.roomtone_search import WHOLE_SEARCH
from benchmarks.memory.search import measure_languages, measure_prompts, measure_search_speed, measure_tiers
from benchmarks.memory.summaries import RECORDED, WRITTEN, measure_extractive, measure_recorded
from benchmarks.report import BenchmarkReport, Json, Target, at_least, at_most
from bot.embedding.factory import open_embedder
from bot.store.tiers import PRUNED_AT_ONCE
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from compaction.ports import Embedder

_EVENING_LINES = 300
# A night of talk.
_SESSION_TURNS = 2_000


@dataclass(frozen=True, slots=True)
class MemoryBenchOptions:
    """The options of one run. The defaults are a full run.

    `evenings`: generated evenings of each template set. `transcripts`: a directory of conversations to measure with
    too. `only`: the parts to measure; empty means all. `embeddings`: search by meaning too. `search_turns`: turns in
    the database that is searched.
    """

    evenings: int = 4
    seed: int = 1
    transcripts: Path | None = None
    embeddings: bool = True
    search_turns: int = 100_000
    only: tuple[str, ...] = ()


async def run(
    options: MemoryBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] = lambda _: None
) -> BenchmarkReport:
    """Run the chosen parts, the short ones first. `on_part` gets the unfinished report after each part.

    Raises TranscriptFormatError when supplied conversations cannot be read.
    """
    supplied = [] if options.transcripts is None else read_conversations(options.transcripts)
    made = [
        generate_evening(options.seed + number, templates, lines=_EVENING_LINES)
        for templates in TemplateSet
        for number in range(options.evenings)
    ]
    async with AsyncExitStack() as stack:
        found = stack.enter_context(measuring("memory", memory_targets, progress, on_part, options.only))
        embedder: Embedder | None = None
        if options.embeddings:
            settings = load()
            opening = open_embedder(settings.recall, models=settings.models, llm=settings.llm)
            embedder = await stack.enter_async_context(opening)
        written = [each for name in WRITTEN for each in read_conversation_file(RECORDED / f"{name}.jsonl")]
        parts: dict[str, Callable[[], Awaitable[Mapping[str, Json]]]] = {
            "recorded": measure_recorded,
            "names": lambda: measure_names([*written, *supplied]),
            "extractive": lambda: measure_extractive([*written, *made, *supplied], progress),
            "search": lambda: measure_prompts({"planted": made, "supplied": supplied}, embedder, progress),
            "evidence": lambda: measure_evidence([*made, *supplied], embedder, progress),
            "quoting": lambda: measure_quoting(embedder, progress),
            "languages": lambda: measure_languages(embedder, progress),
            "tiers": lambda: measure_tiers(_SESSION_TURNS, progress),
            "speed": lambda: measure_search_speed(options.search_turns, embedder, progress),
        }
        for name, measure in parts.items():
            if found.wants(name):
                found.part_measured(name, await measure())
    return found.report()


def memory_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""
    turns = number_at(ours, "speed", "turns")
    over = f"{turns:,.0f}" if turns else "100,000"
    return (
        at_least(
            "facts in the text at the end, recorded answers",
            ">= 72 %",
            number_at(ours, "recorded", "told"),
            0.72,
            sample_at(ours, "facts", "recorded", "facts"),
        ),
        at_most(
            "quotes that nobody said in one piece",
            "0",
            number_at(ours, "extractive", "unsaid_quotes"),
            0,
            sample_at(ours, "quotes", "extractive", "quotes"),
        ),
        at_least(
            "misheard names put right",
            ">= 70 %",
            number_at(ours, "names", "found"),
            0.7,
            sample_at(ours, "names", "names", "garbled"),
        ),
        at_most(
            "sentences in which a word became a name",
            "0",
            number_at(ours, "names", "changed"),
            0,
            sample_at(ours, "sentences", "names", "sentences"),
        ),
        at_least(
            "answers among the quotes of a prompt, planted facts",
            ">= 95 %",
            number_at(ours, "search", "planted", "answered"),
            0.95,
            sample_at(ours, "questions", "search", "planted", "questions"),
        ),
        at_most(
            "corrected facts told in their old form first",
            "<= 5 %",
            number_at(ours, "quoting", "told_old_first"),
            0.05,
            sample_at(ours, "facts", "quoting", "corrected"),
        ),
        at_most(
            "corrected facts told in their old form alone or last",
            "<= 5 %",
            number_at(ours, "quoting", "told_old_last"),
            0.05,
            sample_at(ours, "facts", "quoting", "corrected"),
        ),
        at_most(
            "questions about nothing that get a quote",
            "<= 36 %",
            number_at(ours, "quoting", "strays"),
            0.364,
            sample_at(ours, "questions", "quoting", "nothing"),
        ),
        at_least(
            "evidence itself among ten hits, LoCoMo",
            ">= 85 %",
            number_at(ours, "evidence", "LoCoMo", WHOLE_SEARCH, "hit"),
            0.85,
            sample_at(ours, "questions", "evidence", "LoCoMo", "questions"),
        ),
        at_least(
            "answers among three hits, other languages",
            ">= 80 %",
            number_at(ours, "languages", "found"),
            0.8,
            sample_at(ours, "questions", "languages", "questions"),
        ),
        at_most(
            "check of the tiers, CPU P95 ms",
            "<= 50 ms",
            number_at(ours, "tiers", "check", "cpu_ms", "p95"),
            50,
            sample_at(ours, "checks", "tiers", "check", "ms", "count"),
        ),
        at_most(
            f"pruning {PRUNED_AT_ONCE} archived segments, CPU P95 ms",
            "<= 100 ms",
            number_at(ours, "tiers", "prune", "cpu_ms", "p95"),
            100,
            sample_at(ours, "segments", "tiers", "segments"),
        ),
        at_most(
            f"memory search over {over} turns, P95 ms",
            "<= 50 ms",
            number_at(ours, "speed", "ms", "p95"),
            50,
            sample_at(ours, "searches", "speed", "queries"),
        ),
    )
