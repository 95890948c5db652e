"""`roomtone bench screen`: which changes and which text of a shared screen are noticed, how fast, and the cost of an
hour.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.disabled_logging import logging_disabled
from benchmarks.figures import counted_of, number_at, sample_at
from benchmarks.measuring import Measuring
from benchmarks.report import Target, at_least, at_most
from benchmarks.screen.change_detection import measure_change_detection
from benchmarks.screen.concurrent_replies import measure_concurrent_replies
from benchmarks.screen.look_cost import measure_look_cost
from benchmarks.screen.note_latency import measure_note_latency
from benchmarks.screen.ocr_accuracy import measure_ocr_accuracy
from benchmarks.screen.synthetic_screens import jpeg, own_frame, scene
from voice.screen.frame_diff import compare_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.progress import Progress
    from benchmarks.report import BenchmarkReport, Json
    from benchmarks.screen.options import ScreenBenchOptions

_MADE_UP = "The screens are made up: a head-up display over scenes of different unrest. Real games are harder to read."
_SIMULATED = "The hour is simulated by the second; both ways of looking see the same one, and no model is asked."


async def run(
    options: ScreenBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Run every measurement. `on_part` gets the unfinished report after each part.

    If the OCR reader is missing, the report shows that no text was read. The measurement of replies needs the bot's
    other models and raises the bot's own errors if one is missing.
    """
    measuring = _Measuring(progress=progress, on_part=on_part, remarks=[_MADE_UP, _SIMULATED])
    measuring.remark_if_busy()
    with logging_disabled():
        await measuring.all_parts(options)
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "screen"

    async def all_parts(self, options: ScreenBenchOptions) -> None:
        """Measure the parts one after the other."""
        seed, progress = options.seed, self.progress
        gate = measure_change_detection(options.scenes, seed, progress)
        gate["check_and_compare_ms"] = _cost_ms()
        self.part_measured("gate", gate)
        self.part_measured("reading", await measure_ocr_accuracy(options.readings, seed, progress))
        self.part_measured("latency", await measure_note_latency(options.events, seed, progress))
        looks, others = measure_look_cost(options.hours, seed, progress)
        self.peers.update(others)
        self.part_measured("hour", looks)
        if options.answers:
            self.part_measured("answers", await measure_concurrent_replies(options.answers, progress))

    def targets(self) -> tuple[Target, ...]:
        return screen_targets(self.ours, self.peers)


def screen_targets(ours: Mapping[str, Json], peers: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`, one beside looking at fixed times (`peers`)."""
    calls, theirs = (
        number_at(ours, "hour", "model_calls_per_hour"),
        number_at(peers, "every 10 s", "model_calls_per_hour"),
    )
    fewer = None if calls is None or not theirs else calls / theirs
    beside = ("answers", "beside a share")
    first_sound_p95_ms = number_at(ours, *beside, "besides_the_model_server_ms", "p95")
    pairs = sample_at(ours, "pairs of pictures", "gate", "transitions")
    answers = sample_at(ours, "answers", *beside, "besides_the_model_server_ms", "count")
    missing = number_at(ours, *beside, "unanswered")
    return (
        at_least("transitions judged right", ">= 0.97", number_at(ours, "gate", "right"), 0.97, pairs),
        at_least("lines of text read", ">= 0.95", number_at(ours, "reading", "lines_read"), 0.95),
        at_most(
            "a new line is a note after, P50",
            "<= 1.3 s",
            number_at(ours, "latency", "event_to_note_s_p50"),
            1.3,
            counted_of(ours, "lines", ("latency", "events"), number_at(ours, "latency", "missed")),
            failed=number_at(ours, "latency", "missed"),
        ),
        at_most("model calls, beside looking every 10 s", "<= 0.9", fewer, 0.9),
        at_most("a change of scene is seen after, P95", "<= 4 s", number_at(ours, "hour", "cut_seen_after_s_p95"), 4.0),
        at_most(
            "beside a share: end of speech to first voiced sound, P95 ms",
            "<= 1.5 s",
            first_sound_p95_ms,
            1_500,
            answers,
            failed=missing,
        ),
        at_most("beside a share: answers missing", "0", missing, 0, answers),
    )


def _cost_ms() -> float:
    """Return the CPU time for checking, decoding and comparing one picture, without the way to another process."""
    data = jpeg(scene(1))
    before = own_frame(data).luma
    began = time.process_time()
    for _ in range(20):
        compare_frames(before, own_frame(data).luma)
    return round(1000 * (time.process_time() - began) / 20, 2)
