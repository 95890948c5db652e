"""`roomtone bench asr`: what the recogniser mishears and what it costs. This module only runs the parts and adds up."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.asr.discord_path import DiscordPath, lossy
from benchmarks.asr.ours import RoomTranscriber
from benchmarks.asr.questions import FOLDER, GLOSSARY, ask_questions, make_questions, question_sounds
from benchmarks.asr.voices import hear_voices
from benchmarks.figures import number_at, sample_at
from benchmarks.measuring import Measuring, Progress, measuring
from benchmarks.recordings import HeardWords, SpeechRecording, load_recordings
from benchmarks.report import BenchmarkReport, Json, Target, at_most
from bot.models.directory import whisper_folder
from bot.models.voices import DEFAULT_VOICE
from config.load import load
from rehearsal.people.clip import Clip, read_sound
from voice.asr.whisper import engine_on_best_device
from voice.audio import DISCORD_RATE_HZ, LISTEN_RATE_HZ, Pcm, duration_s
from voice.errors import SynthesisError
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bot.settings import ModelsSettings
    from voice.asr.worker import Engine

_SYNTHETIC = (
    "Synthetic voices speak these recordings, from the very words that they are compared with. They are easier to "
    "understand than people."
)
# About a point more than faster-whisper's defaults make of the 89 real recordings (docs/benchmarks.md).
_WORD_ERROR_RATE = 0.08


@dataclass(frozen=True, slots=True)
class AsrBenchOptions:
    """The options of one run. The defaults are a full run.

    `speech`: a folder of real recordings with a manifest.json; None: the audio of the bundled scenarios. `recordings`:
    how many are recognised; 0 means all. `loss`: the share of packets that is lost (0-1). `questions_dir` keeps what
    the voices of the short questions say. `only`: the parts to measure; empty means all.
    """

    speech: Path | None = None
    recordings: int = 0
    language: str = "en"
    loss: float = 0.05
    questions_dir: Path = FOLDER
    only: tuple[str, ...] = ()


async def run(
    options: AsrBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] = lambda _: None
) -> BenchmarkReport:
    """Measure the chosen parts. `on_part` gets the unfinished report after each part.

    Raises `ScenarioError` for a folder without a manifest, and the bot's own errors if one of its models is missing.
    """
    with measuring("asr", asr_targets, progress, on_part, options.only) as found:
        settings = load()
        engine = await asyncio.to_thread(
            engine_on_best_device(whisper_folder(settings.models, settings.asr), settings.asr).load
        )
        if found.wants("questions"):
            await _questions(found, options, engine, settings.models)
        if found.wants("voices"):
            found.part_measured("voices", await hear_voices(engine, settings.models, found.progress))
        said = load_recordings(options.speech)
        if not said.real and (found.wants("alone") or found.wants("opus")):
            found.remark(_SYNTHETIC)
        recordings = said.some(options.recordings)
        if found.wants("alone"):
            await _recordings(found, "alone", options, engine, recordings)
        if found.wants("opus"):
            path = await asyncio.to_thread(DiscordPath, settings.models)
            await _recordings(found, "opus", options, engine, recordings, path)
    return found.report()


async def _recordings(
    found: Measuring,
    name: str,
    options: AsrBenchOptions,
    engine: Engine,
    recordings: Sequence[SpeechRecording],
    path: DiscordPath | None = None,
) -> None:
    """Recognise every recording as a room does: as it is, or what `path` makes of it."""
    found.progress.step(name, total=len(recordings))
    ours = RoomTranscriber(engine, options.language)
    words, cut = HeardWords(), Counter[str]()
    audio_s = 0.0
    for recording in recordings:
        pieces, dropped = await asyncio.to_thread(_sounds, recording, path, options.loss)
        cut.update(dropped)
        heard = [await ours.transcribe(piece, speech_s=speech_s) for piece, speech_s in pieces]
        words.add(recording.text, " ".join(filter(None, heard)))
        audio_s += sum(duration_s(piece) for piece, _ in pieces)
        found.progress.advance()
    figures: dict[str, Json] = {
        **words.figures(),
        "cpu_s_for_1_s": round(ours.cpu_s / audio_s, 4) if audio_s else None,
        "dropped_by_guards": dict(ours.dropped),
        "dropped_by_endpointing": dict(cut),
        "heard_again": dict(ours.again),
    }
    found.part_measured(name, figures)


def _sounds(
    recording: SpeechRecording, path: DiscordPath | None, loss: float
) -> tuple[list[tuple[Pcm, float]], list[str]]:
    """Return a recording's utterances with their seconds of speech, and what endpointing dropped. Blocks."""
    if path is None:
        pcm = resample(read_sound(recording.path), DISCORD_RATE_HZ, LISTEN_RATE_HZ)
        return [(pcm, duration_s(pcm))], []
    # The same packets are lost in every run.
    seed = zlib.crc32(recording.path.name.encode())
    heard = path.hear(lossy(Clip.load(recording.path).packets, loss=loss, seed=seed))
    pieces = [(one.pcm, one.ended_at - one.started_at) for one in heard.utterances]
    return pieces, [reason.value for reason in heard.dropped]


async def _questions(found: Measuring, options: AsrBenchOptions, engine: Engine, models: ModelsSettings) -> None:
    """Ask the short questions, and count the texts that nobody could answer."""
    try:
        await make_questions(options.questions_dir, models, found.progress)
    except SynthesisError as error:
        found.remark(f"The questions were not asked. {error} `roomtone models pull voice-kokoro` brings the voices.")
        return
    sounds = await asyncio.to_thread(lambda: list(question_sounds(options.questions_dir)))
    ours = RoomTranscriber(engine, options.language, GLOSSARY)
    found.part_measured("questions", await ask_questions(ours, sounds, found.progress))


def _beside_joe(ours: Mapping[str, Json]) -> float | None:
    own, joe = (number_at(ours, "voices", name, "misheard") for name in (DEFAULT_VOICE.name, "joe"))
    return None if own is None or not joe else round(own / joe, 3)


def asr_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""

    def of_questions(words: str, goal: str, name: str, most: float) -> Target:
        sample = sample_at(ours, "sounds of synthetic voices", "questions", "recordings")
        return at_most(words, goal, number_at(ours, "questions", name), most, sample)

    return (
        at_most(
            "word error rate of recordings, alone",
            "<= 8 %",
            number_at(ours, "alone", "word_error_rate"),
            _WORD_ERROR_RATE,
            sample_at(ours, "recordings", "alone", "recordings"),
        ),
        at_most(
            "recordings without any text, through Opus with loss",
            "0",
            number_at(ours, "opus", "without_text"),
            0,
            sample_at(ours, "recordings", "opus", "recordings"),
        ),
        of_questions("broken texts of short questions", "0", "broken", 0),
        of_questions("word error rate of short questions", "<= 2.5 %", "word_error_rate", 0.025),
        of_questions(
            "CPU time of short questions beside their first hearing alone", "<= 1.6", "cpu_beside_first_hearing", 1.6
        ),
        at_most(
            "words misheard of the bot's own voice, beside Joe of Piper",
            "<= 1",
            _beside_joe(ours),
            1.0,
            sample_at(ours, "sentences", "voices", DEFAULT_VOICE.name, "sentences"),
        ),
    )
