"""Play one conversation to one memory system, and judge the system at checkpoints.

At each checkpoint all systems are judged on the same turns: after n folds of ten turns, the first 10 n turns. The 52
turns after them are still word for word in every system's window.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from benchmarks.memory.conversations.folds import turns_needed
from benchmarks.memory.judges.fact_judge import EMPTY_TALLY, FactJudge, FactTally
from benchmarks.memory.judges.invented_entities import SourceText
from benchmarks.memory.judges.label_judge import LabelJudge
from benchmarks.memory.judges.text_matching import mentions_any
from benchmarks.memory.systems.memory_system import MAX_INPUT_TOKENS, RoomtoneMemory, format_line, payload_tokens
from compaction.errors import ContextOverflowError
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW
from compaction.model import has_model_paragraph, is_by_model
from compaction.summary.port import MAX_SUMMARY_CHARS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.memory.systems.memory_system import FoldCost, MemorySystem, StoredSegments
    from benchmarks.progress import Progress
    from compaction.model import Segment

# Token budgets that payloads must keep. They include small ones; below 1,024 tokens not even the newest turns fit.
_BUDGETS_TOKENS = (1_024, 2_048, 4_096, MAX_INPUT_TOKENS)
_SENTENCE_ENDS = (".", "!", "?", "…", '"', "”", "'", "’", ")")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The result after a number of folds.

    `entities_due`: the names and values of the facts; `entities`: how many of them are in the text. `stored` is None
    for a system that stores nothing besides its text. `chatter_chars`: how many characters of the text come from small
    talk, where that is labelled.
    """

    folds_due: int
    folds: int
    cursor: int
    injected: FactTally
    stored: FactTally | None
    entities: int
    entities_due: int
    raw_chars: int
    text: str
    chatter_chars: int | None = None


@dataclass(slots=True)
class EvaluationRun:
    """The results of one system in one conversation. `summaries`: how many summaries were checked (all of them).

    `makers`: who made the paragraph, see `paragraph_makers`.
    """

    checkpoints: list[Checkpoint] = field(default_factory=list)
    summaries: int = 0
    overlong: int = 0
    unfinished: int = 0
    payloads: int = 0
    payloads_over_budget: int = 0
    payloads_refused: int = 0
    invented_names: set[str] = field(default_factory=set)
    invented_numbers: set[str] = field(default_factory=set)
    cost: FoldCost | None = None
    makers: Counter[str] = field(default_factory=Counter)


async def evaluate(
    contender: MemorySystem,
    conversation: RecordedConversation,
    folds: Sequence[int],
    progress: Progress,
    *,
    claims: bool = True,
    on_checkpoint: Callable[[Checkpoint], Awaitable[None]] | None = None,
) -> EvaluationRun:
    """Play a conversation to a system and judge it after each number in `folds`.

    `claims`: its text is a summary, so its names, numbers and length are checked. `on_checkpoint` is called at each
    checkpoint, before the next turn.
    """
    judge = judge_of(conversation)
    ends = {turns_needed(count): count for count in folds}
    said = SourceText(conversation.speakers)
    course = EvaluationRun()
    last = ""
    for number, line in enumerate(conversation.lines[: max(ends)], start=1):
        said.add(format_line(line))
        await contender.hear(line)
        progress.advance()
        if number > RECENT_WINDOW and claims:
            snapshot = await contender.snapshot()
            if snapshot.injected and snapshot.injected != last:
                last = snapshot.injected
                _look_at(last, said, course)
        if number % BATCH_SIZE == 0 and isinstance(contender, RoomtoneMemory):
            _look_at_payloads(contender, course)
        if number in ends:
            checkpoint = await _checkpoint(contender, judge, ends[number], claims=claims)
            course.checkpoints.append(checkpoint)
            if on_checkpoint is not None:
                await on_checkpoint(checkpoint)
    course.cost = contender.cost
    if isinstance(contender, RoomtoneMemory):
        course.makers = paragraph_makers(contender.memory.segments)
    return course


def judge_of(conversation: RecordedConversation) -> FactJudge | LabelJudge:
    """Return the judge of a conversation's planted or labelled facts."""
    if conversation.labels:
        return LabelJudge(conversation)
    return FactJudge(conversation.facts, conversation.speakers)


def paragraph_makers(segments: Sequence[Segment]) -> Counter[str]:
    """Return how many folds have the model's paragraph, and how many one made by code, by reason."""
    return Counter(map(_paragraph_maker, segments))


def _paragraph_maker(segment: Segment) -> str:
    if has_model_paragraph(segment):
        return "model"
    # A repair gives a segment the model's facts, and no paragraph.
    if segment.degraded or (is_by_model(segment.summariser) and not segment.paragraph_problem):
        return "the model failed"
    return segment.paragraph_problem or "no model"


def _look_at(summary: str, said: SourceText, course: EvaluationRun) -> None:
    course.summaries += 1
    course.overlong += len(summary) > MAX_SUMMARY_CHARS
    course.unfinished += not summary.rstrip().endswith(_SENTENCE_ENDS)
    invented = said.inventions(summary[:MAX_SUMMARY_CHARS])
    course.invented_names.update(invented.names)
    course.invented_numbers.update(invented.numbers)


def _look_at_payloads(memory: RoomtoneMemory, course: EvaluationRun) -> None:
    for budget in _BUDGETS_TOKENS:
        course.payloads += 1
        try:
            course.payloads_over_budget += payload_tokens(memory, max_input_tokens=budget) > budget
        except ContextOverflowError:
            course.payloads_refused += 1


async def _checkpoint(
    contender: MemorySystem, judge: FactJudge | LabelJudge, folds: int, *, claims: bool
) -> Checkpoint:
    snapshot = await contender.snapshot()
    # A system whose summary lags behind still has these turns word for word.
    cursor = min(folds * BATCH_SIZE, snapshot.cursor)
    total = turns_needed(folds)
    text = snapshot.injected[:MAX_SUMMARY_CHARS] if claims else snapshot.injected
    stored = await contender.stored()
    entities = judge.entities_due(cursor, total)
    return Checkpoint(
        folds_due=folds,
        folds=snapshot.folds,
        cursor=cursor,
        injected=judge.judged(text, cursor, total),
        stored=None if stored is None else _stored_tally(judge, stored, cursor, total),
        entities=sum(mentions_any(text, entity) for entity in entities),
        entities_due=len(entities),
        raw_chars=len(snapshot.injected) if claims else 0,
        text=text,
        chatter_chars=judge.chatter_chars(text, cursor) if isinstance(judge, LabelJudge) and claims else None,
    )


def _stored_tally(judge: FactJudge | LabelJudge, stored: StoredSegments, cursor: int, total: int) -> FactTally:
    """Judge everything that the system stores. An old value counts if it is not marked as replaced."""
    holding = judge.judged(stored.holding, cursor, total)
    return replace(judge.judged(stored.everything, cursor, total), stale=holding.stale)


def sum_tallies(tallies: Iterable[FactTally]) -> FactTally:
    total = EMPTY_TALLY
    for tally in tallies:
        total += tally
    return total
