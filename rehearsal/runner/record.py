"""Everything that was said and observed in one run, and waiting for more of it.

The stage writes what people said, the bot's reports arrive through `observe`; expectations and report read it
afterwards. Belongs to one run and one loop; not thread-safe.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rehearsal.judge.matching import Span
from rehearsal.runner.observation import (
    CompactionFailed,
    CompactionLanded,
    CompanionCrashed,
    ContextBuilt,
    Observation,
    PacketFigures,
    Problem,
    ReplySpoken,
    RoomLeft,
    RoomReady,
    TurnRecorded,
    UtteranceHeard,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Spoken:
    """One `say` step that is under way or over. Times are of the voice, monotonic seconds.

    While it is under way `voice_ended_at` is what the clip promises. `wants_answer`: whether the bot is to answer it.
    """

    number: int
    step_id: str
    speaker_id: int
    speaker: str
    reference: str
    voice_started_at: float
    voice_ended_at: float
    over: bool = False
    wants_answer: bool | None = None

    @property
    def span(self) -> Span:
        """Return it as matching wants it."""
        return Span(self.speaker_id, self.reference, self.voice_started_at, self.voice_ended_at)


class Record:
    """What happened so far. Lists are in the order in which things were reported."""

    def __init__(self) -> None:
        """Begin with an empty record."""
        self.live_at = 0.0
        self.spoken: dict[int, Spoken] = {}
        self.heard: list[UtteranceHeard] = []
        self.turns: list[TurnRecorded] = []
        self.compactions: list[CompactionLanded] = []
        self.failed_compactions: list[CompactionFailed] = []
        self.contexts: list[ContextBuilt] = []
        self.replies: list[ReplySpoken] = []
        self.problems: list[Problem] = []
        self.rooms_ready = 0
        self.crash: CompanionCrashed | None = None
        self.failed_waits: list[str] = []
        # When the steps with an id began and ended, monotonic seconds.
        self.marks: dict[str, tuple[float, float]] = {}
        # People who were in the channel, by id, with (entered, left) in monotonic seconds.
        self.presence: dict[int, list[tuple[float, float]]] = {}
        # Reports of anything but counters, so that quiet can be told.
        self.activity = 0
        self._figures: list[dict[str, int]] = [{}]
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    @property
    def speeches(self) -> tuple[Spoken, ...]:
        """Return what was said, in time order."""
        return tuple(sorted(self.spoken.values(), key=lambda spoken: (spoken.voice_started_at, spoken.number)))

    @property
    def taken(self) -> tuple[UtteranceHeard, ...]:
        """Return what was heard and not dropped."""
        return tuple(heard for heard in self.heard if heard.dropped_reason is None)

    @property
    def packets(self) -> dict[str, int]:
        """Return the counters, summed over the bot's processes; the four that always exist come first."""
        names = ["received", "lost", "concealed", "dave_failures"]
        names += sorted({name for figures in self._figures for name in figures} - set(names))
        return {name: sum(figures.get(name, 0) for figures in self._figures) for name in names}

    def say(self, spoken: Spoken) -> None:
        """Note that something is being said, or was (the same `number` again)."""
        self.spoken[spoken.number] = spoken
        self._wake()

    def new_process(self) -> None:
        """The bot starts again: its counters begin at nothing."""
        self._figures.append({})

    def observe(self, observation: Observation) -> None:
        """Take one report of the bot's and wake whoever waited for it."""
        match observation:
            case UtteranceHeard():
                self.heard.append(observation)
            case TurnRecorded():
                self.turns.append(observation)
            case CompactionLanded():
                self.compactions.append(observation)
            case CompactionFailed():
                self.failed_compactions.append(observation)
            case ContextBuilt():
                self.contexts.append(observation)
            case ReplySpoken():
                self.replies.append(observation)
            case PacketFigures():
                self._figures[-1] = dict(observation.counters)
                return
            case Problem():
                self.problems.append(observation)
            case CompanionCrashed():
                self.crash = observation
            case RoomReady():
                self.rooms_ready += 1
            case RoomLeft():
                pass
        self.activity += 1
        self._wake()

    def enter(self, user_id: int, at: float) -> None:
        """Note that somebody can hear from now on."""
        self.presence.setdefault(user_id, []).append((at, float("inf")))

    def leave(self, user_id: int, at: float) -> None:
        """Note that somebody is gone."""
        stays = self.presence.get(user_id)
        if stays:
            stays[-1] = (stays[-1][0], at)

    def present(self, since: float, until: float) -> tuple[int, ...]:
        """Return who was there for all of this time, in order of first coming."""
        return tuple(
            user_id
            for user_id, stays in self.presence.items()
            if any(entered <= since and until <= left for entered, left in stays)
        )

    async def until(self, condition: Callable[[], bool], *, timeout_s: float) -> bool:
        """Wait until `condition` holds after some report; return False when the time was up first.

        *Cancellation*: safe; the waiter is forgotten.
        """
        if condition():
            return True
        waiter = (condition, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter[1]
        except TimeoutError:
            return condition()
        finally:
            self._waiters.remove(waiter)
        return True

    def _wake(self) -> None:
        for condition, future in self._waiters:
            if not future.done() and condition():
                future.set_result(None)
