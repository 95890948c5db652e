"""Measure how often a pause within speech is mistaken for its end, and how late a real end is detected.

The measurement runs faster than real time: a room's listener with its models gets the recording frame by frame, after
an Opus round trip. Times are those of the recording, so the figures do not depend on the machine. `benchmarks.endpoint`
has the same as a curve.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.reply.pause_judge import COUNTED_FROM_S, PauseJudge
from benchmarks.reply.recordings import voice_end_s
from benchmarks.reply.spread import spread
from benchmarks.stats import share_of
from bot.wiring.speech_models import open_vad
from rehearsal.people.clip import Clip, read_sound
from voice.audio import LISTEN_FRAME_SAMPLES, LISTEN_RATE_HZ
from voice.listening.endpointing import ENDPOINTING, WINDOW_S, window_count
from voice.listening.listener import RoomListener
from voice.listening.utterance import PauseBegan, PauseEnded, Utterance
from voice.listening.vad import WINDOW_SAMPLES
from voice.transport.audio_events import SpeechFrames
from voice.transport.opus import Decoder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.progress import Progress
    from benchmarks.reply.recordings import SpeechRecording
    from benchmarks.report import Json
    from bot.settings import ModelsSettings
    from voice.asr.whisper import WhisperEngine
    from voice.listening.endpointing import EndpointingParameters
    from voice.listening.utterance import ListeningEvent

_FRAME_S = 0.02
_LANGUAGE = "en"
# Seconds of silence after a recording: longer than any silence that ends speech.
_SILENCE_S = 2.0
# Each recording is processed twice. The second time its windows are shifted by half a window, because their position
# changes the decision for two pauses in seventy.
_LEADS = (0, WINDOW_SAMPLES // 2)
# When a pause counts, in whole windows of silence. Less than a window's rounding is no silence.
_COUNTED_FROM_S = window_count(COUNTED_FROM_S) * WINDOW_S - 1e-6


@dataclass(frozen=True, slots=True)
class PauseResult:
    """How the listener cut one recording. `pauses`: for each pause that counts (`COUNTED_FROM_S`), the probability that
    the speaker had finished, and whether it was the end.

    `end_s`: where the voice ends, by its loudness or by the voice-activity model, whichever is earlier. Some recordings
    end with noise, and counting from the end of the noise would make the figures too good. `end_known_s`: when the end
    was detected.
    """

    utterances: int
    pauses: tuple[tuple[float | None, bool], ...]
    end_s: float
    end_known_s: float

    @property
    def cuts(self) -> int:
        """Return how many pauses within the speech were mistaken for the end."""
        return self.utterances - 1

    @property
    def inside(self) -> int:
        """Return how many pauses there were within the speech."""
        return sum(not is_end for _, is_end in self.pauses)


async def measure_pauses(
    recordings: Sequence[SpeechRecording],
    *,
    models: ModelsSettings,
    turn_model: bool = True,
    parameters: EndpointingParameters = ENDPOINTING,
    recogniser: WhisperEngine | None = None,
    progress: Progress,
) -> dict[str, Json]:
    """Return how the listener judges the pauses of these recordings with these parameters.

    `recogniser`: as in a room, its text helps to judge a pause; None: intonation alone does.
    """
    progress.step("pauses inside speech", total=len(recordings))
    listener = PauseListener(models, turn_model=turn_model, parameters=parameters, recogniser=recogniser)
    heard: list[PauseResult] = []
    for recording in recordings:
        heard += [await asyncio.to_thread(listener.hear, recording.path, lead_samples=lead) for lead in _LEADS]
        progress.advance()
    inside, cuts = sum(one.inside for one in heard), sum(one.cuts for one in heard)
    return {
        "recordings": len(recordings),
        "passes": len(_LEADS),
        "end_of_turn_model": listener.has_turn_model,
        "text_of_pauses": recogniser is not None,
        "text_read": listener.reads_text,
        "pauses_inside": inside,
        "cut": cuts,
        "cut_share": share_of(cuts, inside),
        "end_known_after_ms": spread([(one.end_known_s - one.end_s) * 1000 for one in heard]),
    }


class PauseListener:
    """A room's models, which process one recording after the other. Not thread-safe. Raises `VoiceError`."""

    def __init__(
        self,
        models: ModelsSettings,
        *,
        turn_model: bool = True,
        parameters: EndpointingParameters = ENDPOINTING,
        recogniser: WhisperEngine | None = None,
    ) -> None:
        self._detector = open_vad(models)
        self._judge = PauseJudge(models, turn_model=turn_model, recogniser=recogniser, language=_LANGUAGE)
        self._parameters = parameters

    @property
    def has_turn_model(self) -> bool:
        """Whether the end-of-turn model judges pauses. Otherwise only their length counts."""
        return self._judge.has_turn_model

    @property
    def reads_text(self) -> bool:
        """Whether a language model reads the text of each pause."""
        return self._judge.reads_text

    def hear(self, path: Path, *, lead_samples: int = 0) -> PauseResult:
        """Return how a recording is cut, after `lead_samples` of silence. Blocks: ten seconds take a quarter of a
        second. Raises `BenchmarkError` if nobody speaks in it.
        """
        decoder = Decoder(rate_hz=LISTEN_RATE_HZ)
        frames = [decoder.decode(packet) for packet in Clip.load(path).packets]
        lead, silence = np.zeros(lead_samples, np.int16), np.zeros(round(_SILENCE_S * LISTEN_RATE_HZ), np.int16)
        pcm = np.concatenate([lead, *frames, silence])
        ears = RoomListener(self._detector, self._parameters, judged=self.has_turn_model)
        utterances: list[Utterance] = []
        # The probability and the time of every pause, and the times of those that count.
        asked: list[tuple[float | None, float]] = []
        counted: set[float] = set()
        paused_at: float | None = None
        for at in range(0, len(pcm) - LISTEN_FRAME_SAMPLES, LISTEN_FRAME_SAMPLES):
            now = at / LISTEN_RATE_HZ + _FRAME_S
            frame = SpeechFrames(1, 1, now - _FRAME_S, pcm[at : at + LISTEN_FRAME_SAMPLES])
            waiting: list[ListeningEvent] = list(ears.hear([frame], now))
            while waiting:
                event = waiting.pop(0)
                if isinstance(event, PauseBegan):
                    pcm_before = event.utterance.pcm
                    likely = self._judge.finished(pcm_before)
                    paused_at = event.utterance.ended_at
                    asked.append((likely, paused_at))
                    if event.asks:
                        waiting += ears.answer(event, self._judge.evidence(pcm_before, likely), now)
                elif isinstance(event, PauseEnded):
                    paused_at = None
                elif isinstance(event, Utterance):
                    utterances.append(event)
            if paused_at is not None and now - paused_at >= _COUNTED_FROM_S:
                counted.add(paused_at)
        if not utterances:
            raise BenchmarkError(f"No speech was found in {path}. Take it out of manifest.json.")
        last = utterances[-1]
        return PauseResult(
            utterances=sum(not one.cut for one in utterances),
            pauses=tuple((likely, ended_at >= last.ended_at) for likely, ended_at in asked if ended_at in counted),
            end_s=min(voice_end_s(read_sound(path)) + lead_samples / LISTEN_RATE_HZ, last.ended_at),
            end_known_s=last.closed_at,
        )
