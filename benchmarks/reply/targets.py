"""The targets of the reply benchmark, checked against its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.figures import counted_of, number_at, sample_at
from benchmarks.report import Target, at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report import Json

LOST = "recordings without any text, through Discord's whole path"
UNLIKE = "texts unlike what was said, through Discord's whole path"


def reply_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return every target with its measured value. A target that this run could not measure says so."""
    return (*_answering(ours), *_heard(ours), *_four_speakers(ours), _interruptions(ours))


def _answering(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    silent = number_at(ours, "answers", "unanswered")
    said = counted_of(ours, "recordings", ("answers", "recordings"), silent)

    def begun(percentile: str, goal: str, most_ms: float) -> Target:
        words = f"end of speech to first voiced sound, {percentile} ms"
        measured = number_at(ours, "answers", "besides_the_model_server_ms", percentile.lower())
        return at_most(words, goal, measured, most_ms, said, failed=silent)

    ahead = number_at(ours, "answers", "recognised_ahead")
    return (
        begun("P50", "<= 500 ms", 500),
        begun("P95", "<= 1 s", 1000),
        at_least("answers whose text was recognised ahead", ">= 95 %", ahead, 0.95, said),
    )


def _heard(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    sample = sample_at(ours, "recordings", "answers", "heard", "recordings")
    return (
        at_most(LOST, "0", number_at(ours, "answers", "heard", "without_text"), 0, sample),
        at_most(UNLIKE, "0", number_at(ours, "answers", "heard", "unlike_what_was_said"), 0, sample),
    )


def _four_speakers(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    lost = number_at(ours, "four speakers", "without_text")
    return (
        at_most(
            "final text after the end was sure, four speakers, P95 ms",
            "<= 600 ms",
            number_at(ours, "four speakers", "final_text_ms", "p95"),
            600,
            sample_at(ours, "utterances", "four speakers", "utterances"),
            failed=lost,
        ),
        at_most(
            "end of speech to text, four speakers, P95 ms",
            "<= 1 s",
            number_at(ours, "four speakers", "end_of_speech_to_text_ms", "p95"),
            1000,
            sample_at(ours, "utterances", "four speakers", "utterances"),
            failed=lost,
        ),
    )


def _interruptions(ours: Mapping[str, Json]) -> Target:
    spoke_on = number_at(ours, "interruptions", "not_measured")
    return at_most(
        "silent after the overlap qualified, P95 ms",
        "<= 250 ms",
        number_at(ours, "interruptions", "silent_after_ms", "p95"),
        250,
        counted_of(ours, "interruptions", ("interruptions", "interruptions"), spoke_on),
        failed=spoke_on,
    )
