"""How well the bot's English voices are understood, and what they cost: 60 sentences with signs, numbers and names.

Each installed voice says the sentences of `spoken.toml` as the bot would, and the recogniser writes down what it hears,
without a glossary that names what is coming. Of the wordings that a person would read aloud, the nearest one counts.
"""

from __future__ import annotations

import asyncio
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bot.models.directory import ModelDirectory
from bot.models.voices import VOICES, EmbeddedVoice, open_voice
from rehearsal.words import WordErrors, sum_word_errors, word_errors
from voice.asr.port import RecognitionRequest
from voice.audio import LISTEN_RATE_HZ
from voice.speaking.embedded import EmbeddedSynthesizer, VoiceManner
from voice.speaking.resample import resample
from voice.speaking.text_normalizer import TextNormalizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.measuring import Progress
    from benchmarks.report import Json
    from bot.settings import ModelsSettings
    from voice.asr.worker import Engine

TEXTS = Path(__file__).with_name("spoken.toml")
LANGUAGE = "en"
# Silence before and after each sentence, as a room has it.
EDGES_S = (0.1, 0.3)


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """What the bot writes, and the wordings that are right when it is read aloud."""

    written: str
    said: tuple[str, ...]


def spoken_sentences() -> dict[str, tuple[SpokenSentence, ...]]:
    """Return the two halves: `open`, by which the rules for the bot's own voice are chosen, and `apart`."""
    halves = tomllib.loads(TEXTS.read_text("utf-8"))
    return {
        half: tuple(SpokenSentence(each["written"], tuple(each["said"])) for each in listed)
        for half, listed in halves.items()
    }


async def hear_voices(engine: Engine, models: ModelsSettings, progress: Progress) -> dict[str, Json]:
    """Return the figures of each installed voice that speaks English, by its name. Raises `SynthesisError`."""
    installed = ModelDirectory(models.directory)
    english = [each for each in VOICES if each.code == LANGUAGE and (each.model is None or installed.holds(each.model))]
    halves = spoken_sentences()
    progress.step("voices", total=len(english) * sum(map(len, halves.values())))
    return {voice.name: await _hear(voice, engine, models, halves, progress) for voice in english}


async def _hear(
    voice: EmbeddedVoice,
    engine: Engine,
    models: ModelsSettings,
    halves: Mapping[str, Sequence[SpokenSentence]],
    progress: Progress,
) -> dict[str, Json]:
    errors: dict[str, list[WordErrors]] = {half: [] for half in halves}
    cpu_s, audio_s = 0.0, 0.0
    async with open_voice(voice, models.directory, VoiceManner(variety=0.0)) as speaker:
        for half, sentences in halves.items():
            for sentence in sentences:
                heard, sentence_cpu_s, sentence_s = await _say(sentence, speaker, engine)
                cpu_s, audio_s = cpu_s + sentence_cpu_s, audio_s + sentence_s
                errors[half].append(fewest_errors(sentence, heard))
                progress.advance()
    every = sum_word_errors(one for half in errors.values() for one in half)
    count = sum(map(len, errors.values()))
    return {
        "sentences": count,
        "words": every.words,
        "misheard": every.errors,
        "word_error_rate": round(every.rate, 4),
        **{half: round(sum_word_errors(listed).rate, 4) for half, listed in errors.items()},
        "cpu_ms_mean": round(1000 * cpu_s / count, 1),
        "cpu_s_for_1_s": round(cpu_s / audio_s, 4),
    }


async def _say(sentence: SpokenSentence, speaker: EmbeddedSynthesizer, engine: Engine) -> tuple[str, float, float]:
    """Return what is heard of a sentence, the CPU time of saying it, and how many seconds it lasts."""
    spoken = TextNormalizer(language=LANGUAGE).normalize(sentence.written)
    assert spoken is not None
    worked = time.process_time()
    speech = await speaker.synthesize(spoken.aloud)
    cpu_s = time.process_time() - worked
    pcm = resample(speech.pcm, speech.rate_hz, LISTEN_RATE_HZ)
    edges = (round(EDGES_S[0] * LISTEN_RATE_HZ), round(EDGES_S[1] * LISTEN_RATE_HZ))
    heard = await asyncio.to_thread(engine.recognise, RecognitionRequest(np.pad(pcm, edges), LANGUAGE))
    return heard.text, cpu_s, len(speech.pcm) / speech.rate_hz


def fewest_errors(sentence: SpokenSentence, heard: str) -> WordErrors:
    """Return the errors of what was heard against the nearest of the wordings."""
    return min((word_errors(said, heard) for said in sentence.said), key=lambda errors: errors.errors)
