"""`roomtone bench reply`: how long people wait for a reply, whether the bot replies when it should, and how fast it
stops.

This module only runs the parts. Recordings come from `recordings`, scripted conversations from `dialogues`, and the bot
from `room`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.disabled_logging import logging_disabled
from benchmarks.measuring import Measuring
from benchmarks.reply.concurrent_speakers import measure_speakers
from benchmarks.reply.crowd import measure_crowd
from benchmarks.reply.decisions import measure_decisions
from benchmarks.reply.interruption import measure_interruption
from benchmarks.reply.latency import measure_latency
from benchmarks.reply.pacing import measure_pacing
from benchmarks.reply.pauses import PauseListener, measure_pauses
from benchmarks.reply.recordings import RecordingSet, load_recordings
from benchmarks.reply.targets import reply_targets
from config.load import load
from voice.asr.whisper import WhisperEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.progress import Progress
    from benchmarks.reply.options import ReplyBenchOptions
    from benchmarks.reply.recordings import SpeechRecording
    from benchmarks.report import BenchmarkReport, Target
    from config.schema import Settings

_SYNTHETIC = (
    "Nobody's recordings were named, so the bundled ones were spoken: sentences of three synthetic voices, which are "
    "easier to tell the end of than people's. `--speech DIR` takes real ones."
)
_READ = "Real recordings are mostly read speech, whose sentences break off where nobody talking freely would stop."


async def run(
    options: ReplyBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Measure the chosen parts. `on_part` gets the unfinished report after each part.

    Raises `ScenarioError` for a folder without a manifest, and the bot's own errors if one of its models is missing.
    """
    measuring = _Measuring(
        options=options,
        progress=progress,
        on_part=on_part,
        settings=load(),
        recordings=load_recordings(options.speech),
    )
    measuring.remark(_READ if measuring.recordings.real else _SYNTHETIC)
    measuring.remark_if_busy()
    with logging_disabled():
        await measuring.all_parts()
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "reply"

    options: ReplyBenchOptions
    settings: Settings
    recordings: RecordingSet

    def targets(self) -> tuple[Target, ...]:
        return reply_targets(self.ours, self.peers)

    async def all_parts(self) -> None:
        """Measure the chosen parts one after the other."""
        options, said = self.options, self.recordings
        if options.wants("deciding"):
            self.part_measured("deciding", {**measure_decisions(), "crowd": measure_crowd()})
        if options.wants("pauses"):
            self.part_measured(
                "pauses",
                await measure_pauses(
                    said.some(options.pauses_recordings),
                    models=self.settings.models,
                    turn_model=self.settings.listening.turn_model != "off",
                    recogniser=await asyncio.to_thread(WhisperEngine, self.settings.asr),
                    progress=self.progress,
                ),
            )
        if options.wants("latency"):
            await self._answers(said.some(options.recordings))
        if options.wants("speakers"):
            recordings = said.some(options.crowd_recordings)
            self.part_measured("four speakers", await measure_speakers(recordings, settings={}, progress=self.progress))
        if options.wants("interruption"):
            self.part_measured(
                "interruptions",
                await measure_interruption(options.interruptions, settings={}, progress=self.progress),
            )
        if options.wants("pacing"):
            pacing = await measure_pacing(rooms=options.rooms, seconds=options.pacing_s, progress=self.progress)
            self.part_measured("pacing", pacing.as_json())

    async def _answers(self, recordings: Sequence[SpeechRecording]) -> None:
        """Measure the bot's answers."""
        options, models = self.options, self.settings.models
        listener = PauseListener(
            models,
            turn_model=self.settings.listening.turn_model != "off",
            recogniser=await asyncio.to_thread(WhisperEngine, self.settings.asr),
        )
        self.part_measured(
            "answers",
            await measure_latency(
                recordings,
                listener=listener,
                settings={},
                first_token_ms=options.first_token_ms,
                progress=self.progress,
            ),
        )
