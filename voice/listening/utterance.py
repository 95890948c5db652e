"""The events of listening: speech started or paused, an utterance is complete, or sound was dropped."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from voice.audio import Pcm


@dataclass(frozen=True, slots=True)
class Utterance:
    """Speech between two silences. Times are monotonic seconds: the acoustic start and end.

    `pcm` is mono int16 at 16 kHz and includes the pre-roll. `closed_at`: when endpointing decided that it had ended.
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
    """A person is certainly speaking, since `at`. Their `Utterance` or `UtteranceDropped` follows."""

    user_id: int
    at: float


@dataclass(frozen=True, slots=True)
class PauseBegan:
    """A speaking person has fallen silent. `utterance` is the result if they have finished.

    If they have, the same utterance follows, with the same id and samples and another `closed_at`.
    `longest_pause_s`: of this person lately (`OwnPauses`).
    """

    utterance: Utterance
    longest_pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PauseEnded:
    """The person goes on speaking. The utterance with this id will not follow."""

    user_id: int
    utterance_id: str


class DropReason(StrEnum):
    """Why sound was not sent to the recogniser."""

    TOO_SHORT = "too_short"  # a click, a cough: less voiced sound than min_speech_s
    NEAR_SILENCE = "near_silence"  # too faint to be addressed to anybody


@dataclass(frozen=True, slots=True)
class UtteranceDropped:
    """Sound that is not an utterance. The times are its acoustic start and end."""

    user_id: int
    started_at: float
    ended_at: float
    reason: DropReason


ListeningEvent: TypeAlias = SpeechStarted | PauseBegan | PauseEnded | Utterance | UtteranceDropped
