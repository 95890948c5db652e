"""The one list of what is wrong: what, since when, who must act, and the remedy.

Parts that can fail register a check here; the checks run when somebody asks. /readyz, /healthz and the metrics
(`bot.monitoring`), /status, the channel and the dashboard (`bot.room`) tell what is in this list, and nothing else. So
its sentences have no name and no word of anybody, and for people no address of this machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from bot.texts.text import OperatorText, Text, counted, joined, sentence_of, verbatim
from voice.circuit_breaker import Outage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from bot.clock import Clock
    from compaction.errors import StoreError


class FaultKind(StrEnum):
    """What is wrong. The values are public: they are in /readyz and in the metrics."""

    STARTING = "starting"
    DRAINING = "draining"
    TASK = "task"
    ROOM_DEAF = "room_deaf"
    ROOM_MUTE = "room_mute"
    DATABASE = "database"
    DISCORD = "discord"
    MODELS = "models"
    VOICE = "voice"
    TOOLS = "tools"
    DISK = "disk"
    PAGES = "pages"
    OVERLOAD = "overload"


class Actor(StrEnum):
    """Who must act. The values are public too."""

    OPERATOR = "operator"
    # Somebody on the Discord server.
    MEMBERS = "members"
    # It passes by itself.
    NOBODY = "nobody"


# For the operator.
SEE_LOG: Final = "The log says why (`roomtone tail`)."
# What people read in place of a remedy that is not for them.
_FOR_PEOPLE: Final = {
    Actor.OPERATOR: Text("Please tell the owner of this bot."),
    Actor.NOBODY: Text("This will end by itself."),
}


@dataclass(frozen=True, slots=True)
class HealthFault:
    """One thing that is wrong. `what`: a sentence that also says what happens instead. `remedy`: what whoever acts is
    told: what to do, after the cause if it is known. Only members of a server read it in their language. `since`:
    monotonic seconds; None: it does not matter.

    `blocks`: the bot cannot do its work; False: something stands in. `needs_restart`: it never passes by itself, and a
    new process would not have it. `over`: what a channel reads once this is over; empty: it never is; None: the channel
    is told nothing.
    """

    kind: FaultKind
    what: Text
    remedy: str = ""
    acts: Actor = Actor.OPERATOR
    since: float | None = None
    blocks: bool = True
    needs_restart: bool = False
    over: Text | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Return what tells it from others however long it lasts: its sentence without numbers, which change."""
        return (self.kind, self.what.template, *(each for each in self.what.values.values() if isinstance(each, str)))

    @property
    def sentence(self) -> Text:
        """Return what the channel is told. As a plain `str` it is what the operator is told."""
        return joined((self.what, self._advice))

    @property
    def _advice(self) -> Text:
        told = _FOR_PEOPLE.get(self.acts)
        return verbatim(self.remedy) if told is None else OperatorText("{text}", told, text=self.remedy or told)

    def status(self, now: float) -> Text:
        """Return what /status says. `now`: monotonic seconds."""
        lasts = "" if self.since is None else Text("It began {duration} ago.", duration=_duration(now - self.since))
        return joined((self.what, lasts, self._advice))


# What fails and works in turn must not fill the chat.
REPORT_AGAIN_AFTER_S: Final = 600.0

STARTING = HealthFault(
    FaultKind.STARTING,
    Text("I am still starting. I am loading the models and connecting to Discord."),
    acts=Actor.NOBODY,
)


def outage_fault(
    kind: FaultKind, part: Text, instead: Text, outage: Outage, *, blocks: bool = False, over: Text | None = None
) -> HealthFault:
    """Return the fault of a part that fails. `part`: its name within a sentence. `instead`: what happens now, a
    clause.
    """
    what = Text("{part} does not work, so {instead}.", part=part, instead=instead)
    if outage.retry_at is not None:
        what = Text("{part} does not work, so {instead}. I try it again by myself.", part=part, instead=instead)
    return HealthFault(
        kind,
        what,
        joined((sentence_of(outage.problem), SEE_LOG)),
        since=outage.since,
        blocks=blocks,
        over=over,
    )


def database_fault(problem: StoreError) -> HealthFault:
    """Return the fault of a database that does not take what is said."""
    return HealthFault(
        FaultKind.DATABASE,
        Text("I cannot save what is said, because the database does not take it. If I stop now, it is lost."),
        joined((sentence_of(problem), SEE_LOG)),
        over=Text("The database works again. I have saved what was said in the meantime."),
    )


