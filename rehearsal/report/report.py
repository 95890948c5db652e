"""The report of one run: figures and sentences, and how they are written as JSON.

The keys of the JSON are a contract with whoever reads it later; new ones may come, none may go. Building the
report from what was observed is `rehearsal.judge.judge`; showing it to a person is `rehearsal.report.terminal`.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rehearsal.errors import RehearsalError
from rehearsal.runner.backstage import ServersSeen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rehearsal.runner.observation import ContextPart


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """One promise of the scenario, kept or not; `detail` says by how much or why."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class UtteranceReport:
    """One thing that was said and what became of it.

    `transcript` joins the pieces in which it was heard. `end_to_text_ms`: acoustic end of the speech to its last
    text; None when it was not heard. `heard_as`: the ids of the utterances that the bot made of it. `qualified_s`: when
    700 ms of it had been voiced, which is when it counts as speech over somebody else's; None for what is shorter.
    `wants_answer`: whether the scenario expects the bot to answer it; None where either will do.
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
class StrayReport:
    """Something the bot heard of a person who was silent then. `really`: who spoke at that time, if anybody."""

    speaker: str
    transcript: str
    really: str = ""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """One compaction that landed."""

    old_cursor: int
    new_cursor: int
    covered_through_turn: int
    summary_chars: int
    latency_ms: float
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class BotTurnReport:
    """One thing the bot said: what it meant, and what another participant heard and recognised.

    `end_to_first_audio_ms`: from the end of the speech it answers to the first voiced sound that another
    participant received. `model_first_token_ms` is part of that. `fell_silent_s`: when that participant received the
    last voiced sound of it. `in_turn`: all that was said in the turn it answers; several people may speak in one.
    `unasked`: a thought of its own, which answers nothing.
    """

    text: str
    heard_by_others: str
    heard_by: str = ""
    answers: str = ""
    interrupted: bool = False
    end_to_first_audio_ms: float | None = None
    model_first_token_ms: float | None = None
    at_s: float = 0.0
    payload: tuple[ContextPart, ...] = ()
    fell_silent_s: float | None = None
    in_turn: tuple[str, ...] = ()
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of one latency in milliseconds; None when nothing was measured."""

    p50: float | None
    p95: float | None
    count: int = 0


@dataclass(frozen=True, slots=True)
class LatencyReport:
    """Latency by stage."""

    end_to_text_ms: Spread
    end_to_first_audio_ms: Spread
    model_first_token_ms: Spread = Spread(None, None)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything one run showed.

    `clock_s`: how long a written evening lasted on the clock that was moved for it; it has no sound, so nobody heard
    any and nothing was recognised. None: an evening in real time.
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
    strays: tuple[StrayReport, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    servers: ServersSeen = field(default_factory=ServersSeen)
    clock_s: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return plain values for `json`."""
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


def percentile(values: Iterable[float], share: float) -> float | None:
    """Return the nearest-rank percentile (`share` in 0 < share <= 1), or None of nothing.

    Nearest rank: always a value that was measured, so a p95 of ten is the worst of them and hides nothing.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values: Iterable[float | None]) -> Spread:
    """Return p50 and p95 of the values that there are, to a tenth of a millisecond."""
    known = [value for value in values if value is not None]
    half, most = percentile(known, 0.5), percentile(known, 0.95)
    if half is None or most is None:
        return Spread(None, None)
    return Spread(round(half, 1), round(most, 1), len(known))
