"""The voice activity detection of the local realtime server: when speech begins and ends in a stream. Pure.

It uses only loudness, which is enough for the clean recordings of a rehearsal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rehearsal.servers.realtime_conversation import RATE_HZ

if TYPE_CHECKING:
    from numpy.typing import NDArray

WINDOW_MS = 20
_WINDOW = RATE_HZ * WINDOW_MS // 1000
# A share of full scale. Decoded silence is softer.
LOUD_RMS = 0.01
# A shorter sound is a click.
MIN_SPEECH_MS = 60


@dataclass(frozen=True, slots=True)
class SpeechBegan:
    """Speech began. `start_ms` counts from the start of the session's audio and includes the padding."""

    start_ms: int


@dataclass(frozen=True, slots=True)
class SpeechEnded:
    """Speech ended. `pcm`: the whole speech, including the padding."""

    end_ms: int
    pcm: NDArray[np.int16]


class ServerVad:
    """Detects speech in one session's audio."""

    def __init__(self, *, silence_ms: int = 500, padding_ms: int = 300) -> None:
        self._silence_ms = silence_ms
        self._padding = RATE_HZ * padding_ms // 1000
        self._rest = np.zeros(0, np.int16)
        self._kept = np.zeros(0, np.int16)
        self._read_ms = 0
        self._loud_ms = 0
        self._quiet_ms = 0
        self._speaking = False

    def feed(self, pcm: NDArray[np.int16]) -> list[SpeechBegan | SpeechEnded]:
        """Process mono audio at 24 kHz. Return the speech that began and ended in it, in order."""
        events: list[SpeechBegan | SpeechEnded] = []
        self._rest = np.concatenate([self._rest, pcm])
        while len(self._rest) >= _WINDOW:
            window, self._rest = self._rest[:_WINDOW], self._rest[_WINDOW:]
            if (event := self._window(window)) is not None:
                events.append(event)
        return events

    def _window(self, window: NDArray[np.int16]) -> SpeechBegan | SpeechEnded | None:
        self._kept = np.concatenate([self._kept, window])
        self._read_ms += WINDOW_MS
        loud = float(np.sqrt(np.mean((window / 32768.0) ** 2))) >= LOUD_RMS
        if not self._speaking:
            self._loud_ms = self._loud_ms + WINDOW_MS if loud else 0
            keep = self._padding + RATE_HZ * self._loud_ms // 1000
            self._kept = self._kept[-keep:] if keep else self._kept[:0]
            if self._loud_ms >= MIN_SPEECH_MS:
                self._speaking, self._quiet_ms = True, 0
                return SpeechBegan(self._read_ms - len(self._kept) * 1000 // RATE_HZ)
            return None
        self._quiet_ms = 0 if loud else self._quiet_ms + WINDOW_MS
        if self._quiet_ms < self._silence_ms:
            return None
        said, self._kept = self._kept, self._kept[:0]
        self._speaking, self._loud_ms = False, 0
        return SpeechEnded(self._read_ms, said)
