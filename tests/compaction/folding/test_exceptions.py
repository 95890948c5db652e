"""Whatever is raised at any await or call of a fold ends in one failure of its run, and the next check may start again.

Every collaborator of the compactor is wrapped. A first pass counts the calls; then each of them raises once.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from structlog.testing import CapturingLogger

from compaction.errors import StoreError
from compaction.folding import compactor as compactor_module
from compaction.folding import fold_input, fold_work, ledger_view
from compaction.folding.compactor import Compactor
from compaction.folding.events import FoldFailed, FoldLanded, FoldStarted
from compaction.folding.fold_input import FoldInput
from compaction.folding.fold_parts import FoldParts
from compaction.folding.ledger_view import LedgerView
from compaction.folding.machine import FoldingMachine
from compaction.folding.outbox import Outbox
from compaction.folding.state import SessionState
from compaction.folding.summarisers import Summarisers
from compaction.folding.withheld import WithheldPeople
from compaction.model import CompactionState, Mode, Seq
from compaction.notes import NoteBuffer
from compaction.settings import CompactionSettings
from compaction.summary.ledger import SegmentLedger
from compaction.summary.port import ChapterFold, Fold
from compaction.timeline import Timeline
from tests.compaction.rooms import EVENING, Room
from tests.compaction.turn_store_contract import landing, segment, turn
from tests.fakes.turn_store import InMemoryTurnStore
from tests.fakes.virtual_time import LoopClock, run_virtually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import ModuleType

    from compaction.folding.events import CompactionEvent
    from compaction.summary.port import ChapterRequest, FoldRequest

SETTINGS = CompactionSettings()
# Longer than any pause after a failure.
RESTED_S = 600.0


class Mine:
    """Counts calls while it is armed, and raises `error` at call number `at`. `name`: the call that raised."""

    def __init__(self, at: int | None = None, error: BaseException | None = None, *, awaits_only: bool = False) -> None:
        self.at = at
        self.error = error
        self.awaits_only = awaits_only
        self.armed = False
        self.calls = 0
        self.name = ""

    def step(self, name: str, *, awaited: bool = False) -> None:
        """Count one call, or raise."""
        if not self.armed or (self.awaits_only and not awaited):
            return
        self.calls += 1
        if self.error is not None and self.at == self.calls:
            self.name = name
            raise self.error


class Mined:
    """Forwards everything to `inner`; each call of a method and each read of an attribute steps on the mine."""

    def __init__(self, inner: Any, mine: Mine, name: str) -> None:
        self._inner = inner
        self._mine = mine
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        path = f"{self._name}.{name}"
        if asyncio.iscoroutinefunction(value):
            return _awaited(value, self._mine, path)
        if callable(value):
            return _called(value, self._mine, path)
        self._mine.step(path)
        return value


def _awaited(method: Callable[..., Awaitable[Any]], mine: Mine, path: str) -> Callable[..., Awaitable[Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        mine.step(path, awaited=True)
        answer = await method(*args, **kwargs)
        mine.step(f"{path} answered", awaited=True)
        return answer

    return call


def _called(method: Callable[..., Any], mine: Mine, path: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        mine.step(path)
        answer = method(*args, **kwargs)
        return Mined(answer, mine, "ledger") if isinstance(answer, SegmentLedger) else answer

    return call


class Plain:
    """A summariser that says the same of everything."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.model = "plain-1" if name == "llm" else ""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return a gist and a paragraph."""
        return Fold(gist=f"They talked from {request.start}.", facts=(), paragraph="They talked.")

    async def fold_chapter(self, request: ChapterRequest) -> ChapterFold:
        """Return a chapter with a paragraph."""
        return ChapterFold(gist=f"They talked in {len(request.parts)} parts.", refs=(), paragraph="They talked on.")


