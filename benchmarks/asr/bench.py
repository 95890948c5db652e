"""`roomtone bench asr`: word errors, CPU time and delay of the recogniser, beside other recognisers.

This module only runs the parts and adds up. Every recording goes through all recognisers before the next one, so that
they are measured under the same load of the machine.
"""

from __future__ import annotations

import asyncio
import tempfile
import zlib
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.asr.company import SpokenSound, measure_company
from benchmarks.asr.discord_path import DiscordPath, lossy
from benchmarks.asr.options import OTHERS
from benchmarks.asr.ours import MeasuredText, RoomTranscriber
from benchmarks.asr.peers import PeerRecogniser, open_peer, whisper_cpp
from benchmarks.asr.questions import GLOSSARY, ask_questions, make_questions, question_sounds
from benchmarks.asr.tally import Tally, count_at, ratio_at
from benchmarks.disabled_logging import logging_disabled
from benchmarks.errors import ModelFormatError, PeerError
from benchmarks.figures import few, number_at, sample_at
from benchmarks.measuring import Measuring
from benchmarks.reply.recordings import load_recordings
from benchmarks.report import BenchmarkReport, Target, at_most
from config.load import load
from rehearsal.people.clip import Clip, read_sound
from voice.asr.whisper import WhisperEngine, whisper_on_best_device
from voice.audio import DISCORD_RATE_HZ, LISTEN_RATE_HZ, duration_s
from voice.errors import SynthesisError
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.asr.options import AsrBenchOptions
    from benchmarks.asr.peers import PeerTranscriber
    from benchmarks.progress import Progress
    from benchmarks.reply.recordings import SpeechRecording
    from benchmarks.report import Json
    from config.schema import Settings
    from voice.asr.worker import Engine
    from voice.audio import Pcm

OURS = "roomtone"
_DEFAULTS, _BATCHED, _WHISPER_CPP = OTHERS
PEOPLE = (2, 4)
# The CPU time is compared for utterances of about the length that people's have.
TYPICAL_S = (6.0, 9.0)
_GLOSSARY = (
    "Roomtone recognises with the glossary of a room of four people, because a room always has one; the others have "
    "their defaults, so none."
)

_BUNDLED = "No manifest was named, so the bundled recordings were used: three synthetic voices."
_SYNTHETIC = (
    "Synthetic voices speak these recordings, from the very words that they are compared with. They are easier to "
    "understand than people, so the word errors compare recognisers and tell nobody how well people are understood."
)


