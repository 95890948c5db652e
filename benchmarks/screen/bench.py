"""`roomtone bench screen`: which changes and which text of a shared screen are noticed, how fast, and the cost of an
hour.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.disabled_logging import logging_disabled
from benchmarks.machine import busy_sentence, describe_machine
from benchmarks.report import BenchmarkReport, at_least, at_most
from benchmarks.screen.change_detection import measure_change_detection
from benchmarks.screen.concurrent_replies import measure_concurrent_replies
from benchmarks.screen.look_cost import measure_look_cost
from benchmarks.screen.ocr_accuracy import measure_latency, measure_ocr_accuracy
from benchmarks.screen.synthetic_screens import jpeg, own_frame, scene
from voice.screen.frame_diff import compare_frames

if TYPE_CHECKING:
    from benchmarks.progress import Progress
    from benchmarks.report import Json, Target
    from benchmarks.screen.options import ScreenBenchOptions

_MADE_UP = "The screens are made up: a head-up display over scenes of different unrest. Real games are harder to read."
_SIMULATED = "The hour is simulated by the second; both ways of looking see the same one, and no model is asked."


async def run(options: ScreenBenchOptions, progress: Progress) -> BenchmarkReport:
    """Run every measurement. If the OCR reader is missing, the report shows that no text was read. The measurement of
    replies needs the bot's other models and raises the bot's own errors if one is missing.
    """
    machine = describe_machine()
    remarks = [_MADE_UP, _SIMULATED]
    if (busy := busy_sentence()) is not None:
        remarks.append(busy)
    with logging_disabled():
        gate = measure_change_detection(options.scenes, options.seed, progress)
        gate["check_and_compare_ms"] = _cost_ms()
        reading = await measure_ocr_accuracy(options.readings, options.seed, progress)
        latency = await measure_latency(options.events, options.seed, progress)
        beside = await measure_concurrent_replies(options.answers, progress) if options.answers else {}
        looks, peers = measure_look_cost(options.hours, options.seed, progress)
    ours: dict[str, Json] = {"gate": gate, "reading": reading, "latency": latency, "hour": looks}
    if beside:
        ours["answers"] = beside
    return BenchmarkReport(
        bench="screen",
        machine=machine,
        ours=ours,
        peers=peers,
        targets=(*_targets(gate, reading, latency, looks, peers), *_answers(beside)),
        remarks=tuple(remarks),
    )


def _targets(
    gate: dict[str, Json],
    reading: dict[str, Json],
    latency: dict[str, Json],
    looks: dict[str, Json],
    peers: dict[str, Json],
) -> tuple[Target, ...]:
    ten = peers["every 10 s"]
    assert isinstance(ten, dict)
    calls, theirs = _number(looks["model_calls_per_hour"]), _number(ten["model_calls_per_hour"])
    fewer = None if calls is None or not theirs else calls / theirs
    return (
        at_least("transitions judged right", ">= 0.97", _number(gate["right"]), 0.97),
        at_least("lines of text read", ">= 0.95", _number(reading["lines_read"]), 0.95),
        at_most("a new line is a note after, P50", "<= 1.3 s", _number(latency["event_to_note_s_p50"]), 1.3),
        at_most("model calls, beside looking every 10 s", "<= 0.9", fewer, 0.9),
        at_most("a change of scene is seen after, P95", "<= 4 s", _number(looks["cut_seen_after_s_p95"]), 4.0),
    )


def _answers(beside: dict[str, Json]) -> tuple[Target, ...]:
    """Return the targets for replies during a screen share: how late they are, and how many are missing."""
    figures = beside.get("beside a share")
    told = figures if isinstance(figures, dict) else {}
    spread = told.get("besides_the_model_server_ms")
    p95 = _number(spread.get("p95")) if isinstance(spread, dict) else None
    return (
        at_most("beside a share: end of speech to first voiced sound, P95 ms", "<= 1.5 s", p95, 1_500),
        at_most("beside a share: answers missing", "0", _number(told.get("unanswered")), 0),
    )


def _cost_ms() -> float:
    """Return the CPU time for checking, decoding and comparing one picture, without the way to another process."""
    data = jpeg(scene(1))
    before = own_frame(data).luma
    began = time.process_time()
    for _ in range(20):
        compare_frames(before, own_frame(data).luma)
    return round(1000 * (time.process_time() - began) / 20, 2)


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) else None
