"""The models of a room that tell whether a pause is the end of speech, for benchmarks without a room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.usual_glossary import USUAL_GLOSSARY
from bot.models.catalogue import TURN_SMART, TURN_TEXT
from bot.models.directory import CONVERTED_NAME, ModelDirectory
from voice.asr.text_end import LANGUAGE, SentenceReader
from voice.listening.end_policy import PauseEvidence
from voice.listening.turn_detection import SmartTurn

if TYPE_CHECKING:
    from bot.settings import ModelsSettings
    from voice.asr.worker import Engine
    from voice.audio import Pcm


# Seconds of silence from which a pause inside speech counts. A room asks about shorter ones too, which belong to
# articulation and are never taken for an end: with them the share of pauses that are cut would look smaller.
COUNTED_FROM_S = 0.2


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
