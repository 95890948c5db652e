"""`roomtone bench memory`: what the memory without a model keeps, what search finds, and what a reply pays for it.

What a model makes of the same is not measured here: its answers have to be recorded for each prompt.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.disabled_logging import logging_disabled
from benchmarks.measuring import Measuring
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.conversations.transcripts import read_conversations, read_planted
from benchmarks.memory.conversations.written import NAMES, read_written
from benchmarks.memory.measurements.extractive import measure_extractive
from benchmarks.memory.measurements.prompt_quotes import quotes_in_prompts
from benchmarks.memory.measurements.reply_path import measure_reply_path
from benchmarks.memory.measurements.search_speed import fill_index, measure_search_speed
from benchmarks.memory.search.roomtone_search import open_roomtone_search
from benchmarks.report import Target, at_least, at_most
from bot.embedding.factory import open_embedder
from compaction.settings import CompactionSettings
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.memory.options import MemoryBenchOptions
    from benchmarks.progress import Progress
    from benchmarks.report import BenchmarkReport, Json
    from compaction.ports import Embedder

_EVENING_LINES = 300


async def run(
    options: MemoryBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Run every measurement. `on_part` gets the unfinished report after each part.

    Raises TranscriptFormatError when supplied conversations cannot be read.
    """
    measuring = _Measuring(options=options, progress=progress, on_part=on_part)
    with logging_disabled():
        async with AsyncExitStack() as stack:
            if options.embeddings:
                settings = load()
                embedder = open_embedder(settings.recall, models=settings.models, llm=settings.llm)
                measuring.embedder = await stack.enter_async_context(embedder)
            measuring.remark_if_busy()
            await measuring.measure()
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "memory"

    options: MemoryBenchOptions
    embedder: Embedder | None = None

    def targets(self) -> tuple[Target, ...]:
        return extractive_targets(self.ours)

    async def measure(self) -> None:
        """Measure the parts that are wanted, the short ones first."""
        brought: dict[str, list[RecordedConversation]] = defaultdict(list)
        if self.options.transcripts is not None:
            for each in (*read_conversations(self.options.transcripts), *read_planted(self.options.transcripts)):
                brought[each.origin].append(each)
        if self._wants("extractive"):
            written = [read_written(name) for name in NAMES]
            made = [
                generate_evening(self.options.seed + number, templates, lines=_EVENING_LINES)
                for templates in TemplateSet
                for number in range(self.options.evenings)
            ]
            for origin, conversations in {"written": written, "generated": made, **brought}.items():
                self._extractive()[origin] = await measure_extractive(conversations, self.progress)
                self.part_done()
        if self._wants("search"):
            for origin, conversations in brought.items():
                asked = [each for each in conversations if any(question.evidence for question in each.questions)]
                for embedder in dict.fromkeys((None, self.embedder)) if asked else ():
                    kind = "full text" if embedder is None else "full text and meaning"
                    self._quotes(kind)[origin] = await quotes_in_prompts(asked, embedder, self.progress)
                    self.part_done()
        if self._wants("speed"):
            self.ours["reply_path"] = await measure_reply_path(self.options.turns, CompactionSettings(), self.progress)
            async with open_roomtone_search() as search:
                filled = await fill_index(search, self.options.search_turns, self.progress)
                self.ours["search_speed"] = await measure_search_speed(search, filled, self.progress)
            self.part_done()

    def _wants(self, part: str) -> bool:
        return not self.options.parts or part in self.options.parts

    def _extractive(self) -> dict[str, Json]:
        return self._entry("extractive")

    def _quotes(self, kind: str) -> dict[str, Json]:
        return self._entry(f"quotes in prompts: {kind}")

    def _entry(self, name: str) -> dict[str, Json]:
        entry = self.ours.setdefault(name, {})
        assert isinstance(entry, dict)
        return entry


def extractive_targets(ours: dict[str, Json]) -> tuple[Target, ...]:
    """Return the targets of the summariser without a model, for each set of conversations."""
    sets = ours.get("extractive")
    targets: list[Target] = []
    for origin, figures in sets.items() if isinstance(sets, dict) else ():
        assert isinstance(figures, dict)
        unsaid, kept = figures.get("unsaid_quotes"), figures.get("entities_kept")
        if isinstance(unsaid, int):
            targets.append(at_most(f"quotes that nobody said in one piece, {origin}", "none", unsaid, 0))
        if isinstance(kept, float):
            targets.append(at_least(f"names and numbers of people's summaries, {origin}", "25 %", kept, 0.25))
    return tuple(targets)
