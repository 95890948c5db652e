"""The targets of the receive benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.figures import number_at, sample_at
from benchmarks.report import Target, at_most

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report import Json

_CORE_OF_100 = 0.20
_LAG_P99_MS = 20.0


def receive_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""
    link, in_step, bot = ("link", "100 speakers"), ("link", "200 speakers in step"), ("whole bot", "100 speakers")
    sent = sample_at(ours, "frames", *link, "sent")
    to_bot = sample_at(ours, "frames", *bot, "sent")
    core = number_at(ours, *link, "core")
    # A lag without recognitions beside it is not what a room has.
    recognised = number_at(ours, *bot, "recogniser", "texts")
    lag_p99_ms = number_at(ours, *bot, "loop_lag", "p99_ms") if recognised else None
    meanwhile = f"{recognised:,.0f} utterances recognised meanwhile" if recognised else ""
    return (
        at_most("receiving 100 speakers, share of a core", "<= 20 %", core, _CORE_OF_100, sent),
        at_most(
            "frames lost of 100 speakers",
            "0",
            number_at(ours, *link, "lost"),
            0,
            sent,
        ),
        at_most(
            "frames lost of 200 speakers in step",
            "0",
            number_at(ours, *in_step, "lost"),
            0,
            sample_at(ours, "frames", *in_step, "sent"),
        ),
        at_most("whole bot, 100 speakers: loop lag P99, ms", "<= 20 ms", lag_p99_ms, _LAG_P99_MS, meanwhile),
        at_most(
            "whole bot, 100 speakers: frames lost",
            "0",
            number_at(ours, *bot, "lost"),
            0,
            to_bot,
        ),
    )
