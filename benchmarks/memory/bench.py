"""`roomtone bench memory`: how much of a conversation is remembered after 5, 20 and 100 folds, and what that costs.

This module only runs the parts: conversations come from `measurements.conversation_sets`, `measurements.race` plays
them to each system, and `judges` and `search` score the results.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from benchmarks.disabled_logging import logging_disabled
from benchmarks.errors import BenchmarkError, PeerError
from benchmarks.measuring import Measuring
from benchmarks.memory.blind import read_verdicts
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.judges.readings import UnreadText, write_sheet
from benchmarks.memory.measurements.barge_in import SUMMARY_S, TURN_S, measure_barge_in
from benchmarks.memory.measurements.cases import measure_cases
from benchmarks.memory.measurements.conversation_sets import ConversationSets
from benchmarks.memory.measurements.prompt_quotes import quotes_in_prompts
from benchmarks.memory.measurements.race import Race, measure_baselines
from benchmarks.memory.measurements.reply_path import measure_reply_path
from benchmarks.memory.measurements.search_accuracy import measure_search_accuracy
from benchmarks.memory.measurements.search_speed import fill_index, measure_search_speed
from benchmarks.memory.search.roomtone_search import open_roomtone_search
from benchmarks.memory.systems.catalogue import peer_system, recorded_systems, roomtone_systems, systems_without_model
from benchmarks.memory.systems.dependencies import find_embedder, find_endpoint, find_pythons
from benchmarks.memory.targets import memory_targets
from benchmarks.peers.process import peer_process
from benchmarks.stub_model import stub_endpoint
from compaction.settings import CompactionSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from benchmarks.memory.options import MemoryBenchOptions
    from benchmarks.memory.systems.catalogue import SystemSpec
    from benchmarks.peers.environment import PeerLibrary
    from benchmarks.progress import Progress
    from benchmarks.report import BenchmarkReport, Json, Target
    from compaction.ports import Embedder

_BARGE_IN_TURNS = 300


async def run(
    options: MemoryBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Run every measurement that is possible on this machine. `on_part` gets the unfinished report after each part.

    Raises EndpointError when a configured endpoint does not answer, and TranscriptFormatError when supplied
    conversations cannot be read. Anything else that is missing becomes a remark in the report.
    """
    measuring = _Measuring(options=options, progress=progress, on_part=on_part, material=ConversationSets(options))
    with logging_disabled():
        async with AsyncExitStack() as stack:
            endpoint = await find_endpoint(options, stack, measuring.remark, progress)
            pythons = await find_pythons(options, stack, measuring.remark, progress)
            entrants = list(systems_without_model())
            if endpoint is not None:
                entrants += roomtone_systems(endpoint)
                entrants += [peer_system(library, python, endpoint) for library, python in pythons.items()]
            entrants += recorded_systems(options.answers, pythons)
            chosen = _chosen(entrants, options.only)
            if not options.parts or {"speed", "search", "facts"} & set(options.parts):
                measuring.embedder = await find_embedder(options, stack, measuring.remark)
            measuring.remark_if_busy()
            await measuring.measure(chosen, pythons)
            if options.unread is not None:
                count = write_sheet(options.unread, measuring.unread)
                progress.say(f"{count} texts that nobody has read are in {options.unread}.")
    return measuring.report()


