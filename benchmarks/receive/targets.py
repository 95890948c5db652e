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
    link, bot = ("link", "100 speakers"), ("whole bot", "100 speakers")
    sent = sample_at(ours, "frames", *link, "sent")
    to_bot = sample_at(ours, "frames", *bot, "sent")
    core = number_at(ours, *link, "core")
    lag_p99_ms = number_at(ours, *bot, "loop_lag", "p99_ms")
    return (
        at_most("receiving 100 speakers, share of a core", "<= 20 %", core, _CORE_OF_100, sent),
        at_most(
            "frames lost of 100 speakers",
            "0",
            number_at(ours, *link, "lost"),
            0,
            sent,
        ),
        at_most("whole bot, 100 speakers: loop lag P99, ms", "<= 20 ms", lag_p99_ms, _LAG_P99_MS, to_bot),
        at_most(
            "whole bot, 100 speakers: frames lost",
            "0",
            number_at(ours, *bot, "lost"),
            0,
            to_bot,
        ),
    )
