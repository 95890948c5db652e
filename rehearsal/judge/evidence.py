"""The facts of a run that expectations are judged by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rehearsal.runner.observations import ServerObservations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.report.report import (
        BotTurnReport,
        CompactionReport,
        LatencyReport,
        UnmatchedUtteranceReport,
        UtteranceReport,
    )
    from rehearsal.runner.observations import (
        LoggedProblem,
        ObservedPrompt,
        ObservedReply,
        ObservedTurn,
        ObservedUtterance,
    )
    from rehearsal.script.expectations import ExpectSilent


@dataclass(frozen=True, slots=True)
class SilenceEvidence:
    """What people received of the bot while an `ExpectSilent` wants silence.

    `since_s`, `until_s`: that time, in seconds since the live start; it ends with the run at the latest. `listened`:
    somebody was in the channel for all of it. `voice_s`: when they received the first voiced sound, or None.
    """

    since_s: float
    until_s: float
    listened: bool
    voice_s: float | None = None


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """The facts of a run that expectations are judged by."""

    utterances: tuple[UtteranceReport, ...]
    strays: tuple[UnmatchedUtteranceReport, ...]
    bot_turns: tuple[BotTurnReport, ...]
    compactions: tuple[CompactionReport, ...]
    latency: LatencyReport
    wer: float | None
    packets: Mapping[str, int]
    messages: tuple[str, ...]
    problems: tuple[LoggedProblem, ...]
    turns: tuple[ObservedTurn, ...]
    heard: tuple[ObservedUtterance, ...]
    replies: tuple[ObservedReply, ...] = ()
    prompts: tuple[ObservedPrompt, ...] = ()
    failed_compactions: tuple[str, ...] = ()
    stored_turns: int = 0
    # When each step with an id began and ended, in seconds since the live start.
    step_times: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # The speaker ids that turns use: of people by their key, of the bot by its name.
    speaker_ids: Mapping[str, str] = field(default_factory=dict)
    servers: ServerObservations = field(default_factory=ServerObservations)
    # Of each expectation of silence whose steps were reached.
    silences: Mapping[ExpectSilent, SilenceEvidence] = field(default_factory=dict)

    @property
    def received_turns(self) -> tuple[BotTurnReport, ...]:
        """Return the bot's replies whose voice somebody received: that the bot reports a reply is not enough."""
        return tuple(turn for turn in self.bot_turns if turn.fell_silent_s is not None)
