"""`roomtone bench reply`: how long people wait for a reply, and how fast the bot stops. It only runs the parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.disabled_logging import logging_disabled
from benchmarks.measuring import Measuring
from benchmarks.recordings import RecordingSet, load_recordings
from benchmarks.reply.concurrent_speakers import measure_speakers
from benchmarks.reply.interruption import measure_interruption
from benchmarks.reply.latency import measure_latency
from benchmarks.reply.targets import reply_targets

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.progress import Progress
    from benchmarks.reply.options import ReplyBenchOptions
    from benchmarks.report import BenchmarkReport, Target

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
    recordings: RecordingSet

    def targets(self) -> tuple[Target, ...]:
        return reply_targets(self.ours)

    async def all_parts(self) -> None:
        """Measure the chosen parts one after the other."""
        options, said = self.options, self.recordings
        if options.wants("latency"):
            answers = await measure_latency(
                said.some(options.recordings), first_token_ms=options.first_token_ms, progress=self.progress
            )
            self.part_measured("answers", answers)
        if options.wants("speakers"):
            speakers = await measure_speakers(said.some(options.crowd_recordings), progress=self.progress)
            self.part_measured("four speakers", speakers)
        if options.wants("interruption"):
            stopped = await measure_interruption(options.interruptions, progress=self.progress)
            self.part_measured("interruptions", stopped)
