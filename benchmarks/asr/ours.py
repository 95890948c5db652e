"""Our recogniser on one recording: the model, the guards and the second pass, as a room uses them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.reply.usual_glossary import USUAL_GLOSSARY
from voice.asr.guards import judge
from voice.asr.second_pass import SECOND_PASSES, doubt_about, is_mended
from voice.listening.coalesce import is_sound_effect

if TYPE_CHECKING:
    from voice.asr.port import Recognition
    from voice.asr.second_pass import Doubt
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

    def transcribe(self, pcm: Pcm, *, speech_s: float) -> MeasuredText:
        """Return the text that a room would keep. Blocks. Raises `RecogniserError`."""
        worked, begun = time.process_time(), time.perf_counter()
        heard = self.engine.recognise(pcm, language=self.language, glossary=USUAL_GLOSSARY)
        fault = judge(heard, speech_s=speech_s, glossary=USUAL_GLOSSARY)
        doubt = doubt_about(heard, fault, speech_s=speech_s)
        if doubt is not None and (fault is not None or not is_sound_effect(heard.text)):
            better = self._again(pcm, heard, doubt, speech_s)
            self.again[f"{doubt.value}, {'kept' if better is None else 'mended'}"] += 1
            if better is not None:
                heard, fault = better, None
        if fault is not None:
            self.dropped[fault.value] += 1
        text = heard.text if fault is None else ""
        return MeasuredText(text, time.process_time() - worked, time.perf_counter() - begun)

    def _again(self, pcm: Pcm, first: Recognition, doubt: Doubt, speech_s: float) -> Recognition | None:
        """Return the better text of a second pass, or None if there is none."""
        for way in SECOND_PASSES[doubt]:
            glossary = USUAL_GLOSSARY if way.glossary else ()
            second = self.engine.recognise(
                way.sound(pcm), language=self.language, glossary=glossary, careful=way.careful
            )
            if is_mended(first, second, doubt, judge(second, speech_s=speech_s, glossary=glossary)):
                return second
        return None
