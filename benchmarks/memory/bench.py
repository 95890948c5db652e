"""`roomtone bench memory`: what a summary tells of labelled facts, what is quoted without a model, and search."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.disabled_logging import logging_disabled
from benchmarks.figures import number_at, sample_at
from benchmarks.measuring import Measuring
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.conversations.transcripts import read_conversation_file, read_conversations
from benchmarks.memory.extractive import measure_extractive
from benchmarks.memory.other_languages import measure_languages
from benchmarks.memory.prompt_quotes import quotes_in_prompts
from benchmarks.memory.recorded_answers import RECORDED, WRITTEN, measure_recorded
from benchmarks.memory.roomtone_search import open_roomtone_search
from benchmarks.memory.search_speed import fill_index, measure_search_speed
from benchmarks.report import Target, at_least, at_most
from bot.embedding.factory import open_embedder
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.progress import Progress
    from benchmarks.report import BenchmarkReport, Json
    from compaction.ports import Embedder

_EVENING_LINES = 300
_SETS = ("planted", "supplied")


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

    def wants(self, part: str) -> bool:
        """Return whether this part has to be measured."""
        return not self.only or part in self.only


async def run(
    options: MemoryBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Run the chosen parts. `on_part` gets the unfinished report after each part.

    Raises TranscriptFormatError when supplied conversations cannot be read.
    """
    measuring = _Measuring(options=options, progress=progress, on_part=on_part)
    supplied = [] if options.transcripts is None else read_conversations(options.transcripts)
    with logging_disabled():
        async with AsyncExitStack() as stack:
            embedder: Embedder | None = None
            if options.embeddings:
                settings = load()
                embedder = await stack.enter_async_context(
                    open_embedder(settings.recall, models=settings.models, llm=settings.llm)
                )
            measuring.remark_if_busy()
            await measuring.measure(supplied, embedder)
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "memory"

    options: MemoryBenchOptions

    def targets(self) -> tuple[Target, ...]:
        return memory_targets(self.ours)

    async def measure(self, supplied: Sequence[RecordedConversation], embedder: Embedder | None) -> None:
        """Measure the parts that are wanted, the short ones first."""
        made = [
            generate_evening(self.options.seed + number, templates, lines=_EVENING_LINES)
            for templates in TemplateSet
            for number in range(self.options.evenings)
        ]
        if self.options.wants("recorded"):
            recorded = await measure_recorded()
            self.part_measured("recorded", recorded)
        if self.options.wants("extractive"):
            written = [each for name in WRITTEN for each in read_conversation_file(RECORDED / f"{name}.jsonl")]
            quotes = await measure_extractive([*written, *made, *supplied], self.progress)
            self.part_measured("extractive", quotes)
        if self.options.wants("search"):
            found: dict[str, Json] = {"embedder": None if embedder is None else embedder.model}
            for name, conversations in zip(_SETS, (made, supplied), strict=True):
                if any(each.facts or each.questions for each in conversations):
                    found[name] = await quotes_in_prompts(conversations, embedder, self.progress)
            self.part_measured("search", found)
        if self.options.wants("languages"):
            self.part_measured("languages", await measure_languages(embedder, self.progress))
        if self.options.wants("speed"):
            async with open_roomtone_search() as search:
                filled = await fill_index(search, self.options.search_turns, self.progress)
                self.part_measured("speed", await measure_search_speed(search, filled, self.progress))


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
            "answers among the quotes of a prompt, planted facts",
            ">= 95 %",
            number_at(ours, "search", "planted", "answered"),
            0.95,
            sample_at(ours, "questions", "search", "planted", "questions"),
        ),
        at_least(
            "evidence among ten hits, people's questions",
            ">= 78 %",
            number_at(ours, "search", "supplied", "among_ten"),
            0.78,
            sample_at(ours, "questions", "search", "supplied", "questions"),
        ),
        at_least(
            "answers among three hits, other languages",
            ">= 80 %",
            number_at(ours, "languages", "found"),
            0.8,
            sample_at(ours, "questions", "languages", "questions"),
        ),
        at_most(
            f"memory search over {over} turns, P95 ms",
            "<= 50 ms",
            number_at(ours, "speed", "p95_ms"),
            50,
            sample_at(ours, "searches", "speed", "queries"),
        ),
    )
