"""The seven invariants of COMPACTION under random sequences of talk, notes, replies, failures of the model and the
store, restarts and session ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from compaction.context.build import build_payload
from compaction.errors import ContextOverflowError, SessionEndedError, StoreError
from compaction.events import RunFailed, RunLanded, RunSkipped, RunStarted
from compaction.language.text import ends_a_sentence
from compaction.model import CompactionState, SessionId
from compaction.notes import NoteBuffer
from compaction.payload import coverage
from compaction.ports import StoredMemory
from compaction.turn_buffer import CAPACITY
from rehearsal.roomtone.evenings.virtual_time import VirtualTimeLoop
from tests.compaction.rooms import MemoryRoom as Room
from tests.fakes.completion import Mood, MoodyModel
from tests.fakes.turn_store import InMemoryTurnStore, StoreFault

pytestmark = pytest.mark.slow

_T = TypeVar("_T")


class Evening(RuleBasedStateMachine):
    """One room, with as many sessions and processes as the random sequence of steps needs."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.faults: list[StoreFault] = []
        self.store = InMemoryTurnStore(fault=self._next_fault)
        self.model = MoodyModel()
        self.room: Room = Room(store=self.store, model=self.model)
        self.killed: list[Room] = []
        self.dropped: set[object] = set()
        self.sessions = 0
        self.acknowledged = 0
        self.notes_acknowledged: list[str] = []
        self.notes_taken = 0
        self.highest_cursor = 0

    def _next_fault(self, operation: str) -> StoreFault | None:
        return self.faults.pop(0) if self.faults else None

    def run(self, main: Coroutine[Any, Any, _T]) -> _T:
        return self.runner.run(main)

    def stored(self) -> StoredMemory:
        """Return what the store holds, read without planned faults."""
        faults, self.faults = self.faults, []
        stored = self.run(self.store.load(self.room.session_id))
        self.faults = faults
        return stored

    def _open(self) -> None:
        self.faults.clear()
        self.room = Room(
            store=self.store,
            model=self.model,
            session_id=SessionId(f"session-{self.sessions}"),
        )
        self.run(self.room.enter())

    @initialize()
    def begin(self) -> None:
        """Open the first session."""
        self._open()

    def teardown(self) -> None:
        self.faults.clear()
        self.run(self.room.leave())
        self.runner.close()

    # -- what happens ----------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 40))
    def people_talk(self, count: int) -> None:
        """People say some turns, and the store may fail on any of them."""
        for _ in range(count):
            try:
                turn = self.run(self.room.say())
            except StoreError:
                continue
            self.acknowledged = turn.seq + 1

    @rule(count=st.sampled_from([1, 5, 13, 48]))
    def screen_is_seen(self, count: int) -> None:
        """Some notes are added, and the store may fail on any of them."""
        for _ in range(count):
            self.notes_taken += 1
            name = f"note-{self.notes_taken}"
            # Notes that say something new: a fold has room for few of them.
            what = " ".join(f"{letter}{self.notes_taken}" for letter in "abcdefghijklmnopqrst")
            try:
                self.run(self.room.see(name, what))
            except StoreError:
                continue
            self.notes_acknowledged.append(name)

    @rule()
    def share_ends(self) -> None:
        """A screen share ends, and live notes become pending."""
        try:
            self.run(self.room.timeline.retire_live_notes())
        except StoreError:
            return

    @rule(budget=st.integers(60, 4_000), answering=st.booleans())
    def bot_replies(self, budget: int, answering: bool) -> None:
        """A context can be built while a run is in progress. Its payload covers every turn and fits any budget."""
        timeline = self.room.timeline
        turns = timeline.turns

        async def build() -> None:
            current = turns[-1] if answering and turns else None
            context = timeline.context(current=current, max_input_tokens=budget)
            for limit in (budget, 1_000_000):
                try:
                    payload = build_payload(context, system=["You take part."], max_input_tokens=limit)
                except ContextOverflowError:
                    assert limit == budget < 700
                    continue
                assert sum(part.tokens for part in payload) <= limit
                assert coverage(payload, timeline.total_turns).missing == ()
            assert limit == 1_000_000
            assert coverage(payload, timeline.total_turns).evicted == ()

        self.run(build())

    @rule(seconds=st.sampled_from([0.0, 0.5, 5.0, 25.0, 40.0, 300.0]))
    def time_passes(self, seconds: float) -> None:
        """Time passes, in which runs land, fail or time out."""
        self.run(asyncio.sleep(seconds))

    @rule(mood=st.sampled_from(Mood))
    def model_changes_its_mood(self, mood: Mood) -> None:
        """The model answers in another mood from now on."""
        self.model.mood = mood

    @rule(
        faults=st.lists(
            st.sampled_from([StoreFault.REFUSED, StoreFault.ANSWER_LOST, StoreFault.HANGS]), min_size=1, max_size=4
        )
    )
    def store_will_fail(self, faults: list[StoreFault]) -> None:
        """The next operations of the store fail."""
        self.faults.extend(faults)

    @rule(kindly=st.booleans())
    def process_restarts(self, kindly: bool) -> None:
        """The process ends by itself or is killed, and another process opens the session. Nothing that was stored is
        missing, and the session continues from the stored state.
        """
        if kindly:
            self.run(self.room.leave())
        else:
            for task in asyncio.all_tasks(self.runner.get_loop()):
                task.cancel()
            self.run(asyncio.sleep(0))
            # The killed room is kept, because garbage collection would close it and a killed process closes nothing.
            self.killed.append(self.room)
        stored = self.stored()
        assert stored.total_turns >= self.acknowledged
        self._open()
        timeline = self.room.timeline
        assert timeline.total_turns == stored.total_turns
        # The process may have ended between the storing of a note and of what that made pending.
        notes = NoteBuffer(stored.live_notes, stored.state.pending_notes).with_few_live()
        assert timeline.state == replace(stored.state, pending_notes=notes.pending)
        assert timeline.window == stored.window
        assert timeline.compactor.segments == stored.segments
        assert timeline.summary == stored.state.summary

    @precondition(lambda self: self.room.timeline.total_turns > 0)
    @rule()
    def session_ends(self) -> None:
        """The session ends, its end is stored, and another session begins."""
        timeline = self.room.timeline
        total = timeline.total_turns
        self.faults.clear()
        self.run(timeline.end())
        cursor = timeline.cursor
        stored = self.stored()
        assert stored.ended
        assert stored.total_turns == total
        assert (stored.state.cursor, stored.state.summary) == (cursor, timeline.state.summary)
        assert (stored.segments[-1].start, stored.segments[-1].end, stored.segments[-1].closing) == (
            cursor,
            total,
            True,
        )
        with pytest.raises(SessionEndedError):
            self.run(self.room.say())
        self.run(asyncio.sleep(100.0))
        assert self.stored() == stored, "a late result landed on an ended session"
        self.run(self.room.leave())
        self.sessions += 1
        self.acknowledged = 0
        self.notes_acknowledged = []
        self.highest_cursor = 0
        self._open()

    # -- what is always true ---------------------------------------------------------------------------------

    @invariant()
    def cursor_only_advances_by_whole_batches(self) -> None:
        """The cursor only moves forward, in whole batches, and never into the recent window (invariant 2 of
        COMPACTION).
        """
        timeline = self.room.timeline
        assert timeline.cursor >= self.highest_cursor
        assert timeline.cursor % 10 == 0
        assert timeline.cursor <= max(0, timeline.total_turns - 50)
        self.highest_cursor = timeline.cursor
        assert timeline.state.covered_through_turn == timeline.cursor - 1

    @invariant()
    def one_run_at_a_time(self) -> None:
        """Only one compaction runs at a time in a session (invariant 3 of COMPACTION)."""
        assert self.model.most_at_once <= 1

    @invariant()
    def notes_are_somewhere(self) -> None:
        """Every note is live, pending, or in a stored segment, or the log says that it fell out (invariant 4 of
        COMPACTION).
        """
        stored = self.stored()
        for line in self.room.logged("notes_dropped"):
            assert isinstance(line["note_ids"], list)
            self.dropped.update(line["note_ids"])
        folded = {name for segment in stored.segments for name in segment.note_ids}
        held = {note.id for note in (*stored.live_notes, *stored.state.pending_notes)}
        assert set(self.notes_acknowledged) <= folded | held | self.dropped
        assert not folded & held
        # A killed process may not have stored yet which fell out.
        assert len(self.room.timeline.state.pending_notes) <= 96 + 12

    @invariant()
    def summary_is_short_and_whole(self) -> None:
        """The summary is short and ends with a sentence (invariant 5 of COMPACTION)."""
        summary = self.room.timeline.summary
        if summary is None:
            assert self.room.timeline.cursor == 0
            return
        assert 0 < len(summary) <= 1_200
        assert ends_a_sentence(summary)

    @invariant()
    def memory_is_bounded(self) -> None:
        """The number of turns in memory is bounded (invariant 6 of COMPACTION)."""
        timeline = self.room.timeline
        assert len(timeline.turns) <= max(CAPACITY, timeline.total_turns - timeline.cursor)
        assert timeline.turns[-1:] == timeline.window[-1:]
        assert all(after.seq == before.seq + 1 for before, after in pairwise(timeline.turns))

    @invariant()
    def store_has_each_folded_turn_once(self) -> None:
        """The stored segments form a chain from turn 0 to the cursor, and the stored summary is the newest paragraph
        (invariant 7 of COMPACTION).
        """
        stored = self.stored()
        reached = 0
        for segment in stored.segments:
            assert segment.start == reached
            reached = segment.end
        assert reached == stored.state.cursor
        assert stored.state.summary == (stored.segments[-1].paragraph if stored.segments else None)
        assert stored.state == CompactionState() or stored.state.revision == len(stored.segments)

    @invariant()
    def every_run_is_told_from_start_to_end(self) -> None:
        """Every started run has one landing or one failure, unless it is still in progress. Two skips with the same
        reason are not reported in a row, unless the second one counts repetitions.
        """
        started = [event.run_id for event in self.room.events if isinstance(event, RunStarted)]
        ended = [event.run_id for event in self.room.events if isinstance(event, RunLanded | RunFailed)]
        assert len(set(started)) == len(started)
        assert ended == started[: len(ended)]
        assert len(started) - len(ended) <= 1
        for before, after in pairwise(self.room.events):
            if isinstance(before, RunSkipped) and isinstance(after, RunSkipped):
                assert before.reason != after.reason or after.repeated


TestEvening = Evening.TestCase
TestEvening.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
