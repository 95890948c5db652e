"""Reports which parts of the bot do not work, and whether it can do its work at all.

Parts that can fail register a check here; the checks run when somebody asks. A *degraded part* has a replacement, and
people read about it in /status. A *fault* is a reason why the bot cannot do its work at the moment; monitoring reads it
(`bot.monitoring.service_checks`), so its sentence has no name and no word of anybody, and no address of this machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bot.texts.text import OperatorText, Text, counted, joined, sentence_of
from voice.circuit_breaker import Outage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from bot.clock import Clock


class FaultKind(StrEnum):
    """Why the bot cannot do its work. The values are public: they are in /readyz and in the metrics."""

    STARTING = "starting"
    DRAINING = "draining"
    ROOM_DEAF = "room_deaf"
    ROOM_MUTE = "room_mute"
    DATABASE = "database"
    DISCORD = "discord"
    MODELS = "models"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class HealthFault:
    """One reason why the bot cannot do its work, in a plain sentence with the remedy.

    `needs_restart`: it never passes by itself, and a new process of the same kind would not have it.
    """

    kind: FaultKind
    sentence: str
    needs_restart: bool = False


STARTING = HealthFault(FaultKind.STARTING, "I am starting: I load the models, and am not connected to Discord yet.")


@dataclass(frozen=True, slots=True)
class DegradedPart:
    """A part that does not work. `what`: its name within a sentence. `instead`: a clause that says what happens now."""

    what: Text
    instead: Text
    outage: Outage


class Health:
    """The checks of all parts that can fail. Code that opens such a part adds its check. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._checks: list[Callable[[], Iterable[DegradedPart]]] = []
        self._fault_checks: list[Callable[[], Iterable[HealthFault]]] = []
        self._started = False
        self._tasks: tuple[asyncio.Task[object], ...] = ()

    def add_check(self, check: Callable[[], Iterable[DegradedPart]]) -> None:
        self._checks.append(check)

    def add_outage(self, what: Text, instead: Text, outage: Callable[[], Outage | None]) -> None:
        """Add the check of one part. `outage`: returns that of now, at once."""
        self.add_check(lambda: [] if (found := outage()) is None else [DegradedPart(what, instead, found)])

    def add_missing(self, what: Text, *, instead: Text, problem: Exception) -> None:
        """Record a part that is missing until the bot is restarted."""
        part = DegradedPart(what, instead, Outage(self._clock.monotonic(), None, problem))
        self.add_check(lambda: [part])

    def add_fault_check(self, check: Callable[[], Iterable[HealthFault]]) -> None:
        """Add a check that returns the reasons why the bot cannot do its work. It must return at once."""
        self._fault_checks.append(check)

    def started(self, tasks: Iterable[asyncio.Task[object]] = ()) -> None:
        """Note that everything is open. `tasks`: those that run until the process ends."""
        self._started = True
        self._tasks = tuple(tasks)

    def faults(self) -> list[HealthFault]:
        """Return every reason why the bot cannot do its work now; none: it can. While it ends, that is the only one."""
        found = [fault for check in self._fault_checks for fault in check()]
        if ending := [fault for fault in found if fault.kind is FaultKind.DRAINING]:
            return ending
        return found if self._started else [STARTING, *found]

    def dead_tasks(self) -> list[str]:
        """Return the names of the tasks that have ended although the process goes on. This is a defect."""
        return [task.get_name() for task in self._tasks if task.done()]

    @property
    def needs_restart(self) -> bool:
        """Return whether only a new process helps: a task has ended, or a fault says so. False while it ends anyway."""
        faults = self.faults()
        if any(fault.kind is FaultKind.DRAINING for fault in faults):
            return False
        return bool(self.dead_tasks()) or any(fault.needs_restart for fault in faults)

    def degraded_count(self) -> int:
        """Return how many parts do not work and are replaced by others."""
        return sum(len(list(check())) for check in self._checks)

    def summary(self) -> Text:
        """Return one or two sentences for each part that does not work; empty if everything works."""
        now = self._clock.monotonic()
        return joined(format_degraded_part(part, now) for check in self._checks for part in check())


def format_degraded_part(part: DegradedPart, now: float) -> Text:
    """Return the sentences that people read about `part`. `now`: monotonic seconds."""
    outage = part.outage
    lasts = {"what": part.what, "duration": _duration(now - outage.since), "instead": part.instead}
    if outage.retry_at is None:
        sentence = Text("{what} has not worked for {duration}; {instead}.", **lasts)
    elif outage.retry_at - now < 1:
        sentence = Text(
            "{what} has not worked for {duration}; {instead}, and I try it again with the next call.", **lasts
        )
    else:
        sentence = Text(
            "{what} has not worked for {duration}; {instead}, and I try it again in {delay}.",
            **lasts,
            delay=_duration(outage.retry_at - now),
        )
    problem = sentence_of(outage.problem)
    if isinstance(problem, OperatorText):
        # What people read of that says no more.
        return OperatorText("{sentence} {problem}", sentence, sentence=sentence, problem=problem)
    return joined((sentence, problem))


def _duration(seconds: float) -> Text:
    if seconds >= 1.5 * 3_600:
        return counted(round(seconds / 3_600), "{count} hour", "{count} hours")
    if seconds >= 1.5 * 60:
        return counted(round(seconds / 60), "{count} minute", "{count} minutes")
    return counted(max(1, round(seconds)), "{count} second", "{count} seconds")
