"""The story of each session's memory, told from its log lines alone: what was folded, what failed, what a reply cost.

Collects while events pass by; says one line a session at the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bot.cli.log_view.events import COMPACTION

if TYPE_CHECKING:
    from bot.cli.log_view.events import Event

# What `--event memory` stands for: everything that happens to what a room remembers.
MEMORY_EVENTS = (
    f"{COMPACTION}*",
    "model_context_built",
    "context_rolled",
    "compaction_mode_changed",
    "rolling_needs_memory_search",
    "tiers_checked",
    "archive_pruned",
    "person_facts_extracted",
    "person_facts_forgotten",
    "memory_refreshed",
    "summariser_broke",
    "stored_turns_missing",
    "turns_not_stored",
    "room_opened",
    "session_ended",
)


@dataclass(slots=True)
class _Chapter:
    """What is known of one session."""

    folds: int = 0
    first_cursor: int | None = None
    cursor: int | None = None
    degraded: int = 0
    repaired: int = 0
    notes: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    slowest_ms: float = 0.0
    replies: int = 0
    fullest: float | None = None
    evictions: int = 0
    gaps: int = 0
    ended: bool = False


class SessionSummaries:
    """Sessions as their events tell them, in the order in which they first appear."""

    def __init__(self) -> None:
        self._chapters: dict[str, _Chapter] = {}

    def add(self, event: Event) -> None:
        """Take one event in; most are of no concern."""
        session = event.get("session_id")
        if not isinstance(session, str):
            return
        name = event["event"]
        if name.startswith(COMPACTION) or name in {"model_context_built", "session_ended"}:
            chapter = self._chapters.setdefault(session, _Chapter())
            _tell(chapter, name.removeprefix(COMPACTION), event)

    def sentences(self) -> list[str]:
        """Return one line a session."""
        return [f"{session}: {_summed_up(chapter)}" for session, chapter in self._chapters.items()]


def _tell(chapter: _Chapter, name: str, event: Event) -> None:
    match name:
        case "completed" if event.get("repairs"):
            chapter.repaired += 1
        case "completed":
            _completed(chapter, event)
        case "failed":
            chapter.failures[str(event.get("error_class", "?"))] += 1
        case "skipped":
            chapter.skips[str(event.get("reason", "?"))] += 1 if not event.get("repeated") else int(event["repeated"])
        case "model_context_built":
            chapter.replies += 1
            chapter.evictions += event.get("evicted") is not None
            share = _share(event)
            if share is not None:
                chapter.fullest = max(share, chapter.fullest or 0.0)
        case "session_ended":
            chapter.ended = True
        case _:
            pass


def _completed(chapter: _Chapter, event: Event) -> None:
    old, new = event.get("old_cursor"), event.get("new_cursor")
    chapter.folds += 1
    chapter.degraded += bool(event.get("degraded"))
    notes, latency = event.get("folded_note_count"), event.get("latency_ms")
    chapter.notes += notes if isinstance(notes, int) else 0
    if isinstance(latency, int | float):
        chapter.slowest_ms = max(chapter.slowest_ms, float(latency))
    if isinstance(old, int) and isinstance(new, int):
        if chapter.cursor is not None and chapter.cursor != old:
            chapter.gaps += 1
        chapter.first_cursor = old if chapter.first_cursor is None else chapter.first_cursor
        chapter.cursor = new


def _share(event: Event) -> float | None:
    total, most = event.get("total_tokens"), event.get("max_input_tokens")
    if isinstance(total, int) and isinstance(most, int) and most > 0:
        return total / most
    return None


def _summed_up(chapter: _Chapter) -> str:
    told: list[str] = []
    if chapter.folds:
        told.append(f"{_count(chapter.folds, 'fold')}, cursor {chapter.first_cursor} -> {chapter.cursor}")
        told.append(f"the slowest took {chapter.slowest_ms / 1000:.1f} s")
    else:
        told.append("nothing was folded")
    if chapter.notes:
        told.append(f"{_count(chapter.notes, 'note')} folded")
    if chapter.degraded:
        again = f", {chapter.repaired} of them made again since" if chapter.repaired else ""
        told.append(f"{chapter.degraded} without the model{again}")
    if chapter.failures:
        kinds = ", ".join(f"{count} {name}" for name, count in chapter.failures.most_common())
        told.append(f"{_count(chapter.failures.total(), 'failure')} ({kinds})")
    waited = chapter.skips["backing_off"]
    if waited:
        told.append(f"waited {_count(waited, 'time')} after failures")
    if chapter.replies:
        full = "" if chapter.fullest is None else f", the fullest at {100 * chapter.fullest:.0f} % of the room"
        told.append(f"{_count(chapter.replies, 'prompt')} built{full}")
    if chapter.evictions:
        told.append(f"{_count(chapter.evictions, 'prompt')} had turns left out")
    if chapter.gaps:
        told.append(f"lines are missing in {_count(chapter.gaps, 'place')}: the cursor moved without one")
    told.append("it has ended" if chapter.ended else "it has not ended")
    return "; ".join(told) + "."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
