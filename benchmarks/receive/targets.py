"""The targets of the receive benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.report import Target, at_most

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report import Json

_CORE_OF_100 = 0.20
_LAG_P99_MS = 20.0


def receive_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""
    link, bot = _entry(ours.get("link")), _entry(ours.get("whole bot"))
    of_100, bot_of_100 = _entry(link.get("100 speakers")), _entry(bot.get("100 speakers"))
    return (
        at_most("receiving 100 speakers, share of a core", "<= 20 %", _number(of_100, "core"), _CORE_OF_100),
        at_most("frames lost of 100 speakers", "0", _number(of_100, "lost"), 0, _sent(of_100)),
        at_most("whole bot, 100 speakers: loop lag P99, ms", "<= 20 ms", _lag(bot_of_100), _LAG_P99_MS),
        at_most("whole bot, 100 speakers: frames lost", "0", _number(bot_of_100, "lost"), 0, _sent(bot_of_100)),
    )


def _sent(figures: Mapping[str, Json]) -> str:
    sent = figures.get("sent")
    return f"{sent:,} frames" if isinstance(sent, int) else ""


def _lag(figures: Mapping[str, Json]) -> float | None:
    return _number(_entry(figures.get("loop_lag")), "p99_ms")


def _entry(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _number(figures: Mapping[str, Json], name: str) -> float | None:
    value = figures.get(name)
    return float(value) if isinstance(value, int | float) else None