class Workshop:
    """A compactor of mined parts over a store with `folded` batches and enough turns for the next batch."""

    def __init__(self, mine: Mine, *, folded: int, degraded: bool) -> None:
        self.mine = mine
        self.store = InMemoryTurnStore()
        self.folded = folded
        self.degraded = degraded
        self.events: list[CompactionEvent] = []

    async def open(self) -> None:
        """Fill the store and make the compactor."""
        total = self.folded * 10 + 61
        for seq in range(total):
            await self.store.append_turn(EVENING, turn(seq))
        for number in range(self.folded):
            made = replace(segment(number * 10, number * 10 + 10), degraded=self.degraded and number == 0, facts=())
            assert await self.store.land(replace(landing(made.start, made.end, revision=number), segment=made))
        stored = await self.store.load(EVENING)
        self.timeline, _ = Timeline.restored(stored.window, first=stored.state.cursor, total=total)
        self.outbox = Outbox(self.store, EVENING, stored_turns=total, timeout_s=SETTINGS.store_timeout_s)
        self.machine = FoldingMachine(
            SessionState.restored(stored.state, live=NoteBuffer(), ended=False),
            mode=Mode.SUMMARY,
            settings=SETTINGS,
            rng=random.Random(3),
        )
        log = structlog.wrap_logger(
            CapturingLogger(), processors=[], wrapper_class=structlog.make_filtering_bound_logger(0)
        )
        timeline, outbox = self._mined(self.timeline, "timeline"), self._mined(self.outbox, "outbox")
        parts = FoldParts(
            EVENING,
            machine=self._mined(self.machine, "machine"),
            timeline=timeline,
            outbox=outbox,
            input=FoldInput(
                EVENING, timeline=timeline, outbox=outbox, withheld=WithheldPeople(), strategy=SETTINGS.strategy
            ),
            summarisers=Summarisers(
                self._mined(Plain("llm"), "summariser"),
                self._mined(Plain("extractive"), "fallback"),
                strategy=SETTINGS.strategy,
                timeout_s=SETTINGS.timeout_s,
            ),
            clock=self._mined(LoopClock(), "clock"),
        )
        ledger = self._mined(SegmentLedger(stored.segments, stored.chapters), "ledger")
        self.compactor = Compactor(parts, LedgerView.of(ledger), log=self._mined(log, "log"), on_event=self._hear)

    def _mined(self, part: object, name: str) -> Any:
        return Mined(part, self.mine, name)

    def _hear(self, event: CompactionEvent) -> None:
        self.events.append(event)
        self.mine.step("listener")

    async def add_turns(self, count: int) -> None:
        """Add stored turns."""
        for _ in range(count):
            said = turn(self.timeline.total)
            self.timeline.append(said)
            self.outbox.put_turn(said)
        await self.outbox.flush()

    async def run_all(self) -> None:
        """Ask for runs and wait until no run is in flight."""
        self.compactor.check()
        await self.compactor.settle()


async def scenario(mine: Mine, *, folded: int, degraded: bool, overtaken: bool) -> None:
    """Let the mine go off in a run, and check that one failure was reported and that the next runs land."""
    room = Workshop(mine, folded=folded, degraded=degraded)
    await room.open()
    if overtaken:
        # Another process forgets words: only the revision moves.
        state = (await room.store.load(EVENING)).state
        after = CompactionState(state.cursor, state.revision + 1, "Forgotten.", 2.0)
        assert await room.store.land(
            replace(landing(0, 0, revision=state.revision), expected_cursor=state.cursor, segment=None, state=after)
        )
    mine.armed = True
    await room.run_all()
    mine.armed = False
    assert bool(mine.name) == (mine.at is not None), "the mine went off"
    assert room.machine.state.run is None, mine.name
    started = [event.run_id for event in room.events if isinstance(event, FoldStarted)]
    ended = [event.run_id for event in room.events if isinstance(event, FoldLanded | FoldFailed)]
    assert set(Counter(ended).values()) <= {1}, mine.name
    assert set(started) <= set(ended), mine.name
    if mine.at is not None and not overtaken:
        assert sum(isinstance(event, FoldFailed) for event in room.events) <= 1, mine.name
    for _ in range(4):
        await asyncio.sleep(RESTED_S)
        await room.run_all()
        await room.add_turns(10)
    stored = await room.store.load(EVENING)
    assert stored.state.cursor >= folded * 10 + 30, mine.name
    assert room.machine.state.memory == replace(stored.state, pending_notes=()), mine.name
    assert room.compactor.segments == stored.segments, mine.name
    assert not any(each.degraded for each in stored.segments), mine.name
    assert len(stored.chapters) == len(stored.segments) // 8, mine.name


