"""What the bot under rehearsal reports, and the two things a rehearsal needs from outside: a bot and an ear.

The rehearsal knows nothing of the bot's insides. Whoever composes both (the command line) implements
`Companion` and maps the bot's own events to these values. Times are seconds of `time.monotonic()`, which is
also the loop's clock, unless a name says epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from rehearsal.script.scenario import SettingValue


@dataclass(frozen=True, slots=True)
class RoomReady:
    """The bot is in the voice channel and hears it: speech that starts now is heard from its first word."""

    session_id: str
    at: float


@dataclass(frozen=True, slots=True)
class RoomLeft:
    """The bot left the voice channel, or the room ended."""

    session_id: str
    at: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class UtteranceHeard:
    """One stretch of speech became text, or was dropped with a reason (then `text` may be empty).

    `started_at`, `ended_at`: acoustic, on the speaker's time line. `text_at`: when the text stood.
    """

    utterance_id: str
    speaker_id: int
    text: str
    started_at: float
    ended_at: float
    text_at: float
    dropped_reason: str | None = None


@dataclass(frozen=True, slots=True)
class TurnRecorded:
    """A turn entered the timeline. One observation per part, so a turn of two people is reported twice."""

    seq: int
    kind: str
    speaker_id: str
    text: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class CompactionLanded:
    """A batch was folded. `covered_through_turn` is the highest folded seq; `summary` the text now in force."""

    old_cursor: int
    new_cursor: int
    covered_through_turn: int
    summary_chars: int
    latency_ms: float
    summary: str
    degraded: bool = False
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class CompactionFailed:
    """A compaction did not land; nothing moved."""

    reason: str
    old_cursor: int
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ContextPart:
    """One message of what a model was sent.

    `kind`: system | summary | turn | note | recall | eviction_note | current. `seq_from`, `seq_to`: the turns
    it stands for, both inclusive, or None.
    """

    role: str
    kind: str
    content: str
    tokens: int
    seq_from: int | None = None
    seq_to: int | None = None


@dataclass(frozen=True, slots=True)
class ContextBuilt:
    """What was sent to the model for one answer. `answer_to`: the seq of the current turn."""

    parts: tuple[ContextPart, ...]
    answer_to: int | None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ReplySpoken:
    """The bot finished speaking (or was interrupted): `text` is what was really played.

    `answer_to`: the seq of the turn it answers, as in `ContextBuilt`. `utterance_id`: the utterance that asked,
    where known. `first_audio_at`: the first frame handed to Discord. `unasked`: it answers nobody, it is a thought of
    the bot's own.
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
class PacketFigures:
    """The transport's counters since the bot started; the last report of a process counts.

    `counters` by reason; by convention `received`, `lost`, `concealed`, `dave_failures` are always there.
    """

    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something was logged as a warning or an error. Never holds what people said."""

    event: str
    detail: str
    level: str = "error"  # warning | error


@dataclass(frozen=True, slots=True)
class CompanionCrashed:
    """The bot ended without being asked to; `detail` is a plain sentence."""

    detail: str


Observation: TypeAlias = (
    RoomReady
    | RoomLeft
    | UtteranceHeard
    | TurnRecorded
    | CompactionLanded
    | CompactionFailed
    | ContextBuilt
    | ReplySpoken
    | PacketFigures
    | Problem
    | CompanionCrashed
)

Reporter: TypeAlias = Callable[[Observation], None]


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One turn that the session already had before the live start. `at_epoch_s` is UTC."""

    speaker_id: str
    speaker: str
    text: str
    at_epoch_s: float
    kind: str = "speech"


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything the bot needs in order to live in the local Discord instead of the real one.

    `settings`: dotted key -> value, over the bot's configuration. `history`: turns of the same session to store
    before the bot joins (cursor 0), given at the first start alone.
    """

    api_base: str
    gateway_url: str
    certificate_path: Path
    token: str
    guild_id: int
    voice_channel_id: int
    text_channel_id: int
    bot_name: str
    settings: Mapping[str, SettingValue]
    history: tuple[StoredTurn, ...] = ()


class Companion(Protocol):
    """The bot under rehearsal. One instance lives through kills and restarts and keeps its own store."""

    async def start(self, environment: Environment, report: Reporter) -> None:
        """Start and return when the bot is connected to the gateway and its commands are registered.

        `report` is called on the running loop's thread, in order, and returns at once. Raises any exception
        with a plain sentence when the bot cannot start.
        """

    async def stop(self) -> None:
        """End in order: last words transcribed, state stored, last `PacketFigures` reported. Idempotent.

        Raises whatever goes wrong in it. *Cancellation*: `kill` ends what is left.
        """

    async def kill(self) -> None:
        """End as SIGKILL would: nothing is saved, nothing is said goodbye to."""


class Recogniser(Protocol):
    """An ear for what the other participants heard."""

    async def transcribe(self, pcm: NDArray[np.int16]) -> str:
        """Return the text of mono int16 sound at 16 kHz; empty when nothing is said in it."""
