"""What was seen of a written evening: what the player let happen, and what the bot was observed to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rehearsal.runner.observation import (
    CompactionFailed,
    CompactionLanded,
    ContextBuilt,
    Problem,
    ReplySpoken,
    RoomLeft,
    TurnRecorded,
    UtteranceHeard,
)

if TYPE_CHECKING:
    from rehearsal.runner.observation import Observation
    from rehearsal.script.written_evening import Talk


@dataclass(frozen=True, slots=True)
class Said:
    """A talk that happened. `line`: which of the file's it was, from 1; `at_s`: since the evening began."""

    line: int
    talk: Talk
    at_s: float


@dataclass(slots=True)
class WrittenRecord:
    """Filled by the player, in order. `begun_at`: the evening's beginning, on the clock of the observations.

    `failed_waits`: what was waited for and did not come.
    """

    begun_at: float = 0.0
    said: list[Said] = field(default_factory=list)
    failed_waits: list[str] = field(default_factory=list)
    heard: list[UtteranceHeard] = field(default_factory=list)
    turns: list[TurnRecorded] = field(default_factory=list)
    replies: list[ReplySpoken] = field(default_factory=list)
    contexts: list[ContextBuilt] = field(default_factory=list)
    folds: list[CompactionLanded] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    left: str = ""

    def take(self, seen: Observation) -> None:
        """Take one observation in."""
        match seen:
            case UtteranceHeard():
                self.heard.append(seen)
            case TurnRecorded():
                self.turns.append(seen)
            case ReplySpoken():
                self.replies.append(seen)
            case ContextBuilt():
                self.contexts.append(seen)
            case CompactionLanded():
                self.folds.append(seen)
            case CompactionFailed():
                self.problems.append(Problem("compaction_failed", seen.reason))
            case Problem():
                self.problems.append(seen)
            case RoomLeft():
                self.left = seen.reason
            case _:
                pass

    @property
    def last_seq(self) -> int:
        """Return the number of the newest turn; -1 before the first."""
        return self.turns[-1].seq if self.turns else -1
