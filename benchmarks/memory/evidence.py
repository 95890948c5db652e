"""Measures how often search finds the turn that answers a question.

Strictly, an answer is found if the turn that holds it is a hit itself. A hit also shows the turns beside it, so more
answers are seen than are found: `shown` counts these too.
"""

from __future__ import annotations

import time
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.memory.conversations.conversation import RecordedConversation, ReferenceQuestion
from benchmarks.memory.roomtone_search import PATIENCE_S, SESSION, open_roomtone_search
from compaction.memory.passage import Scope
from compaction.model import Seq
from compaction.window import RECENT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.measuring import Progress
    from benchmarks.report import Json
    from compaction.memory.recall import RecallHit
    from compaction.ports import Embedder

# The hits among which the evidence must be.
AMONG = 10
# Questions that were written for this benchmark, by conversation and by the line that answers them.
WRITTEN_QUESTIONS = Path(__file__).parent / "written_questions.toml"
_Judged: TypeAlias = tuple[bool, float, bool, float]


async def measure_evidence(
    conversations: Sequence[RecordedConversation], embedder: Embedder | None, progress: Progress
) -> dict[str, Json]:
    """Return the figures of each set of conversations by its origin, and of each way to search.

    `hit`: the share of the questions with a turn of the evidence among the first ten hits. `recall`: the share of a
    question's evidence among them, on average. `shown`: the share of the questions whose evidence they show, beside the
    hits too. `cpu_ms`: the processor time of a search. A question whose evidence is in the last turns is not asked.
    """
    found: defaultdict[str, defaultdict[str, list[_Judged]]] = defaultdict(lambda: defaultdict(list))
    used: defaultdict[str, int] = defaultdict(int)
    progress.step("evidence", total=len(conversations))
    for conversation in conversations:
        seen = Seq(len(conversation.lines) - RECENT_WINDOW)
        asked = [each for each in asked_questions(conversation) if max(each.evidence) < seen]
        if asked:
            used[conversation.origin] += 1
            async with open_roomtone_search(embedder, conversation.lines) as search:
                for way, recall in search.ways().items():
                    for each in asked:
                        scope, begun = Scope(in_view=(SESSION, seen)), time.process_time()
                        hits = await recall.search(each.text, scope, limit=AMONG, embed_within_s=PATIENCE_S)
                        found[conversation.origin][way].append(
                            _judged(each, hits, (time.process_time() - begun) * 1000)
                        )
        progress.advance()
    return {
        origin: {
            "conversations": used[origin],
            "questions": len(next(iter(ways.values()))),
            **{way: _figures(judged) for way, judged in ways.items()},
        }
        for origin, ways in found.items()
    }


def _judged(asked: ReferenceQuestion, hits: Sequence[RecallHit], cpu_ms: float) -> _Judged:
    """Return whether a hit is evidence, the share of the evidence that is hit, whether evidence is shown, the cost."""
    evidence = frozenset(asked.evidence)
    hit = evidence & {each.seq for each in hits}
    shown = {turn.seq for each in hits for turn in each.turns}
    return bool(hit), len(hit) / len(evidence), not evidence.isdisjoint(shown), cpu_ms


def _figures(judged: Sequence[_Judged]) -> dict[str, Json]:
    return {
        name: round(fmean(values), 4)
        for name, values in zip(("hit", "recall", "shown", "cpu_ms"), zip(*judged, strict=True), strict=True)
    }


def asked_questions(conversation: RecordedConversation) -> Iterator[ReferenceQuestion]:
    """Yield the questions about a conversation whose evidence is known."""
    for fact in conversation.facts:
        yield ReferenceQuestion(fact.question, (fact.statements[-1].seq,))
    for question in conversation.questions or _written_questions().get(conversation.name, ()):
        if question.evidence:
            yield question


@cache
def _written_questions() -> dict[str, tuple[ReferenceQuestion, ...]]:
    return {
        name: tuple(ReferenceQuestion(text, (int(line),)) for line, text in questions.items())
        for name, questions in tomllib.loads(WRITTEN_QUESTIONS.read_text("utf-8")).items()
    }
