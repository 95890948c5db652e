"""The record of a written evening: the events that were played, and what the bot was observed to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rehearsal.runner.observations import (
    LoggedProblem,
    ObservedCompaction,
    ObservedCompactionFailure,
    ObservedPrompt,
    ObservedReply,
    ObservedTurn,
    ObservedUtterance,
    RoomLeft,
)

if TYPE_CHECKING:
    from rehearsal.runner.observations import Observation
    from rehearsal.script.written_evening import SpeechEvent


@dataclass(frozen=True, slots=True)
class PlayedSpeech:
    """A speech event that was played.

    `line`: its line number in the file, from 1. `at_s`: when it was played, in seconds since the evening began.
    """

    line: int
    event: SpeechEvent
    at_s: float


@dataclass(slots=True)
class EveningRecord:
    """The record of one written evening. The player fills it in order.

    `started_at`: when the evening began, on the clock of the observations. `failed_waits`: what did not happen although
    the player waited for it. `left`: why the bot left the channel; empty while it is there.
    """

    started_at: float = 0.0
    speeches: list[PlayedSpeech] = field(default_factory=list)
    failed_waits: list[str] = field(default_factory=list)
    utterances: list[ObservedUtterance] = field(default_factory=list)
    turns: list[ObservedTurn] = field(default_factory=list)
    replies: list[ObservedReply] = field(default_factory=list)
    prompts: list[ObservedPrompt] = field(default_factory=list)
    compactions: list[ObservedCompaction] = field(default_factory=list)
    problems: list[LoggedProblem] = field(default_factory=list)
    left: str = ""

    def observe(self, observation: Observation) -> None:
        """Add one observation."""
        match observation:
            case ObservedUtterance():
                self.utterances.append(observation)
            case ObservedTurn():
                self.turns.append(observation)
            case ObservedReply():
                self.replies.append(observation)
            case ObservedPrompt():
                self.prompts.append(observation)
            case ObservedCompaction():
                self.compactions.append(observation)
            case ObservedCompactionFailure():
                self.problems.append(LoggedProblem("compaction_failed", observation.reason))
            case LoggedProblem():
                self.problems.append(observation)
            case RoomLeft():
                self.left = observation.reason
            case _:
                pass

    @property
    def last_seq(self) -> int:
        """Return the number of the newest turn, or -1 before the first turn."""
        return self.turns[-1].seq if self.turns else -1
