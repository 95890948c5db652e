"""One uninterrupted stretch of speech by one person, cut by endpointing and ready for the recogniser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
