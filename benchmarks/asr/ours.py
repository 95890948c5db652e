"""The recogniser of a room with its guards and its second hearing, called on sound without a room around it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.usual_glossary import USUAL_GLOSSARY
from voice.asr.second_hearing import PlainHearing, hear

if TYPE_CHECKING:
    from voice.asr.worker import Engine
    from voice.audio import Pcm


@dataclass(frozen=True, slots=True)
class MeasuredText:
    """The text of one sound; empty if there was none. `cpu_s`: of the whole process."""

    text: str
    cpu_s: float


@dataclass(slots=True)
class RoomTranscriber:
    """Recognises as a room of four people does while nobody else waits. `glossary`: what the room expects.

    `dropped` counts the guards, `again` the second hearings by what came of them. `first_cpu_s`: CPU time of all first
    hearings.
    """

    engine: Engine
    language: str
    glossary: tuple[str, ...] = USUAL_GLOSSARY
    dropped: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    first_cpu_s: float = 0.0

    async def transcribe(self, pcm: Pcm, *, speech_s: float) -> MeasuredText:
        """Return the text that a room would keep. Raises `RecogniserError` if the first hearing fails."""
        worked = time.process_time()
        hearings = await hear(
            lambda careful: self._recognise(pcm, careful=careful),
            lambda heard: heard.fault(speech_s=speech_s),
            speech_s=speech_s,
        )
        if hearings.was_doubtful:
            self.again["mended" if hearings.mended else "kept"] += 1
        fault = hearings.used.fault(speech_s=speech_s)
        if fault is not None:
            self.dropped[fault.value] += 1
        text = hearings.used.recognition.text if fault is None else ""
        return MeasuredText(text, time.process_time() - worked)

    async def _recognise(self, pcm: Pcm, *, careful: bool) -> PlainHearing:
        worked = time.process_time()
        recognition = await asyncio.to_thread(
            self.engine.recognise, pcm, language=self.language, glossary=self.glossary, careful=careful
        )
        if not careful:
            self.first_cpu_s += time.process_time() - worked
        return PlainHearing(recognition, self.glossary)
