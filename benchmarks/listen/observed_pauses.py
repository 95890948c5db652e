"""Everything that endpointing can know in each pause of a recording, and how long the pause lasted.

The recording goes through Opus and the room's models faster than real time, and is never cut. So one observation serves
every policy, and all times are those of the sound: the figures do not depend on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.recordings import USUAL_GLOSSARY, voice_end_s
from bot.models.catalogue import TURN_SMART, TURN_TEXT
from bot.models.directory import CONVERTED_NAME, ModelDirectory, whisper_folder
from bot.wiring.speech_models import open_vad
from rehearsal.people.clip import Clip, read_sound
from voice.asr.text_end import LANGUAGE, SentenceReader
from voice.asr.whisper import WhisperEngine
from voice.audio import INT16_FULL_SCALE, LISTEN_RATE_HZ
from voice.listening.end_policy import PauseEvidence
from voice.listening.endpointing import (
    WINDOW_S,
    AudioWindow,
    Endpointer,
    EndpointingParameters,
    SpeechPaused,
    SpeechResumed,
    window_count,
)
from voice.listening.turn_detection import SmartTurn
from voice.listening.vad import WINDOW_SAMPLES, VadState, WindowRun
from voice.transport.opus import Decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.recordings import SpeechRecording
    from bot.settings import ModelsSettings
    from config.schema import Settings
    from voice.asr.worker import Engine
    from voice.audio import Pcm

# Seconds of silence from which a pause inside speech counts. A room asks about shorter ones too, which belong to
# articulation and are never taken for an end: with them the share of pauses that are cut would look smaller.
COUNTED_FROM_S = 0.2
# Longer than any pause inside speech and than any silence that ends it.
NEVER_S = 3.5
_NEVER_ENDS = EndpointingParameters(end_silence_s=NEVER_S)
# A client sends frames of 20 ms; an end is known when the frame that completes its last window has arrived.
FRAME_S = 0.02


@dataclass(frozen=True, slots=True)
class Asked:
    """What both models know of a pause after so many silent `windows`."""

    windows: int
    evidence: PauseEvidence


@dataclass(frozen=True, slots=True)
class ObservedPause:
    """One pause that counts (`COUNTED_FROM_S`): so many silent `windows`; None: it was the end of the speech.

    `asked`: what the models know at its beginning, when a room asks; None without the end-of-turn model.
    `voice_end_s`: how long before the first silent window the voice had ended by its loudness; only of an end.
    """

    windows: int | None
    asked: Asked | None = None
    voice_end_s: float = 0.0

    @property
    def is_end(self) -> bool:
        """Return whether the speaker had finished."""
        return self.windows is None

    @property
    def evidence(self) -> PauseEvidence | None:
        """Return what a room knows of the pause; None without the end-of-turn model."""
        return None if self.asked is None else self.asked.evidence

    def known_after_s(self, silent_windows: int) -> float:
        """Return when an end is known that needs so much silence, in seconds from the end of the voice."""
        arrived = -(-round(silent_windows * WINDOW_S * 1000) // round(FRAME_S * 1000)) * FRAME_S
        return self.voice_end_s + arrived


class PauseJudge:
    """Judges pauses one after the other. Not thread-safe. Raises `VoiceError` for a model that cannot be loaded.

    `recogniser`: its text in `language` helps, as in a room; None: intonation alone decides. Without the end-of-turn
    model nothing is known of a pause but its length.
    """

    def __init__(self, models: ModelsSettings, *, recogniser: Engine | None = None, language: str = "en") -> None:
        directory = ModelDirectory(models.directory)
        wanted = directory.holds(TURN_SMART)
        self._turn = SmartTurn(directory.path(TURN_SMART) / TURN_SMART.main_file.name) if wanted else None
        self._recogniser = recogniser
        reads = wanted and recogniser is not None and language == LANGUAGE and directory.holds(TURN_TEXT)
        self._reader = SentenceReader(directory.path(TURN_TEXT) / CONVERTED_NAME) if reads else None
        self._language = language

    @property
    def has_turn_model(self) -> bool:
        """Return whether the end-of-turn model judges pauses."""
        return self._turn is not None

    @property
    def reads_text(self) -> bool:
        """Return whether a language model reads the text of each pause."""
        return self._reader is not None

    def finished(self, pcm: Pcm) -> float | None:
        """Return the probability that the speech before a pause sounds finished; None without the model. Blocks."""
        return None if self._turn is None else self._turn.probability(pcm)

    def evidence(self, pcm: Pcm, finished: float | None) -> PauseEvidence | None:
        """Return what is known of a pause after `pcm`, which sounds `finished`. Blocks."""
        if finished is None:
            return None
        if self._recogniser is None:
            return PauseEvidence(finished)
        heard = self._recogniser.recognise(pcm, language=self._language, glossary=USUAL_GLOSSARY)
        read = None if self._reader is None else self._reader.read(heard.text)
        return PauseEvidence(finished, heard.sentence_end_probability, read)


class PauseObserver:
    """A room's models. `judge`: those that judge pauses. Not thread-safe. Raises `VoiceError` if one that is needed is
    missing.
    """

    def __init__(self, settings: Settings) -> None:
        self._vad = open_vad(settings.models)
        self.judge = PauseJudge(
            settings.models,
            recogniser=WhisperEngine(whisper_folder(settings.models, settings.asr), settings.asr),
            language=LANGUAGE,
        )

    def observe(self, recording: SpeechRecording, *, lead_samples: int = 0) -> list[ObservedPause]:
        """Return the pauses of a recording in order, after `lead_samples` of silence. Blocks."""
        decoder = Decoder(rate_hz=LISTEN_RATE_HZ)
        frames = [decoder.decode(packet) for packet in Clip.load(recording.path).packets]
        silence = np.zeros(round((NEVER_S + 0.2) * LISTEN_RATE_HZ), np.int16)
        pcm = np.concatenate([np.zeros(lead_samples, np.int16), *frames, silence])
        pcm = pcm[: len(pcm) // WINDOW_SAMPLES * WINDOW_SAMPLES]
        loud_until_s = voice_end_s(read_sound(recording.path)) + lead_samples / LISTEN_RATE_HZ
        observed = []
        for pause, windows in self._pauses(pcm):
            if windows is not None and windows < window_count(COUNTED_FROM_S):
                continue
            left_s = 0.0 if windows is not None else max(0.0, pause.last * WINDOW_S - loud_until_s)
            observed.append(ObservedPause(windows, self._asked(pcm, pause), left_s))
        return observed

    def _asked(self, pcm: Pcm, pause: SpeechPaused) -> Asked | None:
        heard = pcm[pause.start * WINDOW_SAMPLES : pause.end * WINDOW_SAMPLES]
        known = self.judge.evidence(heard, self.judge.finished(heard))
        return None if known is None else Asked(pause.end - pause.last, known)

    def _pauses(self, pcm: Pcm) -> list[tuple[SpeechPaused, int | None]]:
        """Return each pause and its length in windows."""
        levels = pcm.reshape(-1, WINDOW_SAMPLES).astype(np.float32) / INT16_FULL_SCALE
        loudness = np.sqrt(np.mean(levels**2, axis=1))
        probabilities = self._vad.score([WindowRun(VadState(), pcm)])[0]
        endpointer = Endpointer(_NEVER_ENDS, judged=False)
        found: list[tuple[SpeechPaused, int | None]] = []
        for index, (probability, rms) in enumerate(zip(probabilities, loudness, strict=True)):
            for event in endpointer.handle(AudioWindow(probability, float(rms))):
                if isinstance(event, SpeechPaused):
                    found.append((event, None))
                elif isinstance(event, SpeechResumed):
                    found[-1] = (found[-1][0], index - found[-1][0].last)
        return found


def observe_all(
    recordings: Sequence[SpeechRecording],
    observer: PauseObserver,
    *,
    leads: Sequence[int],
    on_done: Callable[[], None] = lambda: None,
) -> list[ObservedPause]:
    """Return the pauses of all recordings, each processed once for each of `leads` samples of silence before it.
    `on_done`: called after each recording. Blocks.
    """
    pauses: list[ObservedPause] = []
    for recording in recordings:
        for lead in leads:
            pauses += observer.observe(recording, lead_samples=lead)
        on_done()
    return pauses
