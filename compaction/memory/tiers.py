"""Decides when a folded segment is queued for compression, compressed, archived and pruned. Pure.

There are three tiers. L1 (hot) is the window of recent turns, which this module does not handle. L2 (warm) holds the
stored segments, which every search covers. L3 (cold) is the archive, which is searched only on request. Numbers and
conditions come from spec 3, 'Triggers'. Archiving does not change the summary, whose length is limited anyway.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from compaction.language.terms import terms
from compaction.memory.segment_record import SegmentRecord, iso, make_record, prompt_tokens
from compaction.model import SAID, FactKind, Segment, SegmentId, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence


# The numbers come from spec 3, 'Triggers' and 'Hook configuration'.
CHECK_EVERY_TURNS = 10
QUEUE_ABOVE = 0.6
ARCHIVE_ABOVE = 0.8
COLD_AFTER_TURNS = 20
ARCHIVE_AFTER_TURNS = 50
LEAST_MESSAGES = 5
# The most segments that may move in one check. The oldest move first, and the others follow ten turns later. This
# limits the cost of a check if the context fills up late in a long session.
MOST_MOVED = 10
# A question that nobody has returned to for this many turns counts as closed, because people seldom say that they drop
# a question.
DROPPED_AFTER_TURNS = 100
# A turn mentions a segment if both share two search terms (_SHARED), or one figure that at most two segments contain
# (_RARE).
_SHARED = 2
_RARE = 2
# A term that more than a quarter of the segments contain is a constant subject of the session, so it is ignored.
_COMMON_SHARE = 0.25
_SPOKEN = SAID | {TurnKind.ASSISTANT}


class Tier(StrEnum):
    """In which tier a folded segment is."""

    WARM = "warm"
    COLD = "cold"


@dataclass(frozen=True, slots=True)
class TieredSegment:
    """A folded segment with its tier.

    `message_count`: how many of its turns are speech. `last_mention`: the seq of the last turn that mentioned the
    segment; at first its own last turn. `queued_at_turn`: the turn count when it began to wait for compression.
    `record`, `compressed_at_turn`: set once the segment is compressed. `archived_at`: UTC epoch seconds, None while it
    is warm.
    """

    segment: Segment
    message_count: int
    last_mention: int
    queued_at_turn: int | None = None
    queued_at: float | None = None
    record: SegmentRecord | None = None
    compressed_at_turn: int | None = None
    archived_at: float | None = None
    pruned_at: float | None = None

    @property
    def tier(self) -> Tier:
        return Tier.WARM if self.archived_at is None else Tier.COLD

    @property
    def covers_turns(self) -> bool:
        """Return whether the segment covers turns. A segment that was made of notes only does not."""
        return self.segment.start < self.segment.end

    def turns_since_mention(self, total_turns: int) -> int:
        """Return how many turns came after the last mention of the segment."""
        return max(0, total_turns - 1 - self.last_mention)


@dataclass(frozen=True, slots=True)
class TierChanges:
    """The decisions of one check.

    `queue`: segments that wait for compression from now on. `release`: queued segments that were mentioned again.
    `compress`: the records of queued segments that are compressed now. `archive`: segments that move to the archive.
    """

    queue: tuple[SegmentId, ...] = ()
    release: tuple[SegmentId, ...] = ()
    compress: tuple[SegmentRecord, ...] = ()
    archive: tuple[SegmentId, ...] = ()

    @property
    def tokens_before(self) -> int:
        """Return how many tokens the turns of the compressed segments take in a prompt."""
        return sum(record.original_tokens for record in self.compress)

    @property
    def tokens_after(self) -> int:
        """Return how many tokens the records of these segments have."""
        return sum(record.compressed_tokens for record in self.compress)

    def report(self) -> str:
        """Return the completion report of spec 3."""
        count = len(self.compress)
        return (
            f"Compressed {count} segment{'' if count == 1 else 's'}: {self.tokens_before:,} tokens of turns -> "
            f"{self.tokens_after:,} tokens of records."
        )


@dataclass(frozen=True, slots=True)
class TierCounts:
    """How many segments of a session wait for compression, are compressed, and are in the archive."""

    queued: int = 0
    compressed: int = 0
    archived: int = 0

    @classmethod
    def after(cls, kept: Sequence[TieredSegment], changes: TierChanges) -> TierCounts:
        """Return the numbers after the changes of a check. `kept`: before them."""
        waiting = sum(each.queued_at_turn is not None and each.record is None for each in kept)
        compressed = sum(each.record is not None and each.tier is Tier.WARM for each in kept)
        return cls(
            waiting + len(changes.queue) - len(changes.release) - len(changes.compress),
            compressed + len(changes.compress) - len(changes.archive),
            sum(each.tier is Tier.COLD for each in kept) + len(changes.archive),
        )


class SegmentTopics:
    """The search terms of a session's segments. Tells which segments a turn mentions, and which threads are closed.

    The cost of a lookup depends on the words of the turn, not on the number of segments.
    """

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._known: set[SegmentId] = set()
        # Lists, because a session of hours has thousands of terms, and a set takes four times as much.
        self._holders: defaultdict[str, list[SegmentId]] = defaultdict(list)
        # The refs (`segment_id#index`) of closed facts.
        self.superseded: set[str] = set()
        self._roster: set[str] = set()
        for segment in segments:
            self.add(segment)

    def add(self, segment: Segment) -> None:
        """Add one segment. Nothing happens if the segment was added before."""
        if segment.id in self._known:
            return
        self._known.add(segment.id)
        for fact in segment.facts:
            self.superseded.update(fact.closes)
            self._roster.update(terms(fact.speaker))
        for term in {term for fact in segment.facts for term in terms(fact.text)}:
            self._holders[term].append(segment.id)

    def segments_mentioned(self, turn: Turn) -> frozenset[SegmentId]:
        if turn.kind not in _SPOKEN or turn.tombstone:
            return frozenset()
        common = max(1.0, _COMMON_SHARE * len(self._known))
        shared: Counter[SegmentId] = Counter()
        for term in frozenset(terms(turn.text)) - self._roster:
            holders = self._holders.get(term, ())
            if 0 < len(holders) <= common:
                is_rare = term.isdigit() and len(holders) <= _RARE
                shared.update(dict.fromkeys(holders, _SHARED if is_rare else 1))
        return frozenset(each for each, weight in shared.items() if weight >= _SHARED)

    def threads_closed(self, segment: Segment, *, turns_since_mention: int) -> bool:
        """Return whether each thread (open question) of the segment was closed by a later fact, or dropped long ago."""
        return turns_since_mention >= DROPPED_AFTER_TURNS or all(
            f"{segment.id}#{index}" in self.superseded
            for index, fact in enumerate(segment.facts)
            if fact.kind is FactKind.OPEN and fact.text
        )


def check_tiers(
    kept: Sequence[TieredSegment],
    subjects: SegmentTopics,
    *,
    total_turns: int,
    context_tokens: int,
    max_input_tokens: int,
    now: float,
    failed_turns: Collection[int] = (),
    regardless: bool = False,
) -> TierChanges:
    """Return which of a session's segments change their tier.

    `context_tokens`: what the session would have to send if nothing were folded (`unfolded_tokens`). Its share of
    `max_input_tokens` decides whether anything is queued or archived. `now`: UTC epoch seconds. `failed_turns`: those
    in the answers to which a tool has failed. `regardless`: act as if the context were full, compress queued segments
    at once, and move any number of segments. Otherwise at most 10 segments are queued, 10 compressed and 10 archived.
    """
    filled = 1.0 if regardless else context_tokens / max(1, max_input_tokens)
    queue: list[SegmentId] = []
    release: list[SegmentId] = []
    compress: list[SegmentRecord] = []
    archive: list[SegmentId] = []
    for each in kept:
        if each.archived_at is not None:
            continue
        cold = is_cold(each, subjects, total_turns=total_turns)
        if each.queued_at_turn is not None and each.record is None:
            if not cold:
                release.append(each.segment.id)
            elif regardless or total_turns > each.queued_at_turn:
                compress.append(_record(each, subjects, now, failed_turns))
        elif each.record is None:
            if cold and filled > QUEUE_ABOVE:
                queue.append(each.segment.id)
                if regardless:
                    compress.append(_record(each, subjects, now, failed_turns))
        elif cold and filled > ARCHIVE_ABOVE and total_turns - each.segment.end > ARCHIVE_AFTER_TURNS:
            archive.append(each.segment.id)
    most = None if regardless else MOST_MOVED
    return TierChanges(tuple(queue[:most]), tuple(release), tuple(compress[:most]), tuple(archive[:most]))


def is_cold(kept: TieredSegment, subjects: SegmentTopics, *, total_turns: int) -> bool:
    """Return whether a segment is cold: not mentioned for at least 20 turns, no open thread, and at least 5
    messages.
    """
    silent = kept.turns_since_mention(total_turns)
    return (
        kept.message_count >= LEAST_MESSAGES
        and silent >= COLD_AFTER_TURNS
        and subjects.threads_closed(kept.segment, turns_since_mention=silent)
    )


def unfolded_tokens(segments: Iterable[Segment], sent_tokens: int) -> int:
    """Return how many tokens the session's prompt would have if nothing were folded: those of the last prompt, and of
    the turns that its summary stands for. A prompt itself hardly grows after the first hour.
    """
    return sent_tokens + sum(map(prompt_tokens, segments))


def with_mentions(kept: Iterable[TieredSegment], subjects: SegmentTopics, turns: Iterable[Turn]) -> list[TieredSegment]:
    """Return the segments, each with its last mention among `turns` if that is later than its last one."""
    last: dict[SegmentId, int] = {}
    for turn in turns:
        for segment_id in subjects.segments_mentioned(turn):
            last[segment_id] = max(turn.seq, last.get(segment_id, 0))
    return [replace(each, last_mention=max(each.last_mention, last.get(each.segment.id, 0))) for each in kept]


def _record(kept: TieredSegment, subjects: SegmentTopics, now: float, failed_turns: Collection[int]) -> SegmentRecord:
    turns = range(kept.segment.start, kept.segment.end)
    failed = any(turn in turns for turn in failed_turns)
    return make_record(
        kept.segment, superseded=subjects.superseded, task_completed=True, contains_errors=failed, at=now
    )


def queue_json(
    kept: Sequence[TieredSegment],
    *,
    topics: Mapping[SegmentId, str],
    total_turns: int,
    last_check_turn: int,
    location: Callable[[TieredSegment], str],
) -> dict[str, object]:
    """Return the content of a session's queue file in the JSON format of spec 3: its segments that wait for
    compression, and the compressed ones.

    `location` returns where a compressed segment is stored. `last_check_turn`: how many turns the session had at the
    last check.
    """
    return {
        "pending": [
            {
                "segment_id": each.segment.id,
                "topic": topics[each.segment.id],
                "start_turn": each.segment.start,
                "end_turn": each.segment.end - 1,
                "message_count": each.message_count,
                "turns_since_mention": each.turns_since_mention(total_turns),
                "queued_at_turn": each.queued_at_turn,
                "timestamp": iso(each.queued_at or 0.0),
            }
            for each in kept
            if each.record is None and each.queued_at_turn is not None
        ],
        "compressed": [
            {
                "segment_id": each.segment.id,
                "topic": each.record.topic,
                "compressed_at_turn": each.compressed_at_turn or 0,
                "original_tokens": each.record.original_tokens,
                "compressed_tokens": each.record.compressed_tokens,
                "compression_ratio": each.record.compression_ratio,
                "storage_location": location(each),
                "timestamp": iso(each.record.compressed_at),
            }
            for each in kept
            if each.record is not None
        ],
        "last_check_turn": last_check_turn,
    }
