"""Reports which parts of the bot do not work: which part, since when, what replaces it, and what to do.

Parts that can fail register a check here; the checks run when somebody asks. A failure inside a room (a reply, the
voice connection) is reported in that room instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from voice.circuit_breaker import Outage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bot.clock import Clock


@dataclass(frozen=True, slots=True)
class DegradedPart:
    """A part that does not work. `what`: its name within a sentence. `instead`: a clause that says what happens now."""

    what: str
    instead: str
    outage: Outage


class Health:
    """The checks of all parts that can fail. Code that opens such a part adds its check. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._checks: list[Callable[[], Iterable[DegradedPart]]] = []

    def add_check(self, check: Callable[[], Iterable[DegradedPart]]) -> None:
        self._checks.append(check)

    def add_missing(self, what: str, *, instead: str, problem: str) -> None:
        """Record a part that is missing until the bot is restarted."""
        part = DegradedPart(what, instead, Outage(self._clock.monotonic(), None, problem))
        self.add_check(lambda: [part])

    def summary(self) -> str:
        """Return one or two sentences for each part that does not work; empty if everything works."""
        now = self._clock.monotonic()
        return " ".join(format_degraded_part(part, now) for check in self._checks for part in check())


def format_degraded_part(part: DegradedPart, now: float) -> str:
    """Return the sentences that people read about `part`. `now`: monotonic seconds."""
    outage = part.outage
    again = "" if outage.retry_at is None else f", and I try it again {_format_delay(outage.retry_at - now)}"
    what = part.what[:1].upper() + part.what[1:]
    sentence = f"{what} has not worked for {_format_duration(now - outage.since)}; {part.instead}{again}."
    return f"{sentence} {outage.problem}".rstrip()


def _format_delay(seconds: float) -> str:
    return f"in {_format_duration(seconds)}" if seconds >= 1 else "with the next call"


def _format_duration(seconds: float) -> str:
    for size_s, unit in ((3_600, "hour"), (60, "minute")):
        if seconds >= 1.5 * size_s:
            return f"{round(seconds / size_s)} {unit}s"
    whole = max(1, round(seconds))
    return "1 second" if whole == 1 else f"{whole} seconds"