def _chosen(entrants: Sequence[SystemSpec], only: Sequence[str]) -> list[SystemSpec]:
    """Return the systems named in `only`, or all. Raises BenchmarkError for an unknown name."""
    unknown = set(only) - {entrant.name for entrant in entrants}
    if unknown:
        there = ", ".join(entrant.name for entrant in entrants)
        raise BenchmarkError(
            f"Nobody here is called {', '.join(sorted(unknown))}. Who can be heard in this run: {there}."
        )
    return [entrant for entrant in entrants if not only or entrant.name in only]


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "memory"

    options: MemoryBenchOptions
    material: ConversationSets
    embedder: Embedder | None = None
    unread: list[UnreadText] = field(default_factory=list)

    def targets(self) -> tuple[Target, ...]:
        return memory_targets(self.ours, self.peers)

    async def measure(self, entrants: Sequence[SystemSpec], pythons: Mapping[PeerLibrary, Path]) -> None:
        """Measure the parts that are wanted, the short ones first."""
        if self._wants("speed"):
            self.ours["reply_path"] = await measure_reply_path(self.options.turns, CompactionSettings(), self.progress)
            await self._measure_search_speed(self.embedder)
        if self._wants("search"):
            await self._measure_search()
        if self._wants("barge_in"):
            await self.measure_barge_in(pythons)
        if self._wants("cases"):
            for entrant in entrants:
                # A small model would take a minute a case, and says nothing about the cases.
                if entrant.claims and (entrant.recorded or not entrant.needs_model):
                    await self._measure_cases(entrant)
            if verdicts := read_verdicts():
                self.ours["blind"] = verdicts
        if self._wants("facts"):
            self.peers.update(await self._baselines())
            for entrant in entrants:
                await self.race(entrant)

    def _wants(self, part: str) -> bool:
        return not self.options.parts or part in self.options.parts

    async def _measure_search(self) -> None:
        found = await measure_search_accuracy(self.material.sets(needs_model=False), self.embedder, self.progress)
        for retriever_name, figures in found.items():
            side = self.peers if retriever_name.startswith("plain") else self.ours
            side[f"search: {retriever_name}"] = figures
        self.part_done()
        for origin, conversations in self.material.asked().items():
            for embedder in dict.fromkeys((None, self.embedder)):
                kind = "full text" if embedder is None else "full text and meaning"
                self.quotes(kind)[origin] = await quotes_in_prompts(conversations, embedder, self.progress)
                self.part_done()

    def quotes(self, kind: str) -> dict[str, Json]:
        """Return the entry of the report for quotes in prompts that this kind of search found."""
        entry = self.ours.setdefault(f"quotes in prompts: {kind}", {})
        assert isinstance(entry, dict)
        return entry

    async def _measure_cases(self, entrant: SystemSpec) -> None:
        figures = await measure_cases(entrant, self.options.answers, self.progress, self.unread)
        if figures:
            (self.ours if entrant.ours else self.peers)[f"cases: {entrant.name}"] = figures
            self.part_done()

    async def _baselines(self) -> dict[str, Json]:
        """Return what simple texts have of people's summaries, in the conversations that the user supplied."""
        figures: dict[str, dict[str, Json]] = {}
        for origin, heard in self.material.sets(needs_model=False).items():
            for name, recall in (await measure_baselines(heard)).items():
                figures.setdefault(name, {})[origin] = {"people": recall}
        return dict(figures)

    async def _measure_search_speed(self, embedder: Embedder | None) -> None:
        async with open_roomtone_search() as by_words:
            filled = await fill_index(by_words, self.options.search_turns, self.progress)
            self.ours["search_speed"] = await measure_search_speed(by_words, filled, self.progress)
            if embedder is None:
                return
            fused = by_words.with_embedder(embedder)
            (vector,) = await embedder.embed(["How wide is a vector?"])
            self.progress.step("vectors for the search", total=self.options.search_turns)
            await fused.embed_at_random(len(vector), self.progress)
            self.ours["search_speed_with_embeddings"] = await measure_search_speed(fused, filled, self.progress)

    async def measure_barge_in(self, pythons: Mapping[PeerLibrary, Path]) -> None:
        """Interrupt every reply of a conversation, once with Roomtone and once with each library. All have equally slow
        summaries.
        """
        conversation = generate_evening(self.options.seed, TemplateSet.TUNING, lines=_BARGE_IN_TURNS)
        self.progress.step("constant barge-in, ours", total=len(conversation.lines))
        ours = await measure_barge_in(conversation, CompactionSettings(), self.progress)
        self.ours["barge_in"] = dict(asdict(ours))
        async with stub_endpoint(answer_s=SUMMARY_S) as endpoint:
            for library, python in pythons.items():
                self.progress.step(f"constant barge-in, {library.name}", total=1)
                try:
                    async with peer_process(library, python, endpoint) as peer:
                        figures = await peer.barge_in(conversation.lines, turn_s=TURN_S)
                        told: dict[str, Json] = {"turns": len(conversation.lines), **figures, "version": peer.version}
                except PeerError as error:
                    self.remark(str(error))
                    told = {"failed": str(error)}
                self.peers[f"barge_in {library.name}"] = told
        self.part_done()

    async def race(self, entrant: SystemSpec) -> None:
        """Play all conversations to one system. If another library fails, the run reports the failure and continues."""
        side = self.ours if entrant.ours else self.peers
        figures: dict[str, Json] = {}
        try:
            if entrant.recorded:
                sets = self.material.recorded(entrant.recorded, self.options.answers)
            else:
                sets = self.material.sets(needs_model=entrant.needs_model)
            race = Race(self.embedder, self.progress, self.remark, self.unread)
            for name, heard in sets.items():
                self.progress.step(f"{entrant.name}, {name}", total=sum(each.turns for each in heard))
                figures[name] = await race.hear(entrant, heard)
        except PeerError as error:
            self.remark(str(error))
            figures["failed"] = str(error)
        side[entrant.name] = figures
        self.part_done()
