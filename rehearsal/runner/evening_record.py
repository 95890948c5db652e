"""The record of a written evening: the events that were played, and what the bot was observed to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rehearsal.runner.observations import LoggedProblem, ObservedCompactionFailure, RoomLeft
from rehearsal.runner.record import RunRecord

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


class EveningRecord(RunRecord):
    """The record of one written evening, with its clock. The player fills it in order.

    `left`: why the bot left the channel; empty while it is there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.speeches: list[PlayedSpeech] = []
        self.left = ""

    def observe(self, observation: Observation) -> None:
        """Add one observation. A compaction that failed is a problem, since nobody causes one."""
        super().observe(observation)
        if isinstance(observation, ObservedCompactionFailure):
            self.problems.append(LoggedProblem("compaction_failed", observation.reason))
        elif isinstance(observation, RoomLeft):
            self.left = observation.reason

    @property
    def last_seq(self) -> int:
        """Return the number of the newest turn, or -1 before the first turn."""
        return self.turns[-1].seq if self.turns else -1
