"""Makes recordings of free talk with pauses inside: `python -m benchmarks.endpoint.free_talk DIR`.

Ten synthetic voices say the sentences of `talks/*.toml`. At their pauses is silence with a little room noise, as long
as people's pauses are. Each utterance is synthesised as a whole, so that the voice before a pause sounds as if it went
on, and is then cut at its pauses (`alignment`). The set for tuning has one voice of Piper at five pitches, the set that
decides has five voices of Kokoro, so that nothing learnt from an engine's manner helps. The price of synthetic talk is
that nobody draws breath, and that intonation is a model's.

The same seed gives the same pauses and noise. DIR then has a folder for each set with a manifest, as `--speech` reads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tomllib
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.endpoint.alignment import cut_points
from benchmarks.progress import NoProgress
from benchmarks.recordings import SYNTHETIC_SOURCE
from bot.models.catalogue import VOICE_JOE, VOICE_KOKORO
from bot.models.directory import ModelDirectory
from config.load import load
from rehearsal.people.clip import FRAME_SAMPLES, RATE_HZ, encode_ogg, frame_rms, voiced_bounds
from voice.errors import SynthesisError
from voice.speaking.kokoro import KokoroModel, KokoroStyle
from voice.speaking.piper import PiperSynthesizer
from voice.speaking.port import synthesize_all
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.progress import Progress
    from bot.settings import ModelsSettings
    from voice.audio import Pcm
    from voice.speaking.kokoro import KokoroLanguage
    from voice.speaking.port import Synthesizer

TALKS = Path(__file__).parent / "talks"
SEED = 15
# The length of pauses within a turn: lognormal, from 0.2 s (shorter ones belong to articulation) to 2.5 s. Silent
# pauses of free speech fall into brief (under 0.2 s), medium (0.2 to 1 s) and long ones (over 1 s), and the logarithms
# of their lengths are near normal (Campione and Véronis 2002, 'A large-scale multilingual study of silent pause
# duration', 6,000 pauses). A typical one takes a quarter to half a second (Lundholm Fors 2015, 'Production and
# perception of pauses in speech'). With this median and spread 9 % are over a second.
PAUSE_MEDIAN_S = 0.45
PAUSE_SIGMA = 0.6
PAUSE_SHORTEST_S, PAUSE_LONGEST_S = 0.2, 2.5
# People differ: the median of each voice is the common one times a lognormal factor with this spread.
PERSON_SIGMA = 0.2
# Voiced frames get -22 dBFS. The room is at -66 to -58 dBFS, so that a pause is not digital silence.
SPEECH_RMS = 2600.0
NOISE_RMS = (16.0, 41.0)
# How much of a room's noise stays from one sample to the next: most of its power is below 1 kHz.
NOISE_MEMORY = 0.97
LEAD_S, TAIL_S = 0.3, 0.3
FADE_S = 0.01
# A busy machine may need longer for a piece than the voice allows for a sentence that somebody waits for.
ATTEMPTS = 4
# The pitches of Piper's voice, by the names in the manifest. Speed makes up for the change of tempo.
PITCHES: Mapping[str, float] = {"joe": 1.0, "joe-deep": 0.86, "joe-low": 0.93, "joe-high": 1.08, "joe-bright": 1.16}


class TalkSet(StrEnum):
    """The set for choosing coefficients, and the set that decides."""

    TUNING = "tuning"
    JUDGING = "judging"


# The last two of Kokoro's voices have a Spanish and an Italian accent.
VOICES: Mapping[TalkSet, tuple[str, ...]] = {
    TalkSet.TUNING: tuple(PITCHES),
    TalkSet.JUDGING: ("af_bella", "am_michael", "bf_emma", "ef_dora", "if_sara"),
}


@dataclass(frozen=True, slots=True)
class TalkLine:
    """One utterance to make. `pieces`: the texts between its pauses. `pauses_s`: their lengths, one fewer."""

    voice: str
    pieces: tuple[str, ...]
    pauses_s: tuple[float, ...]
    noise_rms: float
    speed: float

    @property
    def text(self) -> str:
        """Return all that is said."""
        return " ".join(self.pieces)


def talk_lines(part: TalkSet, *, seed: int = SEED) -> tuple[TalkLine, ...]:
    """Return the utterances of a set with their pauses drawn. The same seed gives the same pauses."""
    texts: list[str] = tomllib.loads((TALKS / f"{part}.toml").read_text("utf-8"))["talks"]
    draw = np.random.default_rng([seed, list(TalkSet).index(part)])
    voices = VOICES[part]
    medians = {voice: PAUSE_MEDIAN_S * float(draw.lognormal(0.0, PERSON_SIGMA)) for voice in voices}
    noises = {voice: float(draw.uniform(*NOISE_RMS)) for voice in voices}
    speeds = {voice: float(draw.uniform(0.92, 1.12)) for voice in voices}
    lines = []
    for number, text in enumerate(texts):
        voice = voices[number % len(voices)]
        pieces = tuple(piece.strip() for piece in text.split("|"))
        pauses = tuple(_draw_pause_s(draw, medians[voice]) for _ in pieces[1:])
        lines.append(TalkLine(voice, pieces, pauses, noises[voice], speeds[voice]))
    return tuple(lines)


def _draw_pause_s(draw: np.random.Generator, median_s: float) -> float:
    while True:
        length_s = float(draw.lognormal(np.log(median_s), PAUSE_SIGMA))
        if PAUSE_SHORTEST_S <= length_s <= PAUSE_LONGEST_S:
            return round(length_s, 3)


async def make_free_talk(
    folder: Path, models: ModelsSettings, progress: Progress, *, parts: Sequence[TalkSet] = tuple(TalkSet)
) -> None:
    """Write the recordings of these sets into `folder`. Raises `SynthesisError` if a voice is missing."""
    async with AsyncExitStack() as stack:
        for part in parts:
            lines = talk_lines(part)
            speeds = {line.voice: line.speed for line in lines}
            speakers = await _open_voices(stack, ModelDirectory(models.directory), part, speeds)
            progress.step(f"free talk, {part}", total=len(lines))
            target = folder / part
            target.mkdir(parents=True, exist_ok=True)
            manifest = []
            for number, line in enumerate(lines):
                voice = speakers[line.voice]
                pitch = PITCHES.get(line.voice, 1.0)
                whole = await speak_evenly(voice, line.text, pitch)
                alone = [await speak_evenly(voice, piece, pitch) for piece in line.pieces] if line.pauses_s else [whole]
                sound = assemble(cut_at_pauses(whole, alone), line, seed=[SEED, number])
                name = f"{part}-{number:02}.ogg"
                (target / name).write_bytes(encode_ogg(iter([sound])))
                manifest.append(
                    {
                        "file": name,
                        "speaker": line.voice,
                        "text": line.text,
                        "duration": round(len(sound) / RATE_HZ, 3),
                        "pauses_s": list(line.pauses_s),
                        "source": f"{SYNTHETIC_SOURCE}, benchmarks/endpoint/talks/{part}.toml, seed {SEED}",
                    }
                )
                progress.advance()
            (target / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", "utf-8")


def cut_at_pauses(whole: Pcm, alone: Sequence[Pcm]) -> list[Pcm]:
    """Return the pieces of `whole`, each trimmed to its voice. `alone`: the same pieces, spoken one by one."""
    if len(alone) == 1:
        return [whole]
    cuts = [0, *cut_points(whole, alone, RATE_HZ), len(whole)]
    return [_trimmed(whole[start:end]) for start, end in pairwise(cuts) if end > start]


def assemble(spoken: list[Pcm], line: TalkLine, *, seed: list[int]) -> Pcm:
    """Return the pieces (48 kHz mono, trimmed to their voice) with the pauses of `line` and the noise of its room."""
    parts = [np.zeros(round(LEAD_S * RATE_HZ), np.int16)]
    for piece, pause_s in zip(spoken, (*line.pauses_s, TAIL_S), strict=True):
        parts += [piece, np.zeros(round(pause_s * RATE_HZ), np.int16)]
    sound = np.concatenate(parts).astype(np.float64)
    noisy = sound + room_noise(len(sound), line.noise_rms, seed)
    return np.clip(np.rint(noisy), -32768, 32767).astype(np.int16)


def room_noise(samples: int, rms: float, seed: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return noise at 48 kHz whose power is mostly below 1 kHz. The same seed gives the same noise."""
    white = np.random.default_rng(seed).normal(0.0, 1.0, samples)
    spectrum = np.fft.rfft(white)
    turn = np.exp(-1j * np.linspace(0.0, np.pi, len(spectrum)))
    noise = np.fft.irfft(spectrum / (1 - NOISE_MEMORY * turn), samples)
    return np.asarray(noise * (rms / np.sqrt(np.mean(noise**2))))


