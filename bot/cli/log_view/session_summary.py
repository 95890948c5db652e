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
    cursor: object = None
    failures: Counter[str] = field(default_factory=Counter)
    replies: int = 0
    fullest: float = 0.0
    evictions: int = 0


class SessionSummaries:
    """Collects events and sums up each session, in order of first appearance."""

    def __init__(self) -> None:
        self._sessions: dict[str, _SessionFigures] = {}

    def add(self, event: Event) -> None:
        """Add one event; events about other things are ignored."""
        session, name = event.get("session_id"), event["event"].removeprefix(COMPACTION)
        if not isinstance(session, str) or name not in ("completed", "failed", "model_context_built"):
            return
        figures = self._sessions.setdefault(session, _SessionFigures())
        if name == "completed":
            figures.folds += 1
            figures.cursor = event.get("new_cursor")
        elif name == "failed":
            figures.failures[str(event.get("error_class", "unknown"))] += 1
        else:
            figures.replies += 1
            figures.evictions += event.get("evicted") is not None
            total, most = event.get("total_tokens"), event.get("max_input_tokens")
            if isinstance(total, int) and isinstance(most, int) and most > 0:
                figures.fullest = max(figures.fullest, total / most)

    def sentences(self) -> list[str]:
        """Return one line for each session."""
        return [f"{session}: {_summarise(figures)}" for session, figures in self._sessions.items()]


def _summarise(figures: _SessionFigures) -> str:
    folded = f"{count(figures.folds, 'fold')}, up to turn {figures.cursor}" if figures.folds else "nothing was folded"
    parts = [folded]
    if figures.failures:
        kinds = ", ".join(f"{times} {name}" for name, times in figures.failures.most_common())
        parts.append(f"{count(figures.failures.total(), 'failure')} ({kinds})")
    if figures.replies:
        prompts = count(figures.replies, "prompt")
        parts.append(f"{prompts} built, the fullest at {100 * figures.fullest:.0f} % of the room")
    if figures.evictions:
        parts.append(f"{count(figures.evictions, 'prompt')} had turns left out")
    return "; ".join(parts) + "."