SCENARIOS: dict[str, Any] = {
    "batch": {"folded": 0, "degraded": False, "overtaken": False},
    "repair": {"folded": 1, "degraded": True, "overtaken": False},
    "chapter": {"folded": 7, "degraded": False, "overtaken": False},
    "overtaken": {"folded": 1, "degraded": False, "overtaken": True},
}


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize(
    "error", [RuntimeError("Ada said so."), StoreError("The disk is full."), TimeoutError()], ids=repr
)
def test_every_call_may_raise(name: str, error: Exception) -> None:
    """An exception at any call leaves no run in flight, and everything is folded afterwards."""
    count = Mine()
    run_virtually(scenario(count, **SCENARIOS[name]))
    assert count.calls > 20
    for at in range(1, count.calls + 1):
        run_virtually(scenario(Mine(at, error), **SCENARIOS[name]))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_cancellation_inside_a_call_is_a_failure(name: str) -> None:
    """A cancellation that nobody asked the run for, at any await, fails the run like an exception."""
    count = Mine(awaits_only=True)
    run_virtually(scenario(count, **SCENARIOS[name]))
    assert count.calls >= 4
    for at in range(1, count.calls + 1):
        run_virtually(scenario(Mine(at, asyncio.CancelledError(), awaits_only=True), **SCENARIOS[name]))


@pytest.mark.parametrize(
    ("module", "function"),
    [
        (fold_input, "request_for_batch"),
        (fold_work, "fold_result"),
        (compactor_module, "failure_of"),
        (compactor_module, "clear_sentence_caches"),
        (ledger_view, "SegmentLedger"),
    ],
)
def test_every_function_of_a_fold_may_raise(module: ModuleType, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in the pure functions of a fold fails one run."""
    mine = Mine(1, ValueError("Ada said so."))
    monkeypatch.setattr(module, function, _called(getattr(module, function), mine, function))
    run_virtually(scenario(mine, **SCENARIOS["overtaken"]))


def test_a_cancelled_run_passes_the_cancellation_on() -> None:
    """Closing the session cancels the run, and no failure is reported."""

    async def main() -> None:
        room = Workshop(Mine(), folded=0, degraded=False)
        await room.open()
        room.compactor.check()
        task = next(each for each in asyncio.all_tasks() if each.get_name().startswith("compaction-"))
        await room.compactor.aclose()
        assert task.cancelled()
        assert not any(isinstance(event, FoldFailed) for event in room.events)

    run_virtually(main())


def test_a_mode_that_changes_while_a_run_starts_fails_one_run() -> None:
    """The mode `off` releases the turns of a run that has not begun to read them. Back in `summary` they are folded."""

    async def main() -> None:
        async with Room(mode=Mode.OFF) as room:
            await room.talk(300)
            await room.memory.set_mode(Mode.SUMMARY)
            room.memory.context(max_input_tokens=8_000)
            await room.memory.set_mode(Mode.OFF)
            await room.memory.settle()
            failures = [event for event in room.events if isinstance(event, FoldFailed)]
            assert [each.error for each in failures] == ["The fold broke."]
            await room.wait(RESTED_S)
            await room.memory.set_mode(Mode.SUMMARY)
            room.memory.context(max_input_tokens=8_000)
            await room.memory.settle()
            assert room.memory.cursor == 240
            assert len(room.memory.segments) == 24
            assert room.memory.segments[0].start == Seq(0)

    run_virtually(main())
