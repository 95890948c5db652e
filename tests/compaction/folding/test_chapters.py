"""Chapters over eight segments: one after each landing, never over a segment that waits for its repair."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from compaction.errors import CompletionError, SummaryRefusedError
from compaction.folding.events import FoldFailed, FoldLanded, FoldStarted
from compaction.folding.next_run import CHAPTER_ATTEMPTS
from compaction.model import CompactionState, Mode, Seq, Strategy
from compaction.ports import Landing
from compaction.settings import CompactionSettings, Trigger
from compaction.summary.port import CHAPTER_PARTS, ChapterFold, Fold
from tests.compaction.rooms import EVENING, Room
from tests.compaction.turn_store_contract import fill, segment
from tests.fakes.turn_store import Fault, InMemoryTurnStore
from tests.fakes.virtual_time import run_virtually

if TYPE_CHECKING:
    from compaction.folding.events import CompactionEvent
    from compaction.summary.port import ChapterRequest, FoldRequest

EVERY_TURN = CompactionSettings(trigger=Trigger.TURN)


class ModelOfChapters:
    """A model that says little. `chapter_error` and `error` are raised instead of an answer."""

    name = "llm"
    model = "chapters-1"

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.chapter_error: Exception | None = None
        self.requests: list[ChapterRequest] = []

    async def fold(self, request: FoldRequest) -> Fold:
        """Fold, or raise `error`."""
        if self.error is not None:
            raise self.error
        return Fold(gist=f"They talked from turn {request.start}.", facts=())

    async def fold_chapter(self, request: ChapterRequest) -> ChapterFold:
        """Make a chapter with a paragraph, or raise `chapter_error`."""
        self.requests.append(request)
        if self.chapter_error is not None:
            raise self.chapter_error
        end = request.parts[-1].end
        return ChapterFold(
            gist=f"They talked up to turn {end}.",
            refs=(),
            form="ledger.v8",
            paragraph=f"They talked for {end} turns.",
        )


async def talk(room: Room, total: int) -> None:
    """Say turns up to `total`, and wait for the runs after each turn."""
    while room.memory.total_turns < total:
        await room.say()
        await room.memory.settle()


def kinds(events: list[CompactionEvent]) -> list[str]:
    """Return the kinds of the runs that started, in order."""
    started = [event for event in events if isinstance(event, FoldStarted)]
    return ["chapter" if event.chapter_level else "repair" if event.repairs else "batch" for event in started]


async def written(store: InMemoryTurnStore, batches: int) -> None:
    """Store a session with this many folded batches and no chapters, as an earlier version left it."""
    await fill(store, batches * 10 + 55)
    for number in range(batches):
        made = replace(segment(number * 10, number * 10 + 10), degraded=False)
        state = CompactionState(cursor=made.end, revision=number + 1, summary="Old.", last_at=1.0)
        assert await store.land(Landing(EVENING, made.start, number, made, state, ()))


def test_eight_segments_make_a_chapter() -> None:
    """The chapter is made right after the eighth batch. The cursor stays, and the revision and the summary move."""

    async def main() -> None:
        model = ModelOfChapters()
        async with Room(summariser=model, settings=EVERY_TURN) as room:
            await talk(room, 140)
            assert kinds(room.events) == ["batch"] * 8 + ["chapter"]
            landed = [event for event in room.events if isinstance(event, FoldLanded)][-1]
            assert (landed.old_cursor, landed.new_cursor, landed.chapter_level) == (80, 80, 1)
            assert (landed.paragraph_by, landed.paragraph_problem) == ("model", "")
            line = room.logged("voice_context_compaction_completed")[-1]
            assert (line["chapter_level"], line["paragraph_by"]) == (1, "model")
            stored = await room.store.load(EVENING)
            (chapter,) = stored.chapters
            assert (chapter.id, chapter.start, chapter.end) == ("evening:0-80@1", 0, 80)
            assert (chapter.summariser, chapter.paragraph) == ("llm ledger.v8", "They talked for 80 turns.")
            assert (chapter.started_at, chapter.ended_at) == (
                stored.segments[0].started_at,
                stored.segments[7].ended_at,
            )
            assert (stored.state.revision, stored.state.cursor) == (9, 80)
            (request,) = model.requests
            assert [(each.start, each.end) for each in request.parts] == [(n * 10, n * 10 + 10) for n in range(8)]
            assert request.roster == {"Ada", "Bob", "Cy", "Dora"}

    run_virtually(main())


def test_an_old_session_gets_one_chapter_after_each_landing() -> None:
    """A session of many folded batches and no chapters catches up without a burst, also after a restart."""

    async def main() -> None:
        store = InMemoryTurnStore()
        await written(store, 40)
        for restart in range(3):
            async with Room(store=store, summariser=ModelOfChapters(), settings=EVERY_TURN) as room:
                room.sent()
                await room.memory.settle()
                assert kinds(room.events) == []
                await talk(room, 461 + restart * 20)
                assert kinds(room.events) in (["batch", "chapter"], ["batch", "chapter"] * 2)
        chapters = (await store.load(EVENING)).chapters
        assert [(each.level, each.start, each.end) for each in chapters] == [
            (1, number * 80, number * 80 + 80) for number in range(5)
        ]

    run_virtually(main())


def test_eight_chapters_make_one_of_the_next_level() -> None:
    """The chapter above is made before the next one below, from the gists of its chapters."""

    async def main() -> None:
        store, model = InMemoryTurnStore(), ModelOfChapters()
        await written(store, 70)
        async with Room(store=store, summariser=model, settings=EVERY_TURN) as room:
            await talk(room, 755 + 90)
        chapters = (await store.load(EVENING)).chapters
        assert [(each.start, each.end) for each in chapters if each.level == 2] == [(0, 640)]
        (request,) = [each for each in model.requests if each.level == 2]
        gists = [each.gist for each in chapters if each.level == 1][:CHAPTER_PARTS]
        assert [part.gist for part in request.parts] == gists

    run_virtually(main())


def test_a_late_chapter_has_the_newest_paragraph() -> None:
    """A chapter that failed at first is over fewer turns than are folded. Its paragraph is newer than the last fold's,
    also after a restart and where the clock stands still, until the next fold has one.
    """

    async def main() -> None:
        store, model = InMemoryTurnStore(), ModelOfChapters()
        model.chapter_error = SummaryRefusedError("Not a summary.")
        async with Room(store=store, summariser=model, settings=EVERY_TURN) as room:
            await talk(room, 141)
            model.chapter_error = None
            await talk(room, 151)
        async with Room(store=store, summariser=model, settings=EVERY_TURN) as room:
            stored = await store.load(EVENING)
            (chapter,) = stored.chapters
            assert (chapter.end, room.memory.cursor) == (80, 100)
            assert room.memory.summary is not None
            assert room.memory.summary.text == stored.state.summary == chapter.paragraph
            made = [*(each.created_at for each in stored.segments), chapter.created_at]
            assert made == sorted(set(made))
            await talk(room, 162)
            assert room.memory.summary.text != chapter.paragraph

    run_virtually(main())


def test_a_backlog_is_folded_before_a_chapter() -> None:
    """A chapter waits until no batch is due, and only one is made after the backlog."""

    async def main() -> None:
        async with Room(summariser=ModelOfChapters()) as room:
            await room.talk(200)
            room.sent()
            await room.memory.settle()
            assert kinds(room.events) == ["batch"] * 14 + ["chapter"]

    run_virtually(main())


def test_a_chapter_waits_for_the_repair_of_its_segments() -> None:
    """A segment made in an outage is made again first; no chapter is made without the model."""

    async def main() -> None:
        model = ModelOfChapters()
        async with Room(summariser=model, settings=EVERY_TURN) as room:
            await talk(room, 120)
            model.error = CompletionError("The key is not valid.", retryable=False)
            await talk(room, 155)
            assert "chapter" not in kinds(room.events)
            model.error = None
            await room.wait(600.0)
            before = len(kinds(room.events))
            await talk(room, 165)
            runs = kinds(room.events)[before:]
            assert runs[0] == "batch"
            assert runs[-1] == "chapter"
            assert set(runs[1:-1]) == {"repair"}

    run_virtually(main())


def test_a_segment_that_was_given_up_is_final() -> None:
    """After three failed repairs the segment stays degraded, and its chapter is made."""

    async def main() -> None:
        model, store = ModelOfChapters(), InMemoryTurnStore()
        async with Room(store=store, summariser=model, settings=EVERY_TURN) as room:
            model.error = CompletionError("The key is not valid.", retryable=False)
            await talk(room, 61)
            model.error = None
            await room.wait(600.0)
            store.lose(EVENING, Seq(4))
            await talk(room, 145)
            stored = await room.store.load(EVENING)
            assert [each.degraded for each in stored.segments][:2] == [True, False]
            assert len(stored.chapters) == 1

    run_virtually(main())


@pytest.mark.parametrize("error", [SummaryRefusedError("Not a summary."), ValueError("Ada said so.")])
def test_a_failed_chapter_holds_up_nothing(error: Exception) -> None:
    """A chapter is tried again after later landings. After three attempts it is made without the model, and its record
    says so.
    """

    async def main() -> None:
        model = ModelOfChapters()
        model.chapter_error = error
        async with Room(summariser=model, settings=EVERY_TURN) as room:
            await talk(room, 165)
            runs = kinds(room.events)
            assert runs == ["batch"] * 8 + ["chapter", "batch"] * 3 + ["chapter"]
            failures = [event for event in room.events if isinstance(event, FoldFailed)]
            assert [(each.chapter_level, each.attempt, each.next_retry_s) for each in failures] == [
                (1, attempt, None) for attempt in range(1, CHAPTER_ATTEMPTS + 1)
            ]
            (chapter,) = (await room.store.load(EVENING)).chapters
            assert chapter.summariser == "extractive degraded"
            landed = [event for event in room.events if isinstance(event, FoldLanded)][-1]
            assert (landed.degraded, landed.paragraph_by) == (True, "code")

    run_virtually(main())


def test_a_failing_store_is_no_failure_of_the_chapter() -> None:
    """The chapter waits for the next landing, and the model is asked again."""

    async def main() -> None:
        model = ModelOfChapters()
        lands: list[str] = []

        def fault(name: str) -> Fault | None:
            lands.extend([name] if name == "land" else [])
            return Fault.REFUSED if name == "land" and 9 <= len(lands) < 15 and len(lands) % 2 else None

        async with Room(store=InMemoryTurnStore(fault=fault), summariser=model, settings=EVERY_TURN) as room:
            await talk(room, 180)
            (chapter,) = (await room.store.load(EVENING)).chapters
            assert chapter.summariser == "llm ledger.v8"
            assert len(model.requests) == 4

    run_virtually(main())


def test_a_chapter_whose_answer_was_lost_is_stored_once() -> None:
    """The process goes on from the stored state; the next landings and chapters follow."""

    async def main() -> None:
        lands: list[str] = []

        def fault(name: str) -> Fault | None:
            lands.extend([name] if name == "land" else [])
            return Fault.ANSWER_LOST if name == "land" and len(lands) == 9 else None

        model = ModelOfChapters()
        async with Room(store=InMemoryTurnStore(fault=fault), summariser=model, settings=EVERY_TURN) as room:
            await talk(room, 160)
            stored = await room.store.load(EVENING)
            assert len(stored.chapters) == 1
            assert stored.state.revision == len(stored.segments) + 1
            assert room.memory.state == stored.state

    run_virtually(main())


def test_a_killed_chapter_is_made_after_the_next_landing() -> None:
    """A restart in the middle of a chapter's run loses nothing; the chapter comes after the next batch."""

    async def main() -> None:
        lands: list[str] = []

        def fault(name: str) -> Fault | None:
            lands.extend([name] if name == "land" else [])
            return Fault.HANGS if name == "land" and len(lands) == 9 else None

        store = InMemoryTurnStore(fault=fault)
        async with Room(store=store, summariser=ModelOfChapters(), settings=EVERY_TURN) as room:
            await talk(room, 130)
            await room.say()
            await room.wait(1.0)
            assert kinds(room.events)[-1] == "chapter"
        assert (await store.load(EVENING)).chapters == ()
        async with Room(store=store, summariser=ModelOfChapters(), settings=EVERY_TURN) as room:
            await talk(room, 155)
            assert kinds(room.events)[:2] == ["batch", "chapter"]

    run_virtually(main())


@pytest.mark.parametrize(
    ("strategy", "mode"),
    [(Strategy.RECURSIVE, Mode.SUMMARY), (Strategy.LEDGER, Mode.OFF), (Strategy.LEDGER, Mode.ROLLING)],
)
def test_only_the_ledger_in_the_summary_mode_has_chapters(strategy: Strategy, mode: Mode) -> None:
    """The recursive strategy and the other modes make no chapter."""

    async def main() -> None:
        settings = CompactionSettings(trigger=Trigger.TURN, strategy=strategy)
        async with Room(summariser=ModelOfChapters(), settings=settings, mode=mode, searchable=True) as room:
            await talk(room, 145)
            assert "chapter" not in kinds(room.events)

    run_virtually(main())
