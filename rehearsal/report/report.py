"""The report of one run, and how it is written as JSON.

The field names are the keys of the JSON file, which users' scripts read. So fields may be added, but none may be
removed or renamed. `rehearsal.judge.report_builder` builds the report, and `rehearsal.report.terminal` shows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from compaction.payload import PayloadPart
from rehearsal.errors import RehearsalError
from rehearsal.runner.local_servers import ServerObservations


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """Whether one expectation of the scenario was met. `detail` says by how much, or why not."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class UtteranceReport:
    """One line that was spoken, and what the bot heard of it.

    `transcript`: the joined texts of the pieces in which the line was heard. `end_to_text_ms`: the time from the
    acoustic end of the line until the line's last text was ready; None if it was not heard. `heard_as`: the ids of the
    bot's utterances. `qualified_s`: when 700 ms of the line had been voiced, so that it interrupts other speech; None
    if the line is shorter. `wants_answer`: whether the scenario expects the bot to answer the line; None if that does
    not matter.
    """

    speaker: str
    reference: str
    transcript: str
    wer: float
    end_to_text_ms: float | None
    step: str = ""
    started_s: float = 0.0
    heard_as: tuple[str, ...] = ()
    twice: bool = False
    qualified_s: float | None = None
    wants_answer: bool | None = None


@dataclass(frozen=True, slots=True)
class UnmatchedUtteranceReport:
    """Something that the bot heard from a person who was silent at that time. `really`: who spoke then, if anybody."""

    speaker: str
    transcript: str
    really: str = ""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """One compaction whose summary was stored."""

    old_cursor: int
    new_cursor: int
    covered_through_turn: int
    summary_chars: int
    latency_ms: float


@dataclass(frozen=True, slots=True)
class BotTurnReport:
    """One reply of the bot: its text, and what another participant heard and recognised.

    `end_to_first_audio_ms`: the time from the end of the answered speech to the first voiced sound that another
    participant received; `model_first_token_ms` is part of that time. `fell_silent_s`: when that participant received
    the last voiced sound of the reply. `in_turn`: all steps whose words are in the turn that the reply answers.
    `unasked`: the bot spoke on its own, without a question.
    """

    text: str
    heard_by_others: str
    heard_by: str = ""
    answers: str = ""
    interrupted: bool = False
    end_to_first_audio_ms: float | None = None
    model_first_token_ms: float | None = None
    at_s: float = 0.0
    payload: tuple[PayloadPart, ...] = ()
    fell_silent_s: float | None = None
    in_turn: tuple[str, ...] = ()
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class LatencyPercentiles:
    """Percentiles of one latency in milliseconds, or None when nothing was measured."""

    p50: float | None
    p95: float | None
    count: int = 0


@dataclass(frozen=True, slots=True)
class LatencyReport:
    """Latency by stage."""

    end_to_text_ms: LatencyPercentiles
    end_to_first_audio_ms: LatencyPercentiles
    model_first_token_ms: LatencyPercentiles = LatencyPercentiles(None, None)


@dataclass(frozen=True, slots=True)
class RehearsalReport:
    """The whole report of one run.

    `clock_s`: how long a written scenario lasted on its virtual clock, or None for a scenario in real time. A written
    scenario has no sound, so nothing was recognised in it.
    """

    passed: bool
    scenario: str
    started: str
    duration_s: float
    expectations: tuple[ExpectationResult, ...]
    wer: float | None
    utterances: tuple[UtteranceReport, ...]
    packets: Mapping[str, int]
    compactions: tuple[CompactionReport, ...]
    summary: str
    bot_turns: tuple[BotTurnReport, ...]
    latency: LatencyReport
    ended_by: str = ""
    strays: tuple[UnmatchedUtteranceReport, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    servers: ServerObservations = field(default_factory=ServerObservations)
    clock_s: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values for `json`."""
        return asdict(self)

    def write(self, path: Path) -> None:
        """Write the report as JSON. Raises `RehearsalError` when the file cannot be written."""
        try:
            path.write_text(json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as exc:
            raise RehearsalError(
                f"The report could not be written to {path}: {exc.strerror or exc}. "
                "Name a file in a folder that exists and has room, for example --report report.json."
            ) from exc


def latency_percentiles(values: Iterable[float | None]) -> LatencyPercentiles:
    """Return p50 and p95 of the values that are not None, to a tenth of a millisecond: each is one of them."""
    known = [value for value in values if value is not None]
    if not known:
        return LatencyPercentiles(None, None)
    half, most = np.quantile(known, (0.5, 0.95), method="inverted_cdf").tolist()
    return LatencyPercentiles(round(half, 1), round(most, 1), len(known))


def count(number: int, noun: str) -> str:
    """Return `1 turn`, `2 turns`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
