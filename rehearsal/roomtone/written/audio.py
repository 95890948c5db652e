"""Fake audio for a written scenario: people's speech, a recogniser that is given the words, and a synthesiser of tones.

They implement the bot's own ports, so that everything behind the ports is real.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from voice.asr.port import Recognition
from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ, FRAME_MS, LISTEN_RATE_HZ, duration_s
from voice.listening.vad import WINDOW_SAMPLES
from voice.speaking.port import AudioChunk
from voice.transport.audio_events import SpeechFrames, TalkspurtEnded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from voice.audio import Pcm
    from voice.listening.vad import WindowRun
    from voice.transport.audio_events import AudioEvent

WORDS_A_SECOND = 2.8
_LOUD, _QUIET = 8_000, 100
_FRAMES_A_WORD = round(1000 / WORDS_A_SECOND / FRAME_MS)


def speech_duration_s(words: str) -> float:
    """Return how long it takes to say `words`, in seconds."""
    return len(words.split()) / WORDS_A_SECOND


def make_speech(speaker_id: int, words: str, *, at: float) -> list[AudioEvent]:
    """Return the audio events of somebody who says `words` from `at` on (monotonic seconds)."""
    seconds = speech_duration_s(words)
    pcm = np.full(round(seconds * LISTEN_RATE_HZ), _LOUD, dtype=np.int16)
    return [SpeechFrames(speaker_id, speaker_id, at, pcm), TalkspurtEnded(speaker_id, speaker_id, at + seconds)]


class LoudnessDetector:
    """Implements `voice.listening.vad.SpeechProbability`: loud audio is speech."""

    def score(self, runs: Sequence[WindowRun]) -> list[list[float]]:
        """Return 1.0 for loud windows, 0.0 for others."""
        return [
            [float(np.abs(window).max() > _LOUD / 2) for window in run.pcm.reshape(-1, WINDOW_SAMPLES)] for run in runs
        ]


class ScriptedRecogniser:
    """Implements `voice.asr.port.Recogniser`: returns the words in `saying`, by speaker."""

    def __init__(self) -> None:
        self.saying: dict[int, str] = {}

    async def recognise(
        self,
        pcm: Pcm,
        *,
        language: str | None = None,
        glossary: tuple[str, ...] = (),
        speaker_id: int | None = None,
        interim: bool = False,
        careful: bool = False,
    ) -> Recognition:
        assert speaker_id is not None, "rooms pass the speaker"
        return Recognition(
            text=self.saying[speaker_id],
            language="en",
            mean_logprob=-0.2,
            compression_ratio=1.0,
            no_speech_probability=0.0,
            duration_s=duration_s(pcm),
            compute_s=0.01,
            language_probability=0.99,
        )

    def confirm(self, speaker_id: int) -> None:
        """Do nothing. See `Recogniser.confirm`."""


class ToneSynthesizer:
    """Implements `voice.speaking.port.Synthesizer`: a quiet tone as long as the words take."""

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield one piece of audio for each word."""
        for _ in text.split():
            yield AudioChunk(np.full(_FRAMES_A_WORD * DISCORD_FRAME_SAMPLES, _QUIET, dtype=np.int16), DISCORD_RATE_HZ)
