"""`roomtone bench listen`: endpointing, deciding, and silence among people who do not mean the bot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.disabled_logging import logging_disabled
from benchmarks.listen.crowd import measure_crowd
from benchmarks.listen.decisions import deciding_targets, measure_decisions
from benchmarks.listen.endpointing import endpointing_targets, measure_endpointing
from benchmarks.listen.unasked import measure_unasked, unasked_targets
from benchmarks.measuring import Measuring
from benchmarks.recordings import load_recordings
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.progress import Progress
    from benchmarks.report import BenchmarkReport, Target

_NO_TRANSCRIPTS = (
    "No conversations were named, so nobody's talk was played. `--transcripts DIR` takes JSON lines, or files of QMSum "
    "or CRD3."
)


@dataclass(frozen=True, slots=True)
class ListenBenchOptions:
    """The options of one run. The defaults are a full run.

    `speech`: a folder of recordings with a manifest.json; None: the bundled scenarios. `recordings`: how many of them;
    0: all. `transcripts`: a directory of conversations; without it `unasked` is not measured. `only`: the parts to
    measure; empty means all.
    """

    speech: Path | None = None
    recordings: int = 0
    transcripts: Path | None = None
    only: tuple[str, ...] = ()

    def wants(self, part: str) -> bool:
        """Return whether this part has to be measured."""
        return not self.only or part in self.only


async def run(
    options: ListenBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Measure the chosen parts. `on_part` gets the unfinished report after each part.

    Raises `ScenarioError` for a folder without a manifest, `TranscriptFormatError`, and the bot's own errors if one of
    its models is missing.
    """
    measuring = _Measuring(options=options, progress=progress, on_part=on_part)
    with logging_disabled():
        await measuring.all_parts()
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "listen"

    options: ListenBenchOptions = field(default_factory=ListenBenchOptions)

    def targets(self) -> tuple[Target, ...]:
        return (*endpointing_targets(self.ours), *deciding_targets(self.ours), *unasked_targets(self.ours))

    async def all_parts(self) -> None:
        """Measure the chosen parts one after the other."""
        options = self.options
        if options.wants("deciding"):
            self.part_measured("deciding", measure_decisions() | {"crowd": measure_crowd()})
        if options.wants("endpointing"):
            recordings = load_recordings(options.speech).some(options.recordings)
            self.part_measured("endpointing", await measure_endpointing(recordings, load(), self.progress))
        if options.wants("unasked"):
            if options.transcripts is None:
                self.remark(_NO_TRANSCRIPTS)
            else:
                figures, remarks = await measure_unasked(options.transcripts, self.progress)
                for remark in remarks:
                    self.remark(remark)
                self.part_measured("unasked", figures)
