"""Sums up each session's memory from its log events: what was folded, what failed, how full the context was."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bot.cli.log_view.events import COMPACTION
from bot.cli.output import count

if TYPE_CHECKING:
    from bot.logs.reader import Event

# The events that `--event memory` selects.
MEMORY_EVENTS = (
    f"{COMPACTION}started",
    f"{COMPACTION}completed",
    f"{COMPACTION}failed",
    "model_context_built",
    "context_rolled",
    "compaction_mode_changed",
    "rolling_needs_memory_search",
    "tiers_checked",
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
class _SessionFigures:
    """The collected figures of one session."""

    folds: int = 0
    first_cursor: int | None = None
    cursor: int | None = None
    unsourced: int = 0
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
    """Collects events and sums up each session, in order of first appearance."""

    def __init__(self) -> None:
        self._sessions: dict[str, _SessionFigures] = {}

    def add(self, event: Event) -> None:
        """Add one event; events about other things are ignored."""
        session = event.get("session_id")
        if not isinstance(session, str):
            return
        name = event["event"]
        if name.startswith(COMPACTION) or name in {"model_context_built", "session_ended"}:
            figures = self._sessions.setdefault(session, _SessionFigures())
            _count_event(figures, name.removeprefix(COMPACTION), event)

    def sentences(self) -> list[str]:
        """Return one line for each session."""
        return [f"{session}: {_summarise(figures)}" for session, figures in self._sessions.items()]


def _count_event(figures: _SessionFigures, name: str, event: Event) -> None:
    match name:
        case "completed":
            _completed(figures, event)
        case "failed":
            figures.failures[str(event.get("error_class", "?"))] += 1
        case "skipped":
            figures.skips[str(event.get("reason", "?"))] += 1 if not event.get("repeated") else int(event["repeated"])
        case "model_context_built":
            figures.replies += 1
            figures.evictions += event.get("evicted") is not None
            share = _fill_share(event)
            if share is not None:
                figures.fullest = max(share, figures.fullest or 0.0)
        case "session_ended":
            figures.ended = True
        case _:
            pass


def _completed(figures: _SessionFigures, event: Event) -> None:
    old, new = event.get("old_cursor"), event.get("new_cursor")
    figures.folds += 1
    unsourced = event.get("unsourced")
    figures.unsourced += unsourced if isinstance(unsourced, int) else 0
    notes, latency = event.get("folded_note_count"), event.get("latency_ms")
    figures.notes += notes if isinstance(notes, int) else 0
    if isinstance(latency, int | float):
        figures.slowest_ms = max(figures.slowest_ms, float(latency))
    if isinstance(old, int) and isinstance(new, int):
        if figures.cursor is not None and figures.cursor != old:
            figures.gaps += 1
        figures.first_cursor = old if figures.first_cursor is None else figures.first_cursor
        figures.cursor = new


def _fill_share(event: Event) -> float | None:
    total, most = event.get("total_tokens"), event.get("max_input_tokens")
    if isinstance(total, int) and isinstance(most, int) and most > 0:
        return total / most
    return None


def _summarise(figures: _SessionFigures) -> str:
    parts: list[str] = []
    if figures.folds:
        parts.append(f"{count(figures.folds, 'fold')}, cursor {figures.first_cursor} -> {figures.cursor}")
        parts.append(f"the slowest took {figures.slowest_ms / 1000:.1f} s")
    else:
        parts.append("nothing was folded")
    if figures.notes:
        parts.append(f"{count(figures.notes, 'note')} folded")
    if figures.unsourced:
        parts.append(f"{figures.unsourced} unsourced figures and names")
    if figures.failures:
        kinds = ", ".join(f"{times} {name}" for name, times in figures.failures.most_common())
        parts.append(f"{count(figures.failures.total(), 'failure')} ({kinds})")
    waited = figures.skips["backing_off"]
    if waited:
        parts.append(f"waited {count(waited, 'time')} after failures")
    if figures.replies:
        full = "" if figures.fullest is None else f", the fullest at {100 * figures.fullest:.0f} % of the room"
        parts.append(f"{count(figures.replies, 'prompt')} built{full}")
    if figures.evictions:
        parts.append(f"{count(figures.evictions, 'prompt')} had turns left out")
    if figures.gaps:
        parts.append(f"lines are missing in {count(figures.gaps, 'place')}: the cursor moved without one")
    parts.append("it has ended" if figures.ended else "it has not ended")
    return "; ".join(parts) + "."
