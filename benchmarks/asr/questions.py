"""Short questions with the bot's name, as people ask them: the sentences on which an answer depends most.

Kokoro's English voices say the sentences of `questions.toml` in turn. Each is cut to 0.1 s around the voice and comes
after four silences and in three noises, so 60 questions are 720 sounds. A third of them are what comes through Opus
with lost packets. The voices' recordings are kept in a folder. All else is made anew from a seed.
"""

from __future__ import annotations

import json
import tomllib
import wave
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.asr.discord_path import decoded, lossy
from benchmarks.recordings import MANIFEST, PEOPLE, SYNTHETIC_SOURCE, HeardWords
from benchmarks.synthetic_speech import in_a_room, kokoro_voices, speak_evenly
from bot.brain.settings import BrainSettings
from rehearsal.people.clip import RATE_HZ, opus_packets, read_sound
from voice.asr.glossary import choose_glossary
from voice.audio import LISTEN_RATE_HZ, Pcm
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.asr.ours import RoomTranscriber
    from benchmarks.measuring import Progress
    from benchmarks.report import Json
    from bot.settings import ModelsSettings
    from rehearsal.words import WordErrors

# Where the voices' recordings are kept, from the working directory.
FOLDER = Path("data/questions")
TEXTS = Path(__file__).with_name("questions.toml")
VOICES = ("af_heart", "bm_george", "af_bella", "am_michael", "bf_emma", "am_fenrir")
# Sound that is left around the voice, as after a hard start of push-to-talk.
EDGE_S = 0.1
SILENCES_S = (0.0, 0.1, 0.25, 0.5)
# No noise, the loudest room of the free talk (-58 dBFS), and a fan (-48 dBFS). The voice has -22 dBFS.
NOISES_RMS = (0.0, 41.0, 130.0)
# One in so many sounds comes through Opus with this share of its packets lost.
OPUS_ONE_IN, OPUS_LOSS = 3, 0.05
SEED = 55
# A text is broken if so many words are wrong, or half of them: nobody could answer it.
BROKEN_WORDS, BROKEN_SHARE = 3, 0.5
# Six names.
GLOSSARY = choose_glossary(wake_names=BrainSettings().names, display_names=PEOPLE[:4], words=())


@dataclass(frozen=True, slots=True)
class QuestionSound:
    """One question as the recogniser gets it (mono int16, 16 kHz). `speech_s`: from the first to the last voiced frame.
    `for_tuning`: it belongs to the half from which thresholds may be chosen; each voice is in both halves.
    """

    text: str
    pcm: Pcm
    speech_s: float
    for_tuning: bool


def is_broken(errors: WordErrors) -> bool:
    """Return whether a text with these errors is broken."""
    return errors.errors >= min(BROKEN_WORDS, BROKEN_SHARE * errors.words)


def question_texts() -> tuple[str, ...]:
    """Return what is asked."""
    return tuple(tomllib.loads(TEXTS.read_text("utf-8"))["questions"])


async def make_questions(folder: Path, models: ModelsSettings, progress: Progress) -> None:
    """Write the recordings that `folder` lacks, and its manifest, so that `roomtone bench reply` can ask them too.

    Raises `SynthesisError` if recordings are missing and the voices are not installed.
    """
    texts = question_texts()
    if missing := [number for number in range(len(texts)) if not recording_file(folder, number).exists()]:
        progress.step("voices of the questions", total=len(missing))
        async with AsyncExitStack() as stack:
            voices = await kokoro_voices(stack, models, dict.fromkeys(VOICES, 1.0))
            for number in missing:
                sound = await speak_evenly(voices[VOICES[number % len(VOICES)]], texts[number])
                write_recording(recording_file(folder, number), sound)
                progress.advance()
    listed = [
        {
            "file": recording_file(folder, number).name,
            "speaker": VOICES[number % len(VOICES)],
            "text": text,
            "source": SYNTHETIC_SOURCE,
            "addressed": True,
        }
        for number, text in enumerate(texts)
    ]
    (folder / MANIFEST).write_text(json.dumps(listed, indent=1) + "\n", "utf-8")


def question_sounds(folder: Path) -> Iterator[QuestionSound]:
    """Yield the sounds of the recordings in `folder`. Blocks. The same packets are lost each time."""
    for number, text in enumerate(question_texts()):
        voice = read_sound(recording_file(folder, number))
        for variant, (silence_s, noise_rms) in enumerate(product(SILENCES_S, NOISES_RMS)):
            seed = [SEED, number, variant]
            edges = (round((silence_s + EDGE_S) * RATE_HZ), round(EDGE_S * RATE_HZ))
            pcm = in_a_room(np.pad(voice, edges), noise_rms, seed)
            if (number + variant) % OPUS_ONE_IN == 0:
                heard = decoded(lossy(opus_packets(pcm), loss=OPUS_LOSS, seed=1000 * number + variant))
            else:
                heard = resample(pcm, RATE_HZ, LISTEN_RATE_HZ)
            for_tuning = number // len(VOICES) % 2 == 0
            yield QuestionSound(text, heard, len(voice) / RATE_HZ, for_tuning)


async def ask_questions(ours: RoomTranscriber, sounds: Sequence[QuestionSound], progress: Progress) -> dict[str, Json]:
    """Recognise all sounds. Returns the figures of all of them, and of each half."""
    progress.step("questions", total=len(sounds))
    halves = {"tuning": HeardWords(), "judging": HeardWords()}
    every = HeardWords()
    for sound in sounds:
        heard = await ours.transcribe(sound.pcm, speech_s=sound.speech_s)
        for words in (every, halves["tuning" if sound.for_tuning else "judging"]):
            words.add(sound.text, heard)
        progress.advance()
    return {
        **every.figures(),
        "broken": _broken(every),
        "cpu_ms_mean": round(1000 * ours.cpu_s / len(sounds), 1),
        "first_hearing_cpu_ms_mean": round(1000 * ours.first_cpu_s / len(sounds), 1),
        "cpu_beside_first_hearing": round(ours.cpu_s / ours.first_cpu_s, 3),
        "heard_again": dict(ours.again),
        "dropped_by_guards": dict(ours.dropped),
        **{
            half: {"recordings": len(words.errors), "broken": _broken(words), "word_error_rate": round(words.rate, 4)}
            for half, words in halves.items()
        },
    }


def _broken(words: HeardWords) -> int:
    return sum(map(is_broken, words.errors))


def recording_file(folder: Path, number: int) -> Path:
    """Return the file of what a voice says of a question."""
    return folder / f"{number:02}-{VOICES[number % len(VOICES)]}.wav"


def write_recording(file: Path, sound: Pcm) -> None:
    """Write 48 kHz mono sound. Blocks."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(file), "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE_HZ)
        writer.writeframes(sound.astype("<i2").tobytes())
