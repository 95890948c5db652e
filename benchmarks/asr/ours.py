"""The recogniser of a room with its guards and its second hearing, called on sound without a room around it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.recordings import USUAL_GLOSSARY
from voice.asr.port import RecognitionRequest
from voice.asr.second_hearing import PlainHearing, hear

if TYPE_CHECKING:
    from voice.asr.worker import Engine
    from voice.audio import Pcm


@dataclass(slots=True)
class RoomTranscriber:
    """Recognises as a room of four people does while nobody else waits. `glossary`: what the room expects.

    `dropped` counts the guards, `again` the second hearings by what came of them. `cpu_s`: CPU time of the whole
    process in all hearings, `first_cpu_s`: in the first ones.
    """

    engine: Engine
    language: str
    glossary: tuple[str, ...] = USUAL_GLOSSARY
    dropped: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    cpu_s: float = 0.0
    first_cpu_s: float = 0.0

    async def transcribe(self, pcm: Pcm, *, speech_s: float) -> str:
        """Return the text that a room would keep, or nothing. Raises `RecogniserError` if the first hearing fails."""
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
        self.cpu_s += time.process_time() - worked
        return hearings.used.recognition.text if fault is None else ""

    async def _recognise(self, pcm: Pcm, *, careful: bool) -> PlainHearing:
        worked = time.process_time()
        recognition = await asyncio.to_thread(
            self.engine.recognise, RecognitionRequest(pcm, self.language, self.glossary, careful=careful)
        )
        if not careful:
            self.first_cpu_s += time.process_time() - worked
        return PlainHearing(recognition, self.glossary)
