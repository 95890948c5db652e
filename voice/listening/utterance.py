"""What listening tells the room: speech began, pauses, an utterance is complete, or sound was dropped and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from voice.audio import Pcm


@dataclass(frozen=True, slots=True)
class Utterance:
    """Speech between two silences. Times are monotonic seconds of the acoustic start and end.

    `pcm` is mono int16 at 16 kHz and includes the pre-roll. `closed_at` is when endpointing was sure.
    """

    id: str
    user_id: int
    started_at: float
    ended_at: float
    closed_at: float
    pcm: Pcm
    # True when the 30 s hard cut ended it and the person was still speaking.
    cut: bool = False


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """A person certainly speaks, since `at`. An `Utterance` or an `UtteranceDropped` of theirs follows."""

    user_id: int
    at: float


@dataclass(frozen=True, slots=True)
class PauseBegan:
    """A person in the midst of speech is silent: this is what `utterance` will be if it is for good.

    If it is, the same utterance follows, under the same id and equal to the sample, `closed_at` apart. Where
    `asks` is true, `RoomListener.answer` is owed within a second, whatever comes.
    """

    utterance: Utterance
    asks: bool


@dataclass(frozen=True, slots=True)
class PauseEnded:
    """The person goes on speaking: utterance `utterance_id` will not be."""

    user_id: int
    utterance_id: str


class DropReason(StrEnum):
    """Why sound never reached the recogniser."""

    TOO_SHORT = "too_short"  # a click, a cough: less voiced sound than min_speech_s
    NEAR_SILENCE = "near_silence"  # too faint to be addressed to anybody


@dataclass(frozen=True, slots=True)
class UtteranceDropped:
    """Sound that is no utterance, by its acoustic start and end."""

    user_id: int
    started_at: float
    ended_at: float
    reason: DropReason


ListeningEvent: TypeAlias = SpeechStarted | PauseBegan | PauseEnded | Utterance | UtteranceDropped
