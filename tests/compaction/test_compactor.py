"""The compactor carries out the decisions of the fold machine: runs, failures, lost answers and session ends, with one
log line each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace

import pytest

from compaction.errors import RequestTooLongError, StoreError
from compaction.events import CompactionEvent, RunFailed, RunLanded
from compaction.model import CompactionState, Note, NoteId, SessionId, TurnKind
from compaction.ports import CompletionAnswer, CompletionRequest, StoredMemory
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import FOLD_TIMEOUT_S, Fold, FoldRequest
from compaction.window import RETRY_BASE_S
from rehearsal.roomtone.evenings.virtual_time import EPOCH_S
from tests.compaction.rooms import EVENING
from tests.compaction.rooms import MemoryRoom as Room
from tests.compaction.turn_store_contract import landing
from tests.fakes.completion import Mood, MoodyModel
from tests.fakes.turn_store import InMemoryTurnStore, StoreFault
from tests.fakes.virtual_time import virtually

COMMON = {"session_id", "guild_id", "compaction_mode", "run_id"}


def of(events: list[CompactionEvent], kind: type[CompactionEvent]) -> list[CompactionEvent]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.covers("1.10", "1.18")
@pytest.mark.parametrize(
    ("mood", "error_class", "timed_out", "retryable"),
    [
        (Mood.OUTAGE, "CompletionError", False, True),
        (Mood.WRONG_KEY, "CompletionError", False, False),
        (Mood.HANGS, "TimeoutError", True, True),
        (Mood.BROKEN, "KeyError", False, True),
        (Mood.CANCELLED, "CancelledError", False, True),
        (Mood.BLANK, "SummaryRefusedError", False, True),
        (Mood.ERROR_TEXT, "SummaryRefusedError", False, True),
        (Mood.REFUSAL, "SummaryRefusedError", False, True),
        (Mood.ANSWER, "SummaryRefusedError", False, True),
        (Mood.COPY, "SummaryRefusedError", False, True),
        (Mood.GARBAGE, "SummaryRefusedError", False, True),
        (Mood.LINES, "SummaryRefusedError", False, True),
    ],
)
@virtually
async def test_each_failure_of_the_model_is_told_and_loses_nothing(
    mood: Mood, error_class: str, timed_out: bool, retryable: bool
) -> None:
    """Each failure of the model is reported with its cause. Nothing moves, no turn is lost, and once the model is back
    the batch lands.
    """
    async with Room(model=MoodyModel(mood)) as room:
        await room.begin_fold()
        await asyncio.sleep(FOLD_TIMEOUT_S + 1.0)
        told = of(room.events, RunFailed)[0]
        assert isinstance(told, RunFailed)
        assert (told.error_class, told.timeout, told.retryable) == (error_class, timed_out, retryable)
        assert told.model == "moody-1"
        for _ in range(3 if error_class != "SummaryRefusedError" else 3 - 2):
            assert room.sent().verbatim == ((0, 60),)
            await asyncio.sleep(200.0)
        assert (room.timeline.cursor, room.timeline.summary, room.timeline.compactor.segments) == (0, None, ())
        room.model.mood = Mood.GOOD
        await room.fold()
        assert room.timeline.cursor == 10


@pytest.mark.covers("1.18")
@pytest.mark.parametrize("mood", [Mood.BLANK, Mood.REFUSAL, Mood.ANSWER, Mood.COPY, Mood.GARBAGE, Mood.LINES])
@virtually
async def test_a_model_that_never_answers_as_asked_stalls_nothing(mood: Mood) -> None:
    """After the third answer about a batch that is no summary, quotes fold it; each failure is told once. The next
    batch is the model's again, which writes the summary anew.
    """
    async with Room(model=MoodyModel(mood)) as room:
        await room.talk(71)
        for _ in range(3 + 1):
            assert room.timeline.cursor == 0
            room.sent()
            await asyncio.sleep(200.0)
        assert room.timeline.cursor == 10
        assert room.timeline.summary is not None
        assert [each.prompt_version for each in room.timeline.compactor.segments] == ["extractive"]
        assert len(of(room.events, RunFailed)) >= 3
        room.model.mood = Mood.GOOD
        await room.fold()
        assert room.timeline.cursor == 20
        assert "Previous summary (incorporate and condense): none." in room.model.calls[-1].prompt


class _TooSmall(MoodyModel):
    """A model that cannot take any request."""

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        self.calls.append(request)
        raise RequestTooLongError("This does not fit the model.", retryable=False)


@virtually
async def test_a_batch_that_the_model_cannot_take_stalls_nothing() -> None:
    """It would not fit later either, so quotes fold it. The model is asked about the next one."""
    async with Room(model=_TooSmall()) as room:
        await room.talk(81)
        for _ in range(6):
            room.sent()
            await asyncio.sleep(200.0)
        assert room.timeline.cursor >= 10
        assert len(room.model.calls) > 3


@virtually
async def test_no_model_is_asked_while_the_store_takes_nothing() -> None:
    """With a full disk what the model makes could not be stored, so nobody pays for it. Later the fold lands."""
    async with Room() as room:
        await room.talk(61)
        room.store.fault = lambda _: StoreFault.REFUSED
        for _ in range(5):
            with pytest.raises(StoreError):
                await room.say()
            room.sent()
            await asyncio.sleep(300.0)
        assert (room.timeline.cursor, room.model.calls) == (0, [])
        failed = {each.error_class for each in room.events if isinstance(each, RunFailed)}
        assert failed == {"StoreError"}
        room.store.fault = None
        await room.fold()
        assert (room.timeline.cursor, room.timeline.store_queue.waiting) == (10, 0)


@virtually
async def test_landing_whose_answer_was_lost_is_found_again() -> None:
    """If the answer to a landing is lost, the store refuses the next attempt, and the session goes on from the stored
    state.
    """
    lost = [StoreFault.ANSWER_LOST]
    store = InMemoryTurnStore(fault=lambda operation: lost.pop() if operation == "land" and lost else None)
    async with Room(store=store) as room:
        await room.talk(61)
        await room.fold()
        assert room.timeline.cursor == 0
        assert (await store.load(EVENING)).state.cursor == 10
        await asyncio.sleep(5.0)
        await room.fold()
        stored = await store.load(EVENING)
        assert room.timeline.state == stored.state
        assert room.timeline.compactor.segments == stored.segments
        assert len(stored.segments) == 1


@virtually
async def test_end_after_a_lost_answer_closes_what_is_stored() -> None:
    """If the answer to a landing was lost, the closing segment begins at the stored cursor and not at the cursor in
    memory.
    """
    lost = [StoreFault.ANSWER_LOST]
    store = InMemoryTurnStore(fault=lambda operation: lost.pop() if operation == "land" and lost else None)
    async with Room(store=store) as room:
        await room.talk(61)
        await room.fold()
        await room.timeline.end()
        stored = await store.load(EVENING)
        assert stored.ended
        assert [(each.start, each.end, each.closing) for each in stored.segments] == [
            (0, 10, False),
            (10, 61, True),
        ]


@pytest.mark.parametrize("fault", [StoreFault.REFUSED, StoreFault.ANSWER_LOST, StoreFault.HANGS])
@virtually
async def test_end_can_be_tried_again(fault: StoreFault) -> None:
    """A store failure at the end raises an error; a later call succeeds and no turn is lost."""
    faults: dict[str, StoreFault] = {}
    store = InMemoryTurnStore(fault=lambda operation: faults.pop(operation, None))
    async with Room(store=store) as room:
        await room.talk(12)
        faults.update(load=fault, close=fault)
        for _ in range(2):
            with pytest.raises(StoreError):
                await room.timeline.end()
        await room.timeline.end()
        await room.timeline.end()
        stored = await store.load(EVENING)
        assert stored.ended
        assert [(each.start, each.end) for each in stored.segments] == [(0, 12)]


@virtually
async def test_end_waits_its_deadline_and_no_longer() -> None:
    """The end of a session waits for a hanging run until the deadline. The run is then dropped, and its result never
    lands.
    """
    async with Room(model=MoodyModel(Mood.HANGS)) as room:
        await room.begin_fold()
        began = asyncio.get_running_loop().time()
        await room.timeline.end()
        assert asyncio.get_running_loop().time() - began == pytest.approx(3.0)
        stored = await room.store.load(EVENING)
        assert (stored.state, stored.ended) == (CompactionState(), True)
        assert [(each.start, each.end, each.closing) for each in stored.segments] == [(0, 61, True)]
        (told,) = of(room.events, RunFailed)
        assert isinstance(told, RunFailed)
        assert (told.error_class, told.next_retry_s) == ("CompletionError", None)


@virtually
async def test_end_waits_for_what_is_being_stored() -> None:
    """If the write of a landing were cancelled, nobody would know whether its turns are folded."""
    store = InMemoryTurnStore(fault=lambda operation: StoreFault.HANGS if operation == "land" else None)
    async with Room(store=store) as room:
        await room.begin_fold()
        await asyncio.sleep(1.0)
        began = asyncio.get_running_loop().time()
        await room.timeline.end()
        assert asyncio.get_running_loop().time() - began == pytest.approx(10.0 - 1.0)
        assert [(each.start, each.closing) for each in (await store.load(EVENING)).segments] == [(0, True)]


@virtually
async def test_run_that_lands_within_the_deadline_is_kept() -> None:
    """A run that lands within the deadline is kept, and the closing segment begins where that run ended."""
    async with Room(model=MoodyModel(Mood.SLOW)) as room:
        await room.begin_fold()
        await asyncio.sleep(40.0 - 2.0)
        await room.timeline.end()
        stored = await room.store.load(EVENING)
        assert [(each.start, each.end, each.closing) for each in stored.segments] == [
            (0, 10, False),
            (10, 61, True),
        ]


@virtually
async def test_another_process_on_the_same_session_is_noticed() -> None:
    """If another process landed first in the same session, this session takes over the stored state."""
    async with Room(model=MoodyModel(Mood.SLOW)) as room:
        await room.begin_fold()
        assert await room.store.land(landing(0, 10, revision=0))
        await room.timeline.settle()
        assert room.timeline.state == (await room.store.load(EVENING)).state
        assert room.timeline.cursor == 10
        assert room.sent().missing == ()


class _Asked(InMemoryTurnStore):
    """A store that runs `meanwhile` in the room while it answers `load`."""

    meanwhile: Callable[[], Coroutine[None, None, None]] | None = None

    async def load(self, session_id: SessionId) -> StoredMemory:
        stored = await super().load(session_id)
        if self.meanwhile is not None:
            self.waiting = asyncio.create_task(self.meanwhile(), name="meanwhile")
            await asyncio.sleep(0)
        return stored


@virtually
async def test_a_share_that_ends_while_the_store_is_asked_loses_no_note() -> None:
    """Notes that become pending while the store is read are not taken for folded or forgotten ones, although the store
    does not know yet that they are pending.
    """
    store = _Asked()
    async with Room(store=store, model=MoodyModel(Mood.SLOW)) as room:
        await room.talk(61)
        await room.see("n1")
        room.sent()
        assert await store.land(landing(0, 10, revision=0))
        store.meanwhile = room.timeline.retire_live_notes
        await room.timeline.settle()
        store.meanwhile = None
        await store.waiting
        assert [note.id for note in room.timeline.state.pending_notes] == ["n1"]
        assert room.timeline.state == (await store.load(EVENING)).state


@virtually
async def test_a_reply_that_comes_while_the_store_is_asked_keeps_no_words() -> None:
    """It was made of the words as they were before somebody had some forgotten."""
    store = _Asked()
    async with Room(store=store) as room:
        await room.talk(3)
        changed = CompactionState(revision=1, summary="Forgotten.", last_at=2.0)
        assert await store.land(replace(landing(0, 0, revision=0), state=changed))

        async def reply() -> None:
            await room.say("Bob said 4411.", kind=TurnKind.ASSISTANT)

        store.meanwhile = reply
        assert await room.timeline.refresh()
        store.meanwhile = None
        await store.waiting
        stored = await store.load(EVENING)
        assert [turn.parts for turn in (stored.window[3], room.timeline.turns[3])] == [(), ()]


@virtually
async def test_a_fold_during_which_somebody_opts_out_is_thrown_away() -> None:
    """It was shown their words. The next one is not."""
    out: set[str] = set()
    async with Room(model=MoodyModel(Mood.SLOW)) as room:
        room.timeline.withhold(lambda: frozenset(out))
        await room.begin_fold()
        await asyncio.sleep(1.0)
        out.add("id-Ada")
        failed = await room.timeline.settle()
        assert failed is not None
        assert (failed.error_class, room.timeline.cursor) == ("SummaryRefusedError", 0)
        await asyncio.sleep(5.0)
        await room.fold()
        assert room.timeline.cursor == 10
        assert ["Ada: " in call.prompt for call in room.model.calls] == [True, False]


class _Stubborn:
    """A summariser that ignores its first cancellation."""

    name = "llm"
    model = "stubborn"

    def __init__(self) -> None:
        self.cancelled = 0

    async def fold(self, request: FoldRequest) -> Fold:
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            self.cancelled += 1
        return await ExtractiveSummariser().fold(request)


@virtually
async def test_summariser_that_swallows_its_cancellation_is_ignored() -> None:
    """A summariser that was cancelled at the end of the session still answers, and its answer is ignored."""
    stubborn = _Stubborn()
    async with Room(summariser=stubborn) as room:
        await room.begin_fold()
        await asyncio.sleep(0)
        await room.timeline.end()
        await asyncio.sleep(1.0)
        assert stubborn.cancelled == 1
        assert not of(room.events, RunLanded)
        stored = await room.store.load(EVENING)
        assert [(each.start, each.closing) for each in stored.segments] == [(0, True)]


class _SlowToEnd:
    """A summariser that hangs, and once it is cancelled ends a little after the next run would be due."""

    name = "llm"
    model = "slow to end"

    async def fold(self, request: FoldRequest) -> Fold:
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(RETRY_BASE_S + 0.5)
        raise AssertionError("it is always cancelled")


@virtually
async def test_closing_waits_for_a_run_that_was_overtaken() -> None:
    """No other begins while it is still ending, and no task of the session outlives it."""
    room = Room(summariser=_SlowToEnd())
    async with room:
        await room.begin_fold()
        await asyncio.sleep(0)
        changed = CompactionState(revision=1, summary="Forgotten.", last_at=2.0)
        assert await room.store.land(replace(landing(0, 0, revision=0), state=changed))
        assert await room.timeline.refresh()
        await asyncio.sleep(RETRY_BASE_S)
        room.sent()
        running = [task for task in asyncio.all_tasks() if task.get_name().startswith("compaction-")]
        assert len(running) == 1
    assert all(task.done() for task in running)


@virtually
async def test_closing_segment_is_made_after_every_other() -> None:
    """Its time is later than that of the last landing, also where the clock was set back: times tell which is newer."""
    async with Room() as room:
        await room.talk(61)
        await room.fold()
        state = room.timeline.state
        ahead = replace(state, revision=state.revision + 1, last_at=9e9)
        assert await room.store.land(replace(landing(0, 0, revision=1), expected_cursor=state.cursor, state=ahead))
        await room.timeline.refresh()
        await room.timeline.end()
        closing = (await room.store.load(EVENING)).segments[-1]
        assert closing.closing
        assert closing.created_at > 9e9


# -- notes ---------------------------------------------------------------------------------------------------


@pytest.mark.covers("1.4", "1.6")
@pytest.mark.parametrize("by_model", [True, False])
@virtually
async def test_no_note_is_folded_that_no_fold_was_shown(by_model: bool) -> None:
    """Each fold tells the newest notes, as many as have room for some words in 400 characters, with their reason. The
    others wait for the next one. By quotes and by a model alike.
    """
    room = Room(summariser=None if by_model else ExtractiveSummariser())
    async with room:
        await room.talk(61)
        for number in range(40):
            what = f"page{number} {chr(97 + number % 26) * 170}"
            await room.timeline.add_note(Note(NoteId(f"n{number}"), EPOCH_S, "Bob", what, "the picture changed"))
        await room.timeline.retire_live_notes()
        left = 40
        while left:
            await room.fold()
            newest = room.timeline.compactor.segments[-1]
            shown = range(left - len(newest.note_ids), left)
            left = shown.start
            assert 4 < len(shown) < 17 or not left
            assert newest.note_ids == tuple(f"n{number}" for number in shown)
            assert [note.id for note in room.timeline.state.pending_notes] == [f"n{number}" for number in range(left)]
            told = room.model.calls[-1].prompt if by_model else " ".join(fact.text for fact in newest.facts)
            assert all(f"page{number} " in told for number in shown)
            assert "Bob's screen (the picture changed): page" in told
            await room.talk(10)
        landed = room.logged("voice_context_compaction_completed")
        assert sum(line["folded_note_count"] for line in landed) == 40  # type: ignore[misc]


@pytest.mark.covers("1.15")
@virtually
async def test_notes_that_fall_out_are_logged_and_begin_no_fold() -> None:
    """While people watch in silence, 48 new notes begin a fold, not those that an earlier one had no room for. Of more
    than 96 that wait the oldest fall out, and the log says which.
    """
    async with Room(summariser=ExtractiveSummariser()) as room:
        for number in range(4 * 48):
            words = " ".join(f"{letter}{number}" for letter in "abcdefghijklmnopqrstuvwxyz")
            await room.see(f"n{number}", words)
            await room.timeline.settle()
        assert len(room.timeline.compactor.segments) == 3
        folded = {name for each in room.timeline.compactor.segments for name in each.note_ids}
        dropped = [name for line in room.logged("notes_dropped") for name in line["note_ids"]]  # type: ignore[attr-defined]
        waiting = [note.id for note in (*room.timeline.state.pending_notes, *room.timeline.live_notes)]
        assert len(waiting) == 96 + 12
        assert len(dropped) == len(set(dropped)) > 0
        assert sorted([*folded, *dropped, *waiting]) == sorted(f"n{number}" for number in range(4 * 48))
        assert room.timeline.state == (await room.store.load(EVENING)).state


# -- the log -------------------------------------------------------------------------------------------------


@pytest.mark.covers("1.21")
@virtually
async def test_log_lines_have_exactly_their_fields() -> None:
    """Each log line has exactly the fields of spec 1, our own, and those that identify the session."""
    model = MoodyModel(Mood.OUTAGE)
    async with Room(model=model) as room:
        await room.talk(60)
        room.sent()
        await room.say()
        room.sent()
        await asyncio.sleep(5.0)
        model.mood = Mood.GOOD
        await room.fold()
        expected = {
            "voice_context_compaction_skipped": {
                "reason",
                "cursor",
                "total_turns",
                "eligible_count",
                "threshold",
                "pending_note_count",
                "repeated",
            },
            "voice_context_compaction_started": {
                "cursor",
                "batch_size",
                "recent_start",
                "pending_note_count",
                "summariser",
                "model",
            },
            "voice_context_compaction_completed": {
                "old_cursor",
                "new_cursor",
                "covered_through_turn",
                "summary_chars",
                "latency_ms",
                "prompt_tokens",
                "completion_tokens",
                "folded_note_count",
                "unsourced",
            },
            "voice_context_compaction_failed": {
                "cursor",
                "batch_size",
                "pending_note_count",
                "model",
                "error_class",
                "error",
                "timeout",
                "retryable",
                "attempt",
                "next_retry_s",
                "latency_ms",
            },
        }
        for name, fields in expected.items():
            lines = room.logged(name)
            assert lines, name
            for line in lines:
                assert set(line) == fields | COMMON
                assert (line["session_id"], line["guild_id"]) == ("evening", "guild")
                assert line["compaction_mode"] == "summary"
        (completed,) = room.logged("voice_context_compaction_completed")
        assert (completed["old_cursor"], completed["new_cursor"], completed["covered_through_turn"]) == (0, 10, 9)
        assert (completed["prompt_tokens"], completed["completion_tokens"]) == (500, 80)


@pytest.mark.covers("1.18")
@pytest.mark.parametrize(
    ("mood", "said", "told"),
    [
        (Mood.OTHER_SCRIPT, None, "summary_in_another_script"),
        (Mood.CUT_OFF, None, "answer_cut_off"),
        (Mood.INVENTS, None, "facts_without_turns"),
        (Mood.COPY, None, "SummaryRefusedError"),
        (Mood.SLOW, None, 40_000.0),
        (Mood.GOOD, "Er sagte 「明日行きます」, und סבתא \u202eשרה\u202c bringt 3 कमल.", 0.0),
        (Mood.GOOD, "\u200fשרה מביאה את העוגה ביום שישי.", 0.0),
        (Mood.GOOD, "😀🎉👩\u200d👩\u200d👧", 0.0),
        (Mood.GOOD, "x" * 2_000, 0.0),
    ],
)
@virtually
async def test_one_line_of_a_fold_tells_why(mood: Mood, said: str | None, told: str | float) -> None:
    """Beside the events that each fold has. What is slow, or hard to read, is told by these alone."""
    async with Room(model=MoodyModel(mood)) as room:
        for _ in range(61):
            await room.say(said)
        for _ in range(4):
            room.sent()
            await asyncio.sleep(200.0)
        assert room.timeline.cursor == 10
        flawed, failed, landed = map(
            room.logged, ("fold_flawed", "voice_context_compaction_failed", "voice_context_compaction_completed")
        )
        why = [*(line["reason"] for line in flawed), *(line["error_class"] for line in failed)]
        assert why == [] if isinstance(told, float) else why in ([[told]], [told] * 3)
        assert [line["latency_ms"] for line in landed] == [told if isinstance(told, float) else 0.0]
        assert len(room.logged("voice_context_compaction_started")) == len(failed) + len(landed)
        assert {call.kwargs["event"] for call in room.log.calls if "compaction" not in call.kwargs["event"]} <= {
            "model_context_built",
            "fold_flawed",
        }


@virtually
async def test_log_never_holds_what_people_said() -> None:
    """No log line has the words of people, neither for a landing nor for a refused text that repeats them."""
    for mood in Mood:
        async with Room(model=MoodyModel(mood), session_id=SessionId(f"{mood.name}")) as room:
            for _ in range(61):
                await room.say("The secret word is xylophone.")
            await room.see("n", "xylophones")
            room.sent()
            await asyncio.sleep(400.0)
            await room.timeline.end()
            for call in room.log.calls:
                shown = {key: value for key, value in call.kwargs.items() if key != "exc_info"}
                assert "xylophone" not in str(shown)


@virtually
async def test_listener_that_raises_stops_nothing() -> None:
    """If the listener raises an exception, the exception is logged and the run lands."""
    room = Room(deaf=True)
    async with room:
        await room.talk(61)
        await room.fold()
        assert room.timeline.cursor == 10
        assert {line["error_class"] for line in room.logged("compaction_listener_failed")} == {"RuntimeError"}
