"""The observations of a run: the bot's reports, and the requests that reached the model servers behind it.

The command line, which composes a run, maps the bot's own events to these values. Times are seconds of
`time.monotonic()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class RoomReady:
    """The bot is connected to the voice channel: speech that starts now is heard from its first word."""

    session_id: str
    at: float


@dataclass(frozen=True, slots=True)
class RoomLeft:
    """The bot left the voice channel, or its room ended."""

    session_id: str
    at: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ObservedUtterance:
    """One utterance became text, or was dropped with a reason (then `text` may be empty).

    `started_at`, `ended_at`: when its sound began and ended. `text_at`: when its text was ready.
    """

    utterance_id: str
    speaker_id: int
    text: str
    started_at: float
    ended_at: float
    text_at: float
    dropped_reason: str | None = None


@dataclass(frozen=True, slots=True)
class ObservedTurn:
    """A turn was added to the timeline. One observation per part, so a turn of two people is reported twice."""

    seq: int
    kind: str
    speaker_id: str
    text: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ObservedCompaction:
    """A batch was folded. `covered_through_turn`: the highest folded seq. `summary`: the new summary."""

    old_cursor: int
    new_cursor: int
    covered_through_turn: int
    summary_chars: int
    latency_ms: float
    summary: str
    degraded: bool = False
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ObservedCompactionFailure:
    """A compaction failed; the cursor did not move."""

    reason: str
    old_cursor: int
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ObservedPromptPart:
    """One message of a prompt.

    `kind`: system | summary | turn | note | recall | eviction_note | current. `seq_from`, `seq_to`: the turns that it
    covers, both inclusive, or None.
    """

    role: str
    kind: str
    content: str
    tokens: int
    seq_from: int | None = None
    seq_to: int | None = None


@dataclass(frozen=True, slots=True)
class ObservedPrompt:
    """The prompt for one answer. `answer_to`: the seq of the turn that is answered."""

    parts: tuple[ObservedPromptPart, ...]
    answer_to: int | None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ObservedReply:
    """The bot finished speaking or was interrupted. `text`: the part that was played.

    `answer_to`: the seq of the turn it answers, as in `ObservedPrompt`. `utterance_id`: the utterance that asked,
    if known. `first_audio_at`: when the first frame was sent. `unasked`: the bot spoke on its own; nobody had asked.
    """

    text: str
    first_audio_at: float
    ended_at: float
    interrupted: bool = False
    answer_to: int | None = None
    utterance_id: str | None = None
    model_first_token_ms: float | None = None
    synthesis_first_audio_ms: float | None = None
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class ObservedPacketCounters:
    """The voice transport's counters since the bot started; only the last report of a process counts.

    `counters` by name; `received`, `lost`, `concealed` and `dave_failures` are always there.
    """

    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoggedProblem:
    """A warning or an error was logged. Never holds what people said."""

    event: str
    detail: str
    level: str = "error"  # warning | error


@dataclass(frozen=True, slots=True)
class BotCrashed:
    """The bot ended on its own; `detail` is a plain sentence."""

    detail: str


Observation: TypeAlias = (
    RoomReady
    | RoomLeft
    | ObservedUtterance
    | ObservedTurn
    | ObservedCompaction
    | ObservedCompactionFailure
    | ObservedPrompt
    | ObservedReply
    | ObservedPacketCounters
    | LoggedProblem
    | BotCrashed
)

ObservationCallback: TypeAlias = Callable[[Observation], None]


@dataclass(frozen=True, slots=True)
class ObservedToolCall:
    """A tool that a model called. `told`: the result that the model was given."""

    name: str
    told: str


@dataclass(frozen=True, slots=True)
class ServerObservations:
    """The calls, sessions and cut-off positions that reached the model servers.

    `heard_ms`: the positions at which the client told the speech-to-speech model that its answers were cut off.
    """

    tools: tuple[ObservedToolCall, ...] = ()
    heard_ms: tuple[int, ...] = ()
    realtime_sessions: int = 0
