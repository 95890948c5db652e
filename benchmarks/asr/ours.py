"""Our recogniser on one recording: the model, the guards and the second pass, as a room uses them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.reply.usual_glossary import USUAL_GLOSSARY
from voice.asr.second_pass import PlainPassResult, recognise_with_second_passes

if TYPE_CHECKING:
    from voice.asr.second_pass import RecognitionPass
    from voice.asr.worker import Engine
    from voice.audio import Pcm


@dataclass(frozen=True, slots=True)
class MeasuredText:
    """The text of one sound; empty if there was none. `cpu_s`: of the whole process; `wall_s`: as long as it took."""

    text: str
    cpu_s: float
    wall_s: float


@dataclass(slots=True)
class RoomTranscriber:
    """Recognises as a room of four people does while nobody else waits, with its glossary.

    `dropped` and `again` count guards and second passes.
    """

    engine: Engine
    language: str
    dropped: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)

    async def transcribe(self, pcm: Pcm, *, speech_s: float) -> MeasuredText:
        """Return the text that a room would keep. Raises `RecogniserError` if the first pass fails."""
        worked, begun = time.process_time(), time.perf_counter()
        results = await recognise_with_second_passes(
            lambda way: self._recognise(pcm, way), lambda heard: heard.fault(speech_s=speech_s), speech_s=speech_s
        )
        if results.doubt is not None:
            self.again[f"{results.doubt.value}, {'mended' if results.mended else 'kept'}"] += 1
        fault = results.used.fault(speech_s=speech_s)
        if fault is not None:
            self.dropped[fault.value] += 1
        text = results.used.recognition.text if fault is None else ""
        return MeasuredText(text, time.process_time() - worked, time.perf_counter() - begun)

    async def _recognise(self, pcm: Pcm, way: RecognitionPass) -> PlainPassResult:
        glossary = USUAL_GLOSSARY if way.glossary else ()
        recognition = await asyncio.to_thread(
            self.engine.recognise, way.sound(pcm), language=self.language, glossary=glossary, careful=way.careful
        )
        return PlainPassResult(recognition, glossary)