async def _open_voices(
    stack: AsyncExitStack, directory: ModelDirectory, part: TalkSet, speeds: Mapping[str, float]
) -> dict[str, Synthesizer]:
    """Return the voices of a set by name."""
    if part is TalkSet.TUNING:
        # Without variety a voice says the same words in the same way each time.
        return {
            name: await stack.enter_async_context(
                PiperSynthesizer.open(directory.path(VOICE_JOE), speed=speeds[name] / pitch, variety=0.0)
            )
            for name, pitch in PITCHES.items()
        }
    kokoro = await stack.enter_async_context(KokoroModel.open(directory.path(VOICE_KOKORO)))
    return {
        name: await kokoro.voice(KokoroStyle(f"{name}.bin", _language(name)), speed=speed)
        for name, speed in speeds.items()
    }


async def speak_evenly(voice: Synthesizer, text: str, pitch: float = 1.0) -> Pcm:
    """Return a text as sound at 48 kHz and the common level, trimmed to its voice. Raises `SynthesisError`."""
    for attempt in range(ATTEMPTS):
        try:
            speech = await synthesize_all(voice, text)
            break
        except SynthesisError:
            if attempt == ATTEMPTS - 1:
                raise
    pcm = _trimmed(resample(speech.pcm, round(speech.rate_hz * pitch), RATE_HZ))
    rms = frame_rms(pcm, FRAME_SAMPLES)
    loud = float(np.sqrt(np.mean(rms[rms > 0.1 * rms.max()] ** 2)))
    levelled = pcm.astype(np.float64) * (SPEECH_RMS / loud)
    return np.clip(np.rint(levelled), -32768, 32767).astype(np.int16)


def _trimmed(pcm: Pcm) -> Pcm:
    """Return `pcm` without the silence around its voice, faded at both ends so that a cut does not click."""
    bounds = voiced_bounds(pcm, FRAME_SAMPLES)
    if bounds is None:
        raise LookupError("a voice was silent where it should have spoken")
    kept = pcm[bounds.first * FRAME_SAMPLES : (bounds.last + 1) * FRAME_SAMPLES].astype(np.float64)
    fade = np.linspace(0.0, 1.0, round(FADE_S * RATE_HZ))
    kept[: len(fade)] *= fade
    kept[-len(fade) :] *= fade[::-1]
    return np.rint(kept).astype(np.int16)


def _language(voice: str) -> KokoroLanguage:
    return "en-gb-x-rp" if voice.startswith("b") else "en-us"


def main() -> None:
    """Make both sets in a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    asyncio.run(make_free_talk(parser.parse_args().folder, load().models, NoProgress()))


if __name__ == "__main__":
    main()
