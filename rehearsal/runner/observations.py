"""The observations of a run: the bot's reports, and the requests that reached the model servers.

The command line, which composes a run, converts the bot's own events to these values. Times are seconds of
`time.monotonic()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class RoomReady:
    """The bot is connected to the voice channel. It hears speech that starts now from the first word."""

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
    """One utterance became text, or was dropped for a reason. A dropped utterance may have an empty `text`.

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
    """A turn was added to the timeline. Each speaker's part is one observation, so a turn of two people is reported
    twice.
    """

    seq: int
    kind: str
    speaker_id: str
    text: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ObservedCompaction:
    """A batch of turns was folded into the summary.

    `covered_through_turn`: the highest seq that was folded. `summary`: the new summary.
    """

    old_cursor: int
    new_cursor: int
    covered_through_turn: int
    summary_chars: int
    latency_ms: float
    summary: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ObservedCompactionFailure:
    """A compaction failed, and the cursor did not move."""

    reason: str
    old_cursor: int
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ObservedPromptPart:
    """One message of a prompt.

    `kind`: system | summary | turn | note | recall | eviction_note | current. `seq_from`, `seq_to`: the first and the
    last turn that the message covers, or None.
    """

    role: str
    kind: str
    content: str
    tokens: int
    seq_from: int | None = None
    seq_to: int | None = None


@dataclass(frozen=True, slots=True)
class ObservedPrompt:
    """The prompt for one answer. `answer_to`: the seq of the answered turn."""

    parts: tuple[ObservedPromptPart, ...]
    answer_to: int | None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ObservedReply:
    """The bot finished speaking or was interrupted. `text`: the part that was played.

    `answer_to`: the seq of the answered turn, as in `ObservedPrompt`. `utterance_id`: the utterance with the question,
    if known. `first_audio_at`: when the first frame was sent. `unasked`: the bot spoke on its own, without a question.
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
    """The voice transport's counters since the bot started. Only the last report counts.

    `counters` by name. `received`, `lost`, `concealed` and `dave_failures` are always present.
    """

    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoggedProblem:
    """A warning or an error was logged. It never contains what people said."""

    event: str
    detail: str
    level: str = "error"  # warning | error


@dataclass(frozen=True, slots=True)
class BotCrashed:
    """The bot ended on its own. `detail` is a plain sentence."""

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
    """A tool that a model called. `result`: the result that was sent to the model."""

    name: str
    result: str


@dataclass(frozen=True, slots=True)
class ServerObservations:
    """The tool calls, sessions and cut-off positions that reached the model servers.

    `heard_ms`: the positions at which answers were cut off, as the client reported them to the speech-to-speech model.
    """

    tools: tuple[ObservedToolCall, ...] = ()
    heard_ms: tuple[int, ...] = ()
    realtime_sessions: int = 0
