"""Everything that endpointing can know in each pause of a recording, and how long the pause lasted.

The recording goes through Opus and the room's models faster than real time, and is never cut. So one observation serves
every policy, and all times are those of the sound: the figures do not depend on the machine.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.recordings import SpeechRecording, voice_end_s
from bot.models.catalogue import TURN_MODEL
from bot.models.directory import ModelDirectory
from bot.wiring.speech_models import open_vad
from rehearsal.people.clip import Clip, read_sound
from voice.audio import INT16_FULL_SCALE, LISTEN_RATE_HZ, Pcm
from voice.listening.end_policy import LONG_SILENCE_S, SHORTEST_PAUSE_S, OwnPauses, PauseEvidence
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

    from bot.settings import ModelsSettings

# Seconds of silence from which a pause inside speech counts. A room asks about shorter ones too: with them the share of
# pauses that are cut would look smaller.
COUNTED_FROM_S = SHORTEST_PAUSE_S
# A manifest's name for people who are not told apart. Nobody's pauses are learnt from theirs.
UNKNOWN_SPEAKER = "unknown"
# Longer than any pause inside speech and than any silence that ends it.
NEVER_S = 3.5
_NEVER_ENDS = EndpointingParameters(end_silence_s=NEVER_S)
# A client sends frames of 20 ms; an end is known when the frame that completes its last window has arrived.
FRAME_S = 0.02


@dataclass(frozen=True, slots=True)
class ObservedPause:
    """One pause that counts (`COUNTED_FROM_S`): so many silent `windows`; None: it was the end of the speech.

    `evidence`: what a room knows of it. `voice_end_s`: how long before the first silent window the voice had ended by
    its loudness; only of an end.
    """

    windows: int | None
    evidence: PauseEvidence
    voice_end_s: float = 0.0

    @property
    def is_end(self) -> bool:
        """Return whether the speaker had finished."""
        return self.windows is None

    def known_after_s(self, silence_s: float) -> float:
        """Return when so much silence is known, in seconds from the end of the voice."""
        arrived = -(-round(silence_s * 1000) // round(FRAME_S * 1000)) * FRAME_S
        return self.voice_end_s + arrived


class PauseObserver:
    """A room's models of a pause. Not thread-safe. Raises `VoiceError` if the model that finds speech is missing.

    Without the end-of-turn model how finished somebody sounds is unknown of every pause, as in a room.
    """

    def __init__(self, models: ModelsSettings) -> None:
        directory = ModelDirectory(models.directory)
        self._vad = open_vad(models)
        hears = directory.holds(TURN_MODEL)
        self._turn = SmartTurn(directory.path(TURN_MODEL) / TURN_MODEL.main_file.name) if hears else None

    @property
    def hears_intonation(self) -> bool:
        """Return whether the end-of-turn model judges pauses."""
        return self._turn is not None

    def observe(
        self, recording: SpeechRecording, *, lead_samples: int = 0, own: OwnPauses | None = None
    ) -> list[ObservedPause]:
        """Return the pauses of a recording in order, after `lead_samples` of silence. `own`: those of the same person
        before it, to which its own are added; None: nothing is known of them. Blocks.
        """
        own = OwnPauses() if own is None else own
        decoder = Decoder(rate_hz=LISTEN_RATE_HZ)
        frames = [decoder.decode(packet) for packet in Clip.load(recording.path).packets]
        silence = np.zeros(round((NEVER_S + 0.2) * LISTEN_RATE_HZ), np.int16)
        pcm = np.concatenate([np.zeros(lead_samples, np.int16), *frames, silence])
        pcm = pcm[: len(pcm) // WINDOW_SAMPLES * WINDOW_SAMPLES]
        loud_until_s = voice_end_s(read_sound(recording.path)) + lead_samples / LISTEN_RATE_HZ
        observed: list[ObservedPause] = []
        for pause, windows in self._pauses(pcm):
            if windows is not None and windows < window_count(COUNTED_FROM_S):
                continue
            left_s = 0.0 if windows is not None else max(0.0, pause.last * WINDOW_S - loud_until_s)
            heard = pcm[pause.start * WINDOW_SAMPLES : pause.end * WINDOW_SAMPLES]
            known = PauseEvidence(
                finished=None if self._turn is None else self._turn.probability(heard),
                speech_s=(pause.last - pause.first) * WINDOW_S,
                longest_pause_s=own.longest_s,
            )
            observed.append(ObservedPause(windows, known, left_s))
            # A longer one ends speech that nobody answers.
            if windows is not None and windows < window_count(LONG_SILENCE_S):
                own.went_on(windows * WINDOW_S)
        own.ended()
        return observed

    def _pauses(self, pcm: Pcm) -> list[tuple[SpeechPaused, int | None]]:
        """Return each pause and its length in windows."""
        levels = pcm.reshape(-1, WINDOW_SAMPLES).astype(np.float32) / INT16_FULL_SCALE
        loudness = np.sqrt(np.mean(levels**2, axis=1))
        probabilities = self._vad.score([WindowRun(VadState(), pcm)])[0]
        endpointer = Endpointer(_NEVER_ENDS)
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
    own: dict[tuple[str, int], OwnPauses] = defaultdict(OwnPauses)
    for recording in recordings:
        for lead in leads:
            known = None if recording.speaker == UNKNOWN_SPEAKER else own[recording.speaker, lead]
            pauses += observer.observe(recording, lead_samples=lead, own=known)
        on_done()
    return pauses