async def run(
    options: AsrBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Measure the chosen parts. `on_part` gets the unfinished report after each part.

    Raises `ScenarioError` for a folder without a manifest, and the bot's own errors if one of its models is missing.
    """
    recordings = load_recordings(options.folder)
    measuring = _Measuring(
        options=options,
        progress=progress,
        on_part=on_part,
        settings=load(),
        recordings=recordings.some(options.recordings),
        real=recordings.real,
    )
    if not recordings.real:
        measuring.remark(_BUNDLED if options.folder is None else _SYNTHETIC)
    measuring.remark(_GLOSSARY)
    measuring.remark_if_busy()
    with logging_disabled(), tempfile.TemporaryDirectory(prefix="roomtone-asr-") as folder:
        await measuring.all_parts(Path(folder))
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "asr"

    options: AsrBenchOptions
    settings: Settings
    recordings: Sequence[SpeechRecording]
    real: bool = True
    tallies: dict[str, dict[str, Tally]] = field(default_factory=dict)

    async def all_parts(self, folder: Path) -> None:
        """Measure the chosen parts one after the other."""
        options, asr = self.options, self.settings.asr
        async with AsyncExitStack() as stack:
            peers: list[PeerTranscriber] = []
            if options.peers and (options.wants("alone") or options.wants("opus")):
                peers = await self._open_peers(stack, folder)
            engine = await asyncio.to_thread(lambda: WhisperEngine(asr))
            if options.wants("questions"):
                await self._questions(engine)
            if options.wants("alone"):
                await self._part("alone", RoomTranscriber(engine, options.language), peers, path=None)
            if options.wants("opus"):
                path = await asyncio.to_thread(
                    partial(DiscordPath, self.settings.models, engine, language=options.language)
                )
                await self._part("opus", RoomTranscriber(engine, options.language), peers, path=path)
        if options.wants("company"):
            del engine
            await self._company()

    async def _open_peers(self, stack: AsyncExitStack, folder: Path) -> list[PeerTranscriber]:
        options, model = self.options, self.settings.asr.model_dir
        peers_dir = options.peers_dir or folder
        wanted = [PeerRecogniser(name, model) for name in (_DEFAULTS, _BATCHED) if name in options.peers]
        if _WHISPER_CPP in options.peers:
            try:
                wanted.append(await asyncio.to_thread(whisper_cpp, model, ggml=options.ggml, keep_in=peers_dir))
            except ModelFormatError as error:
                self.remark(f"whisper.cpp was not measured. {error}")
        opened: list[PeerTranscriber] = []
        for peer in wanted:
            try:
                one = await stack.enter_async_context(
                    open_peer(
                        peer,
                        folder=folder,
                        peers_dir=peers_dir,
                        language=options.language,
                        threads=self.settings.asr.cpu_threads,
                        progress=self.progress,
                    )
                )
            except PeerError as error:
                self.remark(str(error))
                continue
            if peer.remark:
                self.remark(peer.remark)
            self.peers[one.name] = {"version": one.version, "settings": one.settings}
            opened.append(one)
        return opened

    async def _part(
        self, name: str, ours: RoomTranscriber, peers: list[PeerTranscriber], *, path: DiscordPath | None
    ) -> None:
        """Let everybody recognise every recording: as it is, or what `path` makes of it. Removes peers that fail."""
        self.progress.step(name, total=len(self.recordings))
        tallies = self.tallies[name] = {OURS: Tally(), **{peer.name: Tally() for peer in peers}}
        cut: dict[str, int] = {}
        for recording in self.recordings:
            pcm, pieces, dropped = await asyncio.to_thread(self._sounds, recording, path)
            for reason in dropped:
                cut[reason] = cut.get(reason, 0) + 1
            found = [await ours.transcribe(piece, speech_s=speech_s) for piece, speech_s in pieces]
            tallies[OURS].add(recording.text, _joined(found), duration_s(pcm))
            for peer in tuple(peers):
                try:
                    theirs = await peer.transcribe(pcm)
                except PeerError as error:
                    # Figures of half the recordings would be compared with ours of all.
                    self.remark(f"{error} It was left out.")
                    peers.remove(peer)
                    del tallies[peer.name]
                    continue
                tallies[peer.name].add(recording.text, theirs, duration_s(pcm))
            self.progress.advance()
        self.ours[name] = {
            **tallies[OURS].figures(),
            "dropped_by_guards": dict(ours.dropped),
            "dropped_by_endpointing": dict(cut),
            "heard_again": dict(ours.again),
        }
        for peer in peers:
            entry = self.peers[peer.name]
            assert isinstance(entry, dict)
            entry[name] = tallies[peer.name].figures()
        self.part_done()

    def _sounds(
        self, recording: SpeechRecording, path: DiscordPath | None
    ) -> tuple[Pcm, list[tuple[Pcm, float]], list[str]]:
        """Return the whole sound, its utterances with their seconds of speech, and what endpointing dropped."""
        if path is None:
            pcm = _listened(recording.path)
            return pcm, [(pcm, duration_s(pcm))], []
        # The same packets are lost in every run.
        seed = zlib.crc32(recording.path.name.encode())
        heard = path.hear(lossy(Clip.load(recording.path).packets, loss=self.options.loss, seed=seed))
        pieces = [(one.pcm, one.ended_at - one.started_at) for one in heard.utterances]
        return heard.sound, pieces, [reason.value for reason in heard.dropped]

    async def _questions(self, engine: Engine) -> None:
        """Ask the short questions, and count the texts that nobody could answer."""
        try:
            await make_questions(self.options.questions_dir, self.settings.models, self.progress)
        except SynthesisError as error:
            self.remark(f"The questions were not asked. {error} `roomtone models pull voice-kokoro` brings the voices.")
            return
        sounds = await asyncio.to_thread(lambda: list(question_sounds(self.options.questions_dir)))
        ours = RoomTranscriber(engine, self.options.language, GLOSSARY)
        self.ours["questions"] = await ask_questions(ours, sounds, self.progress)
        self.part_done()

    async def _company(self) -> None:
        chosen = load_recordings(self.options.folder).some(self.options.company_recordings)
        said = [SpokenSound(one.text, await asyncio.to_thread(_listened, one.path)) for one in chosen]
        for people in PEOPLE:
            self.ours[f"{people} people"] = await measure_company(
                whisper_on_best_device(self.settings.asr).load,
                said,
                people=people,
                language=self.options.language,
                progress=self.progress,
            )
            self.part_done()

    def targets(self) -> tuple[Target, ...]:
        return asr_targets(self.ours, self.tallies, real=self.real)


def asr_targets(
    ours: Mapping[str, Json], tallies: Mapping[str, Mapping[str, Tally]], *, real: bool = True
) -> tuple[Target, ...]:
    """Return the targets of the recogniser. `tallies`: of each part, what each recogniser made of the recordings.
    `real`: people spoke them.
    """
    alone, opus = tallies.get("alone", {}), tallies.get("opus", {})
    share = ratio_at(alone[OURS], alone[_DEFAULTS], *TYPICAL_S) if _DEFAULTS in alone else None
    typical = count_at(alone[OURS], *TYPICAL_S) if alone else 0
    return (
        _against_defaults("alone", alone, real),
        _against_defaults("through Opus with loss", opus, real),
        at_most(
            f"CPU time beside the defaults, {TYPICAL_S[0]:g}-{TYPICAL_S[1]:g} s of speech",
            "<= 1/6",
            share,
            1 / 6,
            _sample(typical, real),
        ),
        at_most(
            "recordings without any text, through Opus with loss",
            "0",
            opus[OURS].words.lost if opus else None,
            0,
            _sample(_count(opus), real),
        ),
        at_most(
            "end certain to text, four people at once, P95 ms",
            "<= 600 ms",
            number_at(ours, "4 people", "end_certain_to_text_ms", "p95"),
            600,
            sample_at(ours, "utterances", "4 people", "end_certain_to_text_ms", "count"),
        ),
        *_question_targets(ours),
    )


def _question_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    sample = sample_at(ours, "sounds of synthetic voices", "questions", "recordings")
    return (
        at_most("broken texts of short questions", "0", number_at(ours, "questions", "broken"), 0, sample),
        at_most(
            "word error rate of short questions",
            "<= 2.5 %",
            number_at(ours, "questions", "word_error_rate"),
            0.025,
            sample,
        ),
        at_most(
            "CPU time of short questions beside their first hearing alone",
            "<= 1.6",
            number_at(ours, "questions", "cpu_beside_first_hearing"),
            1.6,
            sample,
        ),
    )


def _against_defaults(how: str, part: Mapping[str, Tally], real: bool) -> Target:
    """Return the target that compares our word errors in one part with those of faster-whisper's defaults."""
    points = 100 * (part[OURS].words.rate - part[_DEFAULTS].words.rate) if _DEFAULTS in part else None
    name = f"word error rate above faster-whisper's defaults, {how}, points"
    return at_most(name, "<= 0", points, 0, _sample(_count(part), real))


def _count(part: Mapping[str, Tally]) -> int:
    return len(part[OURS].audio_s) if part else 0


def _sample(count: int, real: bool) -> str:
    whose = "recordings" if real else "recordings of synthetic voices"
    return few(count, f"{count} {whose}") if count else ""


def _listened(path: Path) -> Pcm:
    return resample(read_sound(path), DISCORD_RATE_HZ, LISTEN_RATE_HZ)


def _joined(found: Sequence[MeasuredText]) -> MeasuredText:
    text = " ".join(one.text for one in found if one.text)
    return MeasuredText(text, sum(one.cpu_s for one in found), sum(one.wall_s for one in found))
