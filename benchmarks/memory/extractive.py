"""Measures the summariser without a model: whether somebody said each of its quotes, and how long a fold takes."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from benchmarks.figures import percentile
from compaction.language.text import words
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.folded import fold_request, make_segment
from compaction.summary.port import REACH_TURNS
from compaction.window import BATCH_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measuring import Progress
    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.report import Json
    from compaction.model import Segment

_QUOTE = re.compile(r'"([^"]*)"')


async def measure_extractive(conversations: Sequence[RecordedConversation], progress: Progress) -> dict[str, Json]:
    """Return the figures of all conversations: the `unsaid_quotes` of all `quotes`, and the time of a fold."""
    quotes = unsaid = 0
    times_ms: list[float] = []
    progress.step("quotes without a model", total=len(conversations))
    for conversation in conversations:
        turns = [
            Turn(Seq(seq), TurnKind.SPEECH, line.at, line.at, (TurnPart(line.speaker, line.speaker, line.text),))
            for seq, line in enumerate(conversation.lines)
        ]
        for segment in await _folded(turns, times_ms):
            for fact in segment.facts:
                said = " ".join(words(turns[fact.turn_seq].text))
                for quote in _QUOTE.findall(fact.text):
                    quotes += 1
                    unsaid += " ".join(words(quote)) not in said
        progress.advance()
    return {
        "conversations": len(conversations),
        "quotes": quotes,
        "unsaid_quotes": unsaid,
        "fold_ms_p50": round(percentile(times_ms, 0.5), 2) if times_ms else None,
        "fold_ms_p99": round(percentile(times_ms, 0.99), 2) if times_ms else None,
    }


async def _folded(turns: Sequence[Turn], times_ms: list[float]) -> list[Segment]:
    segments: list[Segment] = []
    for start in range(0, len(turns) - BATCH_SIZE + 1, BATCH_SIZE):
        batch, before = turns[start : start + BATCH_SIZE], turns[max(0, start - REACH_TURNS) : start]
        newest = segments[-1] if segments else None
        request = fold_request(Seq(start), batch, (), before, segments, newest=newest)
        began_at = time.perf_counter()
        fold = await ExtractiveSummariser().fold(request)
        times_ms.append(1_000 * (time.perf_counter() - began_at))
        segments.append(make_segment(request, fold, session_id=SessionId("bench"), revision=start, at=float(start)))
    return segments