def without_repeats(faults: Iterable[HealthFault]) -> list[HealthFault]:
    """Return what is wrong for the people of one room: what the process and the room say alike is told once, from when
    the first of both saw it.
    """
    # Of two the older one replaces the newer.
    return list(
        {each.what: each for each in sorted(faults, key=lambda fault: fault.since or 0.0, reverse=True)}.values()
    )[::-1]


class FaultDates:
    """Notes since when a fault has been there, if its check does not know."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[tuple[str, ...], float] = {}

    def dated(self, faults: Iterable[HealthFault]) -> list[HealthFault]:
        """Return the faults of now, with since when. Call it every few seconds."""
        now = self._clock.monotonic()
        found = list(faults)
        self._since = {each.key: self._since.get(each.key, now) for each in found}
        return [replace(each, since=self._since[each.key]) if each.since is None else each for each in found]


class ToldFaults:
    """Remembers which faults a channel, or the operator, was told."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, ...], Text] = {}
        self._told_at: dict[tuple[str, ...], float] = {}

    def news(self, faults: Iterable[HealthFault], now: float) -> list[Text]:
        """Return the sentences to write now, for what is over and for what has begun. `now`: monotonic seconds."""
        there = {fault.key: fault for fault in faults if fault.over is not None}
        news = [self._told.pop(each) for each in list(self._told) if each not in there]
        for what, fault in there.items():
            if what not in self._told and now - self._told_at.get(what, float("-inf")) >= REPORT_AGAIN_AFTER_S:
                self._told[what], self._told_at[what] = fault.over or verbatim(""), now
                news.append(fault.sentence)
        return [each for each in news if each]


class Health:
    """The checks of all parts that can fail. Code that opens such a part adds its check, which returns at once.

    `rooms`: returns the faults of the rooms; there are none at first. Not thread-safe.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.rooms: Callable[[], Iterable[HealthFault]] = list
        self._checks: list[Callable[[], Iterable[HealthFault]]] = []
        self._dates = FaultDates(clock)
        self._started = False
        self._tasks: tuple[asyncio.Task[object], ...] = ()

    def now(self) -> float:
        """Return the monotonic seconds in which faults tell since when they are there."""
        return self._clock.monotonic()

    def add_check(self, check: Callable[[], Iterable[HealthFault]]) -> None:
        self._checks.append(check)

    def add_outage(
        self,
        kind: FaultKind,
        part: Text,
        instead: Text,
        outage: Callable[[], Outage | None],
        *,
        over: Text | None = None,
    ) -> None:
        """Add the check of one part (see `outage_fault`). `outage`: returns that of now."""
        self.add_check(
            lambda: [] if (found := outage()) is None else [outage_fault(kind, part, instead, found, over=over)]
        )

    def add_missing(self, kind: FaultKind, part: Text, *, instead: Text, problem: Exception) -> None:
        """Record a part that is missing until the bot is restarted."""
        missing = Outage(self._clock.monotonic(), None, problem)
        self.add_outage(kind, part, instead, lambda: missing)

    def started(self, tasks: Iterable[asyncio.Task[object]] = ()) -> None:
        """Note that everything is open. `tasks`: those that run until the process ends."""
        self._started = True
        self._tasks = tuple(tasks)

    def process_faults(self) -> list[HealthFault]:
        """Return what is wrong in the process, whatever its rooms say."""
        found = [] if self._started else [STARTING]
        found += [_dead(task.get_name()) for task in self._tasks if task.done()]
        found += [fault for check in self._checks for fault in check()]
        return self._dates.dated(found)

    def faults(self) -> list[HealthFault]:
        """Return everything that is wrong now; none: everything works. While the bot ends, that is the only one."""
        found = [*self.process_faults(), *self.rooms()]
        return [fault for fault in found if fault.kind is FaultKind.DRAINING] or found


def _dead(task: str) -> HealthFault:
    return HealthFault(
        FaultKind.TASK,
        Text("One of my tasks has stopped ({name}). This is an error in me.", name=task),
        f"Restart me. {SEE_LOG}",
        needs_restart=True,
    )


def _duration(seconds: float) -> Text:
    if seconds >= 1.5 * 3_600:
        return counted(round(seconds / 3_600), "{count} hour", "{count} hours")
    if seconds >= 1.5 * 60:
        return counted(round(seconds / 60), "{count} minute", "{count} minutes")
    return counted(max(1, round(seconds)), "{count} second", "{count} seconds")
