"""Measures how soon finished utterances become text when several people speak at once, in real time, and its errors.

Nothing is recognised ahead, so every utterance comes to the recogniser when its end is certain: the worst case of a
room. The word errors are those of the recogniser's texts, before the guards. `bench reply --only speakers` measures
whole rooms, with endpointing.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.heard_words import HeardWords
from benchmarks.reply.spread import spread
from benchmarks.reply.usual_glossary import USUAL_GLOSSARY
from voice.asr.scheduler import QueuedRecogniser
from voice.audio import duration_s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Json
    from voice.asr.worker import Engine
    from voice.audio import Pcm

# People pause between two utterances, and they do not all start at the same time.
_GAP_S = 1.0
_STAGGER_S = 0.9


@dataclass(frozen=True, slots=True)
class SpokenSound:
    """One recording: what is said in it, and its sound (mono int16, 16 kHz)."""

    text: str
    pcm: Pcm


async def measure_company(
    load: Callable[[], Engine], recordings: Sequence[SpokenSound], *, people: int, language: str, progress: Progress
) -> dict[str, Json]:
    """Let `people` speak the recordings in equal shares. Returns the delays from the end of each to its text, and the
    word errors of the texts.
    """
    progress.step(f"{people} people at once", total=len(recordings))
    delays: list[float] = []
    words = HeardWords()
    async with QueuedRecogniser(load) as recogniser:

        async def talk(person: int) -> None:
            await asyncio.sleep(_STAGGER_S * person)
            for said in recordings[person::people]:
                await asyncio.sleep(duration_s(said.pcm))
                ended = time.monotonic()
                heard = await recogniser.recognise(
                    said.pcm, language=language, glossary=USUAL_GLOSSARY, speaker_id=person
                )
                delays.append(time.monotonic() - ended)
                words.add(said.text, heard.text)
                progress.advance()
                await asyncio.sleep(_GAP_S)

        begun, worked = time.monotonic(), time.process_time()
        async with asyncio.TaskGroup() as group:
            for person in range(people):
                group.create_task(talk(person), name=f"speaker-{person}")
        wall_s, cpu_s = time.monotonic() - begun, time.process_time() - worked
        figures = recogniser.figures
    return {
        "utterances": len(delays),
        "word_error_rate": round(words.rate, 4),
        "without_text": words.lost,
        "end_certain_to_text_ms": spread([1000 * delay for delay in delays]),
        "compute_ms_mean": round(1000 * figures.compute_s / max(1, figures.completed), 1),
        "waited_at_most": figures.queued_peak,
        "failed": figures.failed,
        # The share of one core that the whole process uses.
        "cpu_share": round(cpu_s / wall_s, 3),
    }
