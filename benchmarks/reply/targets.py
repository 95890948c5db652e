"""The targets of the reply benchmark, checked against its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.figures import counted_of, cut_sample, number_at, sample_at
from benchmarks.report import Target, at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report import Json

HELD_OUT = "held_out"
LOST = "recordings without any text, through Discord's whole path"
UNLIKE = "texts unlike what was said, through Discord's whole path"
PAUSES_IN_REAL_TIME = "pauses that are cut in real time, somebody alone with the bot"
# With fewer of the due packets a room did not speak all the time: jitter counts nothing where nothing is sent.
_LEAST_PACKETS = 0.95


def reply_targets(ours: Mapping[str, Json], peers: Mapping[str, Json] | None = None) -> tuple[Target, ...]:
    """Return every target with its measured value. A target that this run could not measure says so. The comparison
    with a peer is a target of runs with that peer only.
    """
    return (
        *_answering(ours),
        *_heard(ours),
        *_pauses(ours),
        *_four_speakers(ours),
        _interruptions(ours),
        *_deciding(ours),
        _pacing(ours),
        *(target for name in peers or {} for target in _beside(name, ours, peers or {})),
    )


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


def _pauses(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    return (
        at_most(
            "pauses inside speech that are cut",
            "<= 6 %",
            number_at(ours, "pauses", "cut_share"),
            0.06,
            cut_sample(ours, "pauses"),
        ),
        at_most(
            PAUSES_IN_REAL_TIME,
            "<= 6 %",
            number_at(ours, "answers", "pauses_cut_share"),
            0.06,
            cut_sample(ours, "answers", cut="pauses_cut"),
        ),
        at_most(
            "end of speech known after, P50 ms",
            "<= 600 ms",
            number_at(ours, "pauses", "end_known_after_ms", "p50"),
            600,
            sample_at(ours, "ends", "pauses", "end_known_after_ms", "count"),
        ),
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


def _deciding(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    recall = number_at(ours, "deciding", HELD_OUT, "recall")
    return (
        at_least(
            "answered of what was for it, held-out talks",
            ">= 95 %",
            recall,
            0.95,
            sample_at(ours, "questions", "deciding", HELD_OUT, "owed"),
        ),
        at_most(
            "unwanted answers in 10 minutes of company, held-out talks",
            "<= 0.8",
            number_at(ours, "deciding", HELD_OUT, "unwanted_in_10_min"),
            0.8,
            sample_at(ours, "minutes", "deciding", HELD_OUT, "minutes_of_company"),
        ),
        at_most(
            "unwanted answers in 10 minutes of company without a model, held-out talks",
            "<= 0.8",
            number_at(ours, "deciding", HELD_OUT, "without_model", "unwanted_in_10_min"),
            0.8,
            sample_at(ours, "minutes", "deciding", HELD_OUT, "minutes_of_company"),
        ),
        at_most(
            "deciding with 99 hostile names and 400 words, CPU P95 ms",
            "<= 3 ms",
            number_at(ours, "deciding", "crowd", "worst_p95_ms"),
            3,
        ),
    )


def _beside(name: str, ours: Mapping[str, Json], peers: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets of the comparison with a peer: no slower, and no more pauses cut or answers missing."""
    sample = sample_at(ours, "recordings each", "answers", "recordings")
    silent = number_at(ours, "answers", "unanswered")

    def target(words: str, *path: str, failed: float | None = None) -> Target:
        theirs, own = number_at(peers, name, *path), number_at(ours, "answers", *path)
        goal = "not measured" if theirs is None else f"<= {theirs:,.4g} ({name})"
        value = None if theirs is None else own
        return at_most(f"{words}, beside {name}", goal, value, theirs or 0.0, sample, failed=failed)

    return (
        target("end of speech to first voiced sound, P50 ms", "total_ms", "p50", failed=silent),
        target("end of speech to first voiced sound, P95 ms", "total_ms", "p95", failed=silent),
        target("pauses cut", "pauses_cut_share"),
        target("answers missing", "unanswered"),
        target("CPU seconds an answer", "cpu_s_an_answer"),
    )


def _pacing(ours: Mapping[str, Json]) -> Target:
    """Return the pacing target, for the largest number of rooms that was measured."""
    pacing = ours.get("pacing")
    rooms = pacing.get("rooms") if isinstance(pacing, dict) else None
    most = max(rooms, key=int) if isinstance(rooms, dict) and rooms else "10"
    jitter_ms, sent, due = (
        number_at(ours, "pacing", "rooms", most, name) for name in ("jitter_p99_ms", "packets", "packets_due")
    )
    missing = 0.0 if sent is None or due is None or sent >= _LEAST_PACKETS * due else due - sent
    sample = "" if sent is None or due is None else f"{sent:,.0f} of {due:,.0f} packets"
    return at_most(f"pacing with {most} rooms, jitter P99 ms", "< 5 ms", jitter_ms, 4.999, sample, failed=missing)
