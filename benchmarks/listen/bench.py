"""`roomtone bench listen`: endpointing, deciding, and silence among people who do not mean the bot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.listen.decisions import (
    deciding_targets,
    measure_crowd,
    measure_decisions,
    measure_unasked,
    unasked_targets,
)
from benchmarks.listen.endpointing import endpointing_targets, measure_endpointing
from benchmarks.measuring import Progress, measuring
from benchmarks.recordings import load_recordings
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchmarks.report import BenchmarkReport, Json, Target

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


async def run(
    options: ListenBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] = lambda _: None
) -> BenchmarkReport:
    """Measure the chosen parts. `on_part` gets the unfinished report after each part.

    Raises `ScenarioError` for a folder without a manifest, `TranscriptFormatError`, and the bot's own errors if one of
    its models is missing.
    """
    with measuring("listen", listen_targets, progress, on_part, options.only) as found:
        if found.wants("deciding"):
            found.part_measured("deciding", await measure_decisions() | {"crowd": measure_crowd()})
        if found.wants("endpointing"):
            said = load_recordings(options.speech)
            figures = await measure_endpointing(said.some(options.recordings), load().models, progress)
            found.part_measured("endpointing", {"set": said.name, **figures})
        if found.wants("unasked"):
            if options.transcripts is None:
                found.remark(_NO_TRANSCRIPTS)
            else:
                figures, remarks = await measure_unasked(options.transcripts, progress)
                for remark in remarks:
                    found.remark(remark)
                found.part_measured("unasked", figures)
    return found.report()


def listen_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""
    return (*endpointing_targets(ours), *deciding_targets(ours), *unasked_targets(ours))
