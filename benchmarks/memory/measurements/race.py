"""Plays conversations to one system and gathers its figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.memory.conversations.folds import turns_needed
from benchmarks.memory.judges.answer_facts import AnswerFacts, compare_facts
from benchmarks.memory.judges.label_judge import LabelJudge
from benchmarks.memory.judges.text_matching import letters
from benchmarks.memory.measurements.evaluation import evaluate
from benchmarks.memory.measurements.scores import recall_scores, scores
from benchmarks.memory.search.human_reference import ReferenceRecall, baseline_texts, measure_reference_recall
from benchmarks.memory.search.roomtone_search import RoomtoneSearch
from benchmarks.memory.systems.memory_system import RoomtoneMemory
from benchmarks.peers.process import PeerProcess
from benchmarks.stats import share_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.memory.judges.readings import UnreadText
    from benchmarks.memory.measurements.conversation_sets import PlannedConversation
    from benchmarks.memory.measurements.evaluation import Checkpoint, EvaluationRun
    from benchmarks.memory.systems.catalogue import SystemSpec
    from benchmarks.progress import Progress
    from benchmarks.report import Json
    from compaction.ports import Embedder

_QUOTES = 10


@dataclass(slots=True)
class LastingFacts:
    """Lasting facts after some folds: how many are in the text, and how many of the others a search finds."""

    facts: int = 0
    told: int = 0
    found: int = 0

    def figures(self) -> dict[str, Json]:
        """Return the shares for the report."""
        rest = self.facts - self.told
        return {
            "facts": self.facts,
            "told": share_of(self.told, self.facts),
            "rest": rest,
            "found_of_rest": share_of(self.found, rest),
        }


@dataclass(slots=True)
class Race:
    """Plays conversations to systems. `remark` is called with each sentence for the report."""

    embedder: Embedder | None
    progress: Progress
    remark: Callable[[str], None]
    unread: list[UnreadText] = field(default_factory=list)

    async def hear(self, entrant: SystemSpec, heard: Sequence[PlannedConversation]) -> dict[str, Json]:
        """Return the figures of one system over these conversations. Raises PeerError."""
        courses = []
        versions: set[str] = set()
        recall = ReferenceRecall()
        answered = AnswerFacts()
        lasting: dict[int, LastingFacts] = {}
        for each in heard:
            conversation = each.conversation
            async with entrant.enter(conversation) as contender:

                async def at(
                    checkpoint: Checkpoint, memory: object = contender, heard: RecordedConversation = conversation
                ) -> None:
                    if isinstance(memory, RoomtoneMemory) and heard.labels:
                        counts = lasting.setdefault(checkpoint.folds_due, LastingFacts())
                        await self._find_lasting(memory, heard, checkpoint, counts)

                course = await evaluate(
                    contender, conversation, each.folds, self.progress, claims=entrant.claims, on_checkpoint=at
                )
                if isinstance(contender, PeerProcess):
                    versions.add(contender.version)
                if isinstance(contender, RoomtoneMemory) and entrant.recorded == "roomtone":
                    given = entrant.replays[conversation.name].given
                    answered.add(compare_facts(given, contender.memory.segments, conversation.speakers))
            courses.append(course)
            if conversation.labels and entrant.claims:
                self._note_unread(conversation, course)
            self._remark_on(entrant, conversation.name, contender.cost.degraded)
            last = course.checkpoints[-1]
            recall += await measure_reference_recall(conversation, last.text, last.cursor, None)
        # Only the project's own conversations have planted facts or labels.
        figures = scores(courses, quotes=all(each.conversation.facts or each.conversation.labels for each in heard))
        if versions:
            figures["version"] = ", ".join(sorted(versions))
        if recall.entities_due or recall.questions:
            figures["people"] = recall_scores(recall, searched=False)
        if answered.fates:
            figures["answer_facts"] = answered.figures()
        makers = sum((course.makers for course in courses), Counter[str]())
        if entrant.needs_model and makers:
            reasons = ", ".join(f"{count} by code ({why})" for why, count in makers.most_common() if why != "model")
            self.remark(
                f"Of {makers.total()} folds of {entrant.name}, {makers['model']} have the model's own paragraph; "
                f"{reasons or 'none is by code'}."
            )
        if lasting:
            figures["lasting"] = {str(folds): counts.figures() for folds, counts in lasting.items()}
        return figures

    def _note_unread(self, conversation: RecordedConversation, course: EvaluationRun) -> None:
        """Keep the texts that nobody has read, and tell how many were judged by words alone."""
        judge = LabelJudge(conversation)
        unread = [judge.unread(each.text, each.cursor) for each in course.checkpoints]
        found = [each for each in unread if each is not None]
        if found:
            self.unread += found
            self.remark(
                f"{len(found)} of {len(unread)} texts about {conversation.name} were judged by words, "
                "the others by a reader."
            )

    def _remark_on(self, entrant: SystemSpec, conversation: str, degraded: int) -> None:
        if degraded:
            self.remark(
                f"{degraded} folds of {entrant.name} in {conversation} were made without the model, which had failed."
            )
        if (counts := entrant.replays.get(conversation)) is not None and (
            misfit := counts.remark(entrant.recorded, conversation)
        ):
            self.remark(misfit)

    async def _find_lasting(
        self, memory: RoomtoneMemory, conversation: RecordedConversation, checkpoint: Checkpoint, counts: LastingFacts
    ) -> None:
        search = RoomtoneSearch(memory.database, self.embedder)
        await search.embed_all()
        judge = LabelJudge(conversation)
        for fact in judge.due(checkpoint.cursor, turns_needed(checkpoint.folds_due)):
            if not fact.question:
                continue
            counts.facts += 1
            if judge.states(checkpoint.text, fact):
                counts.told += 1
                continue
            quotes = await search.search(fact.question, limit=_QUOTES)
            said = letters(conversation.lines[fact.turn].text)
            counts.found += any(said in letters(quote.text) for quote in quotes)


async def measure_baselines(heard: Sequence[PlannedConversation]) -> dict[str, dict[str, Json]]:
    """Return how much of people's summaries simple texts have, by their names."""
    recalls: dict[str, ReferenceRecall] = {}
    for each in heard:
        cursor = max(each.folds) * 10
        for name, text in baseline_texts(each.conversation, cursor).items():
            found = await measure_reference_recall(each.conversation, text, cursor, None)
            recalls[name] = recalls.get(name, ReferenceRecall()) + found
    return {name: recall_scores(recall, searched=False) for name, recall in recalls.items() if recall.entities_due}
