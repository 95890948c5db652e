"""What happens in a room, as values for its own parts and for its observers: metrics, dashboard, rehearsal.

Observers are called in order on the event loop and must return at once. Events contain what people said, so they are
never logged. Times are monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from bot.health import HealthFault
    from bot.texts.text import Text
    from compaction.model import Note, Turn
    from compaction.payload import PayloadPart
    from voice.asr.port import Recognition
    from voice.listening.utterance import Utterance
    from voice.queue_figures import QueueFigures


@dataclass(frozen=True, slots=True)
class SpokenText:
    """One utterance and its text. Times are monotonic seconds.

    `begun_at`: when recognition began; `text_at`: when it was over. If it began `early`, in a pause, both may be before
    the end of the utterance was certain.
    """

    utterance: Utterance
    recognition: Recognition
    begun_at: float
    text_at: float
    early: bool = False

    @property
    def complete_at(self) -> float:
        """Return when both the end and the text were known."""
        return max(self.text_at, self.utterance.closed_at)

    @property
    def stages_ms(self) -> dict[str, float | bool]:
        """Return the duration of each stage since the acoustic end, in milliseconds, for a log line."""
        utterance = self.utterance
        stages = {
            "endpoint_ms": utterance.closed_at - utterance.ended_at,
            "queue_ms": max(0.0, self.begun_at - utterance.closed_at),
            "recognise_ms": self.text_at - self.begun_at,
            "compute_ms": self.recognition.compute_s,
            "end_to_text_ms": self.text_at - utterance.ended_at,
        }
        return {"early": self.early} | {name: round(1000 * seconds, 1) for name, seconds in stages.items()}

    @property
    def user_id(self) -> int:
        return self.utterance.user_id

    @property
    def text(self) -> str:
        return self.recognition.text

    @property
    def started_at(self) -> float:
        return self.utterance.started_at

    @property
    def ended_at(self) -> float:
        return self.utterance.ended_at


@dataclass(frozen=True, slots=True)
class RoomOpened:
    """The bot has joined the channel and receives its sound. `resumed`: an earlier room began the session."""

    session_id: str
    guild_id: int
    channel_id: int
    resumed: bool
    at: float


@dataclass(frozen=True, slots=True)
class RoomClosed:
    """The room ended. `reason`: a word of `bot.room.leaving`."""

    session_id: str
    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class UtteranceTranscribed:
    """An utterance has its text. `started_at`, `ended_at`: acoustic; `text_at`: when the text was ready."""

    utterance_id: str
    speaker_id: int
    text: str
    started_at: float
    ended_at: float
    text_at: float


@dataclass(frozen=True, slots=True)
class InterimTranscribed:
    """What is recognised so far of speech that may go on. A later one of the same speaker replaces it.

    It is over when speech of this speaker is transcribed or dropped.
    """

    speaker_id: int
    text: str
    started_at: float
    ended_at: float
    at: float


@dataclass(frozen=True, slots=True)
class SpeechDropped:
    """A sound was dropped and becomes no turn. `reason`: the guard that dropped it, or the failure."""

    utterance_id: str
    speaker_id: int
    reason: str
    text: str
    started_at: float
    ended_at: float
    at: float


class SecondHearing(StrEnum):
    """What came of the second hearing of a doubtful text."""

    MENDED = "mended"  # the new text is used
    KEPT = "kept"  # a new text was no better
    REFUSED = "refused"  # the recogniser was busy or failed, so there is no new text


@dataclass(frozen=True, slots=True)
class SecondHearingEnded:
    """A doubtful text was to be heard again."""

    speaker_id: int
    outcome: SecondHearing
    at: float


@dataclass(frozen=True, slots=True)
class TurnRecorded:
    """A turn was appended to the timeline. `utterances`: the turn's utterances in order; empty if it is not speech."""

    turn: Turn
    at: float
    utterances: tuple[SpokenText, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnDecided:
    """It was decided whether the bot answers a turn of speech. `spoken`: the utterance that the decision is about.

    `reason`: one word of the decider. `released_at`: when the utterances of the turn were complete; `stored_at`: when
    the turn was stored.
    """

    seq: int
    spoken: SpokenText
    answers: bool
    reason: str
    released_at: float
    stored_at: float
    at: float


@dataclass(frozen=True, slots=True)
class SoundReceived:
    """Sound has come from the voice connection. `delay_s`: since its last packet arrived. Measured once a second."""

    delay_s: float
    at: float


@dataclass(frozen=True, slots=True)
class ScreenNoted:
    """A note about a shared screen was added to the memory."""

    note: Note
    at: float


@dataclass(frozen=True, slots=True)
class CompactionLanded:
    """A compaction was applied. `summary`: the new summary; `covered_through_turn`: the highest folded seq."""

    old_cursor: int
    new_cursor: int
    covered_through_turn: int
    summary: str
    latency_ms: float
    at: float


@dataclass(frozen=True, slots=True)
class CompactionFailed:
    """A compaction failed; the cursor stays."""

    cursor: int
    reason: str
    at: float
    latency_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class ContextBuilt:
    """The prompt that a model is sent for the reply to turn `answer_to`."""

    parts: tuple[PayloadPart, ...]
    answer_to: int
    at: float


@dataclass(frozen=True, slots=True)
class ReplySpoken:
    """A reply has ended of which something was heard. `text`: the part that was played. `utterance_id`: what it
    answers; None: nobody asked. Milliseconds count from the beginning of the reply.
    """

    text: str
    answer_to: int
    utterance_id: str | None
    first_audio_at: float
    ended_at: float
    interrupted: bool
    model_first_token_ms: float | None
    synthesis_first_audio_ms: float | None


class ReplyOutcome(StrEnum):
    """How a reply ended. `UNSPOKEN`: no sound of it could be made or sent, so it was written. `SILENT`: it was given up
    before anything was heard of it. `GAVE_WAY`: somebody spoke before a whole sentence of it was heard, so that its
    question goes on, or is answered afterwards.
    """

    SPOKEN = "spoken"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNSPOKEN = "unspoken"
    SILENT = "silent"
    GAVE_WAY = "gave_way"


@dataclass(frozen=True, slots=True)
class ReplyFinished:
    """A reply is over, whatever became of it. It has no words.

    `asked_at`: when the speech that it answers ended; None: nobody asked. `first_token_at`, `first_audio_at`: None if
    it did not come to that. `synthesis_s`: from a sentence to its first sound.
    """

    answer_to: int
    outcome: ReplyOutcome
    asked_at: float | None
    begun_at: float
    first_token_at: float | None
    synthesis_s: float | None
    first_audio_at: float | None
    ended_at: float
    heard_words: int = 0


@dataclass(frozen=True, slots=True)
class ConnectionChanged:
    """The voice connection's state, in one word, and the number of packets by outcome so far.

    `round_trip_s`: how long the voice server takes to answer; None while it is not known.
    """

    state: str
    counters: Mapping[str, int]
    at: float
    round_trip_s: float | None = None


@dataclass(frozen=True, slots=True)
class QueuesMeasured:
    """How much waits in the room's queues."""

    queues: tuple[QueueFigures, ...]
    at: float


@dataclass(frozen=True, slots=True)
class StatusTold:
    """What answers, or why nothing does; how often the bot took part, and why; what it has cost: a subject a line."""

    status: Text


@dataclass(frozen=True, slots=True)
class Problem:
    """Something failed. `sentence`: plain, with the remedy, and without anything that people said."""

    where: str
    sentence: Text
    at: float


@dataclass(frozen=True, slots=True)
class FaultsFound:
    """What is wrong in the room and the process has changed. `faults`: everything that is wrong now."""

    faults: tuple[HealthFault, ...]
    at: float


Event: TypeAlias = (
    RoomOpened
    | RoomClosed
    | UtteranceTranscribed
    | InterimTranscribed
    | SpeechDropped
    | SecondHearingEnded
    | TurnRecorded
    | TurnDecided
    | SoundReceived
    | ScreenNoted
    | CompactionLanded
    | CompactionFailed
    | ContextBuilt
    | ReplySpoken
    | ReplyFinished
    | ConnectionChanged
    | QueuesMeasured
    | StatusTold
    | Problem
    | FaultsFound
)

Observer: TypeAlias = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """The observer that does nothing."""
