"""Makes the record of a folded segment for lists and exports, with exactly the fields of spec 3. Pure.

A record has the facts of its segment that still hold and are more than a detail, each once: decisions as
`key_decisions`, the others as `compressed_content`. The topic is the heading of its chapter; all but it is counted.
Decisions and flags come from the facts that a model labelled, so a segment without a model claims none.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from compaction.language.text import plain
from compaction.model import Fact, FactKind, Segment, SegmentId, SessionId
from compaction.summary.port import NOTHING_KEPT
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MAX_KEY_FILES = 16
# What a turn takes in a prompt beside its words: `[21:04] ` and the frame of a message, as `compaction.tokens` counts.
TURN_FRAME_TOKENS = 13
# A path, or a name with a file extension; `3.5` and `e.g.` are none.
_FILE = re.compile(
    r"(?<![\w@])(?:[\w.-]+[/\\])*[\w-][\w.-]*\.(?:[ch]pp|css|csv|docx?|gif|go|html?|ini|ipynb|java|jpe?g|json[l]?|jsx?|kt|"
    r"lock|log|lua|md|mp[34]|ogg|pdf|php|png|pptx?|py|rb|rs|sh|sql|svg|swift|toml|tsx?|txt|wav|xlsx?|xml|ya?ml|zip|[ch])\b",
    re.IGNORECASE,
)
# The sign comes soon after the word.
_CODE = re.compile(
    r"```|`[^`\n]+`|\b(?:def|class|import|return|SELECT|function)\b[^.?!]{0,200}[({;=]|=>|\w\(\)|[{}]\s*$"
)
# The first estimate of how likely a segment is to be searched for again. Lasting facts raise the estimate.
_LEAST_RELEVANCE = 0.3
# Each retrieval closes this share of the gap between the score and 1.
_RELEVANCE_STEP = 0.15


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """The flags that spec 3 defines for a segment."""

    contains_code: bool
    contains_errors: bool
    task_completed: bool


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """The record of a segment with turns `start_turn <= seq <= end_turn`. Times are UTC epoch seconds.

    A segment that was made of notes only covers no turn; its `end_turn` is `start_turn - 1`. `relevance_score`:
    0.0-1.0.
    """

    segment_id: SegmentId
    topic: str
    session_id: SessionId
    start_turn: int
    end_turn: int
    original_tokens: int
    compressed_tokens: int
    compression_ratio: float
    compressed_at: float
    last_accessed: float
    access_count: int
    relevance_score: float
    compressed_content: str
    key_decisions: tuple[str, ...]
    key_files: tuple[str, ...]
    metadata: RecordMetadata


def make_record(
    segment: Segment,
    *,
    superseded: Collection[str] = (),
    task_completed: bool = False,
    contains_errors: bool = False,
    at: float,
) -> SegmentRecord:
    """Return the record of a segment at the time `at` (UTC epoch seconds).

    `superseded`: refs of closed facts (`segment_id#index`), which are left out. `task_completed`: all threads (open
    questions) of the segment are closed. `contains_errors`: a tool failed in its turns.
    """
    current = tuple(
        fact
        for index, fact in enumerate(segment.facts)
        if fact.text and fact.kind is not FactKind.CONFIDED and f"{segment.id}#{index}" not in superseded
    )
    # Details only if there is nothing else.
    kept = [fact for fact in current if fact.importance > 1] or current
    decisions = tuple(fact.text for fact in kept if fact.kind is FactKind.DECISION)
    others = [fact.text for fact in kept if fact.kind is not FactKind.DECISION]
    texts = (*decisions, *others) or (NOTHING_KEPT if segment.is_confided else segment.gist,)
    content, files = " ".join(texts[len(decisions) :]), files_in(texts)
    original, compressed = prompt_tokens(segment), sum(map(estimate_text_tokens, (*decisions, content, *files)))
    return SegmentRecord(
        segment_id=segment.id,
        topic=segment.heading or NOTHING_KEPT,
        session_id=segment.session_id,
        start_turn=segment.start,
        end_turn=segment.end - 1,
        original_tokens=original,
        compressed_tokens=compressed,
        compression_ratio=compression_ratio(original, compressed),
        compressed_at=at,
        last_accessed=at,
        access_count=0,
        relevance_score=relevance_of(current),
        compressed_content=content,
        key_decisions=decisions,
        key_files=files,
        metadata=RecordMetadata(
            contains_code=any(_CODE.search(text) for text in texts),
            contains_errors=contains_errors,
            task_completed=task_completed,
        ),
    )


def prompt_tokens(segment: Segment) -> int:
    """Return how many tokens the turns of a segment take in a prompt."""
    return segment.original_tokens + TURN_FRAME_TOKENS * (segment.end - segment.start)


def files_in(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the files that these texts name, in order of appearance, each once."""
    found = (match.group() for text in texts for match in _FILE.finditer(plain(text)))
    return tuple(dict.fromkeys(found))[:MAX_KEY_FILES]


def relevance_of(facts: Sequence[Fact]) -> float:
    """Return the first estimate (0.0-1.0) of how likely a segment is to be searched for again."""
    lasting = sum(fact.importance > 2 for fact in facts) / max(1, len(facts))
    return round(_LEAST_RELEVANCE + (0.9 - _LEAST_RELEVANCE) * lasting, 3)


def more_relevant(score: float) -> float:
    """Return the relevance after one more retrieval. It moves towards 1.0 and never exceeds it."""
    return round(min(1.0, score + _RELEVANCE_STEP * (1.0 - score)), 3)


def compression_ratio(original_tokens: int, compressed_tokens: int) -> float:
    """Return how many times shorter a segment has become. Returns 0.0 if nothing is left."""
    return round(original_tokens / compressed_tokens, 1) if compressed_tokens else 0.0


def record_json(record: SegmentRecord) -> dict[str, object]:
    """Return a record in the JSON format of spec 3."""
    return asdict(record) | {
        "compressed_at": iso(record.compressed_at),
        "last_accessed": iso(record.last_accessed),
        "key_decisions": list(record.key_decisions),
        "key_files": list(record.key_files),
    }


def iso(at: float) -> str:
    """Return a time as it is written in the files: ISO 8601 in UTC, with the part of a second, which tells what was
    made before something was forgotten and what after it. `at`: UTC epoch seconds.
    """
    return datetime.fromtimestamp(at, UTC).isoformat()
