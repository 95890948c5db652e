"""Makes recordings of free talk with pauses inside: `python -m benchmarks.endpoint.free_talk DIR`.

Ten synthetic voices say the sentences of `talks/*.toml`. At their pauses is silence with a little room noise, as long
as people's pauses are. Each utterance is synthesised as a whole, so that the voice before a pause sounds as if it went
on, and is then cut at its pauses. The same voice also says each piece alone, so dynamic time warping over spectra finds
where a piece ends in the whole; the cut is put at the quietest place near it. The set for tuning has one voice of Piper
at five pitches, the set that decides has five voices of Kokoro, so that nothing learnt from an engine's manner helps.
The price of synthetic talk is that nobody draws breath, and that intonation is a model's.

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

from benchmarks.recordings import SYNTHETIC_SOURCE
from benchmarks.synthetic_speech import in_a_room, kokoro_voices, speak_evenly, trimmed
from bot.models.voices import find_voice
from config.load import load
from rehearsal.people.clip import RATE_HZ, encode_ogg
from voice.speaking.embedded import EmbeddedModel, VoiceManner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from bot.settings import ModelsSettings
    from voice.audio import Pcm
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
# The room is at -66 to -58 dBFS, and voiced frames at -22, so that a pause is not digital silence.
NOISE_RMS = (16.0, 41.0)
LEAD_S, TAIL_S = 0.3, 0.3
# The pitches of Piper's voice, by the names in the manifest. Speed makes up for the change of tempo.
PITCHES: Mapping[str, float] = {"joe": 1.0, "joe-deep": 0.86, "joe-low": 0.93, "joe-high": 1.08, "joe-bright": 1.16}
# A spectrum every 20 ms over 40 ms, in bands of equal width in pitch.
STEP_S, SPAN_S = 0.02, 0.04
BANDS = 24
LOWEST_HZ, HIGHEST_HZ = 100.0, 7_000.0
# A cut is at most this far from where the comparison puts it.
NEAR_S = 0.08


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


async def make_free_talk(folder: Path, models: ModelsSettings) -> None:
    """Write the recordings of both sets into `folder`. Raises `SynthesisError` if a voice is missing."""
    async with AsyncExitStack() as stack:
        for part in TalkSet:
            lines = talk_lines(part)
            speeds = {line.voice: line.speed for line in lines}
            speakers = await _open_voices(stack, models, part, speeds)
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
                        # As by somebody who is alone with the bot.
                        "addressed": True,
                    }
                )
            (target / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", "utf-8")


def cut_at_pauses(whole: Pcm, alone: Sequence[Pcm]) -> list[Pcm]:
    """Return the pieces of `whole`, each trimmed to its voice. `alone`: the same pieces, spoken one by one."""
    if len(alone) == 1:
        return [whole]
    cuts = [0, *cut_points(whole, alone, RATE_HZ), len(whole)]
    return [trimmed(whole[start:end]) for start, end in pairwise(cuts) if end > start]


def assemble(spoken: list[Pcm], line: TalkLine, *, seed: list[int]) -> Pcm:
    """Return the pieces (48 kHz mono, trimmed to their voice) with the pauses of `line` and the noise of its room."""
    parts = [np.zeros(round(LEAD_S * RATE_HZ), np.int16)]
    for piece, pause_s in zip(spoken, (*line.pauses_s, TAIL_S), strict=True):
        parts += [piece, np.zeros(round(pause_s * RATE_HZ), np.int16)]
    return in_a_room(np.concatenate(parts), line.noise_rms, seed)


async def _open_voices(
    stack: AsyncExitStack, models: ModelsSettings, part: TalkSet, speeds: Mapping[str, float]
) -> dict[str, Synthesizer]:
    """Return the voices of a set by name."""
    if part is TalkSet.JUDGING:
        return await kokoro_voices(stack, models, speeds)
    joe = find_voice("joe")
    assert joe is not None
    model = await stack.enter_async_context(EmbeddedModel.open(joe.engine, joe.folder(models.directory)))
    # Without variety a voice says the same words in the same way each time.
    return {
        name: await model.voice(manner=VoiceManner(speeds[name] / pitch, variety=0.0))
        for name, pitch in PITCHES.items()
    }


def cut_points(whole: Pcm, pieces: Sequence[Pcm], rate_hz: int) -> list[int]:
    """Return the sample of `whole` at which each piece but the last ends, in order."""
    alone = [_spectra(piece, rate_hz) for piece in pieces]
    heard = _spectra(whole, rate_hz)
    ends = np.cumsum([len(each) for each in alone])[:-1]
    matched = _warp(np.concatenate(alone), heard)
    loudness = heard.mean(axis=1)
    near = round(NEAR_S / STEP_S)
    cuts: list[int] = []
    for end in ends:
        at = int(matched[end])
        low = max(at - near, 1)
        quietest = low + int(np.argmin(loudness[low : at + near + 1]))
        cuts.append(round(quietest * STEP_S * rate_hz))
    return cuts


def _spectra(pcm: Pcm, rate_hz: int) -> NDArray[np.float64]:
    """Return the log energy of each band, shape (steps, BANDS), less its mean over the sound."""
    step, span = round(STEP_S * rate_hz), round(SPAN_S * rate_hz)
    padded = np.pad(pcm.astype(np.float64), (0, span))
    frames = np.lib.stride_tricks.sliding_window_view(padded, span)[::step] * np.hanning(span)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    hz = np.fft.rfftfreq(span, 1 / rate_hz)
    edges = np.geomspace(LOWEST_HZ, HIGHEST_HZ, BANDS + 1)
    bands = [power[:, (hz >= low) & (hz < max(high, low + 1.5 / SPAN_S))].sum(axis=1) for low, high in pairwise(edges)]
    return np.log(np.stack(bands, axis=1) + 1e4)


def _warp(alone: NDArray[np.float64], heard: NDArray[np.float64]) -> NDArray[np.int_]:
    """Return for each step of `alone` the step of `heard` that it corresponds to."""
    distance = np.sqrt(((alone[:, None, :] - heard[None, :, :]) ** 2).sum(axis=2))
    rows, columns = distance.shape
    cost = np.full((rows + 1, columns + 1), np.inf)
    cost[0, 0] = 0.0
    # Along a diagonal from the lower left to the upper right, no cell depends on another.
    for diagonal in range(rows + columns - 1):
        row = np.arange(max(0, diagonal - columns + 1), min(rows, diagonal + 1))
        column = diagonal - row
        best = np.minimum(np.minimum(cost[row, column], cost[row, column + 1]), cost[row + 1, column])
        cost[row + 1, column + 1] = distance[row, column] + best
    matched = np.zeros(rows, np.int_)
    at, to = rows, columns
    while at > 0 and to > 0:
        matched[at - 1] = to - 1
        move = int(np.argmin((cost[at - 1, to - 1], cost[at - 1, to], cost[at, to - 1])))
        at, to = (at - 1, to - 1) if move == 0 else (at - 1, to) if move == 1 else (at, to - 1)
    return matched


def main() -> None:
    """Make both sets in a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    asyncio.run(make_free_talk(parser.parse_args().folder, load().models))


if __name__ == "__main__":
    main()
