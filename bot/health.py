"""What of the bot's equipment does not work at present, told to people: what, since when, what stands in, what to do.

Parts that fail are left alone for a while and tried again; each is asked here when somebody wants to know. What fails
in a room (an answer, the voice connection) is told there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from voice.circuit_breaker import Outage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bot.clock import Clock


@dataclass(frozen=True, slots=True)
class Ailment:
    """Something that does not work. `what` is called so in a sentence; `instead` says in a clause what happens now."""

    what: str
    instead: str
    outage: Outage


class Health:
    """The equipment's. Not thread-safe; `watch` is for whoever makes a part that can fail."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looks: list[Callable[[], Iterable[Ailment]]] = []

    def watch(self, look: Callable[[], Iterable[Ailment]]) -> None:
        """Ask `look` from now on whenever somebody wants to know."""
        self._looks.append(look)

    def missing(self, what: str, *, instead: str, problem: str) -> None:
        """Take note of something that is not there, and will not be until the bot is started again."""
        ailment = Ailment(what, instead, Outage(self._clock.monotonic(), None, problem))
        self.watch(lambda: [ailment])

    def told(self) -> str:
        """Return what does not work in plain sentences; empty if everything does."""
        now = self._clock.monotonic()
        return " ".join(sentences(ailment, now) for look in self._looks for ailment in look())


def sentences(ailment: Ailment, now: float) -> str:
    """Return one ailment as people are told of it. `now`: monotonic seconds."""
    outage = ailment.outage
    again = "" if outage.retry_at is None else f", and I try it again {_soon(outage.retry_at - now)}"
    what = ailment.what[:1].upper() + ailment.what[1:]
    told = f"{what} has not worked for {_about(now - outage.since)}; {ailment.instead}{again}."
    return f"{told} {outage.problem}".rstrip()


def _soon(seconds: float) -> str:
    return f"in {_about(seconds)}" if seconds >= 1 else "with the next call"


def _about(seconds: float) -> str:
    """Return a duration as one says it."""
    for size_s, unit in ((3_600, "hour"), (60, "minute")):
        if seconds >= 1.5 * size_s:
            return f"{round(seconds / size_s)} {unit}s"
    whole = max(1, round(seconds))
    return "1 second" if whole == 1 else f"{whole} seconds"
