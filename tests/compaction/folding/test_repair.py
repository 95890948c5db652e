"""Segments folded without the model are folded again when the model works again: one at a time, and after any new
batch.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.folding.events import FoldLanded, FoldStarted
from compaction.folding.next_run import REPAIR_ATTEMPTS
from compaction.memory.segment_record import make_record
from compaction.model import Fact, FactKind, Seq, Strategy, TurnKind, TurnPart
from compaction.settings import CompactionSettings
from compaction.summary.ledger import SegmentLedger, render_summary
from compaction.summary.port import Fold
from compaction.summary.segments import make_repaired_segment
from tests.compaction.rooms import EVENING, Room, fold_until
from tests.compaction.turn_store_contract import segment as stored_segment
from tests.fakes.completion import Mood, MoodyModel
from tests.fakes.turn_store import Fault, InMemoryTurnStore
from tests.fakes.virtual_time import EPOCH_S, run_virtually

if TYPE_CHECKING:
    from compaction.ports import Landing

# Longer than the pause in which the model is not tried after a few failures.
RESTED_S = 600.0


async def outage(room: Room, total: int) -> None:
    """Fold without the model up to `total` turns. Then make the model work again and wait until it may be tried."""
    room.model.mood = Mood.WRONG_KEY
    await fold_until(room, total)
    assert all(each.degraded for each in room.memory.segments)
    room.model.mood = Mood.GOOD
    await room.wait(RESTED_S)


def test_outage_is_mended_oldest_first() -> None:
    """After the model's first success the degraded segments are repaired, oldest first. A repair does not move the
    cursor.
    """

    async def main() -> None:
        async with Room() as room:
            await outage(room, 90)
            assert room.memory.cursor == 30
            await fold_until(room, 91)
            assert [(each.start, each.degraded) for each in room.memory.segments] == [
                (0, False),
                (10, False),
                (20, False),
                (30, False),
            ]
            assert room.memory.cursor == 40
            landed = [event for event in room.events if isinstance(event, FoldLanded)][-4:]
            assert [(event.old_cursor, event.new_cursor, event.repairs) for event in landed] == [
                (30, 40, None),
                (40, 40, "evening:0-10"),
                (40, 40, "evening:10-20"),
                (40, 40, "evening:20-30"),
            ]
            assert not any(event.degraded for event in landed)
            stored = await room.store.load(EVENING)
            assert stored.segments == room.memory.segments
            assert stored.state.revision == 7
            rendered = render_summary(stored.segments)
            assert rendered is not None
            assert stored.state.summary == rendered.text == room.memory.state.summary
            assert room.logged("voice_context_compaction_completed")[-1]["repairs"] == "evening:20-30"

    run_virtually(main())


def test_nothing_is_mended_while_the_model_fails() -> None:
    """A success of the fallback summariser starts no repair."""

    async def main() -> None:
        async with Room(model=MoodyModel(Mood.WRONG_KEY)) as room:
            await fold_until(room, 120)
            assert not any(isinstance(event, FoldStarted) and event.repairs for event in room.events)

    run_virtually(main())


def test_a_batch_of_which_nothing_may_be_told_says_nothing_of_the_model() -> None:
    """It is folded without the model, as its start is told. So a segment is not given up for the repairs that would be
    tried after it while the model is still away, and is repaired once the model is back.
    """

    async def main() -> None:
        out = set[str]()
        async with Room(model=MoodyModel(Mood.WRONG_KEY)) as room:
            room.memory.withhold(lambda: frozenset(out))
            await room.talk(10)
            for number in range(101):
                if room.memory.total_turns == 61:
                    room.sent()
                    await room.memory.settle()
                    assert [each.degraded for each in room.memory.segments] == [True]
                    out.add("id-Eve")
                eve = TurnPart("id-Eve", "Eve", f"I hid key {number} in the shed.")
                await room.memory.append(TurnKind.SPEECH, (eve,), started_at=EPOCH_S, ended_at=EPOCH_S)
            await room.wait(RESTED_S)
            room.sent()
            await room.memory.settle()
            assert room.memory.cursor == 60
            started = [each for each in room.events if isinstance(each, FoldStarted)][-4:]
            assert {(each.summariser, each.model, each.repairs) for each in started} == {("extractive", "", None)}
            room.model.mood = Mood.GOOD
            await fold_until(room, 181)
            assert not any(each.degraded for each in room.memory.segments)

    run_virtually(main())


def test_new_batches_go_first() -> None:
    """All new batches are folded before a segment is repaired."""

    async def main() -> None:
        async with Room() as room:
            await outage(room, 70)
            await room.talk(40)
            room.sent()
            await room.memory.settle()
            started = [event.repairs for event in room.events if isinstance(event, FoldStarted)]
            assert started[-5:] == [None, None, None, None, "evening:0-10"]
            assert room.memory.cursor == 50

    run_virtually(main())


def test_failed_repair_holds_up_nothing() -> None:
    """A failed repair waits for the model's next success and delays no new batch. After a few failures the segment
    stays as it is.
    """

    async def main() -> None:
        async with Room() as room:
            await outage(room, 61)
            room.model.refuses = "[3] "
            await fold_until(room, 141)
            repairs = [event for event in room.events if isinstance(event, FoldStarted) and event.repairs]
            assert len(repairs) == REPAIR_ATTEMPTS
            assert room.memory.cursor == 90
            assert [each.degraded for each in room.memory.segments] == [True] + [False] * 8

    run_virtually(main())


def test_restart_finds_what_is_to_be_mended() -> None:
    """A restart finds degraded segments by the flag stored with them, and reads their turns back."""

    async def main() -> None:
        store = InMemoryTurnStore()
        async with Room(store=store) as room:
            await outage(room, 61)
        async with Room(store=store) as room:
            await fold_until(room, 71)
            assert [each.degraded for each in room.memory.segments] == [False, False]
            assert "[0] " in room.model.calls[-1].prompt

    run_virtually(main())


def test_lost_turns_and_a_failing_store_end_a_repair() -> None:
    """If the store fails or turns are lost, the repair ends, the segment stays as it is, and folding goes on."""

    async def main() -> None:
        faults: list[Fault] = []
        store = InMemoryTurnStore(fault=lambda name: faults.pop() if name == "turns" and faults else None)
        async with Room(store=store) as room:
            await outage(room, 61)
            faults.append(Fault.REFUSED)
            await fold_until(room, 71)
            assert room.memory.segments[0].degraded
            store.lose(EVENING, Seq(4))
            await fold_until(room, 81)
            assert room.memory.segments[0].degraded
            assert room.memory.cursor == 30
            failures = [
                (line.get("repairs"), str(line["error"])) for line in room.logged("voice_context_compaction_failed")
            ]
            assert failures == [
                (None, "The key is not valid."),
                ("evening:0-10", "The disk is full."),
                ("evening:0-10", "Of turns 0 to 9 only 9 are stored."),
            ]

    run_virtually(main())


def test_a_failing_store_gives_no_repair_up() -> None:
    """Its failures are not the model's: the segment is made again as soon as the store answers."""

    async def main() -> None:
        faults: list[Fault] = []
        store = InMemoryTurnStore(fault=lambda name: Fault.REFUSED if name == "turns" and faults else None)
        async with Room(store=store) as room:
            await outage(room, 61)
            faults.append(Fault.REFUSED)
            await fold_until(room, 111)
            assert room.memory.segments[0].degraded
            failures = [line for line in room.logged("voice_context_compaction_failed") if "repairs" in line]
            assert [line["attempt"] for line in failures] == [1] * len(failures)
            assert len(failures) > REPAIR_ATTEMPTS
            faults.clear()
            await fold_until(room, 121)
            assert not room.memory.segments[0].degraded

    run_virtually(main())


def test_a_repair_asks_for_no_paragraph() -> None:
    """It stores none, so it pays for none; and who would have written one is nobody's success or failure."""

    async def main() -> None:
        async with Room() as room:
            await outage(room, 61)
            await fold_until(room, 71)
            landed = [event for event in room.events if isinstance(event, FoldLanded)]
            assert [(event.repairs is None, event.paragraph_by) for event in landed][-2:] == [
                (True, "model"),
                (False, "nobody"),
            ]
            asked = room.model.calls[-1]
            assert asked.schema is not None
            assert '"paragraph"' not in asked.system
            assert "paragraph" not in json.dumps(asked.schema)

    run_virtually(main())


def test_paragraphs_are_not_mended() -> None:
    """Recursive paragraphs are not repaired, because later ones were made from them."""

    async def main() -> None:
        async with Room(settings=CompactionSettings(strategy=Strategy.RECURSIVE)) as room:
            await outage(room, 61)
            await fold_until(room, 81)
            assert [each.degraded for each in room.memory.segments] == [True, False, False]

    run_virtually(main())


OLD = Fact((Seq(1),), FactKind.DECISION, "Ada", 1.0, "The gate code is 4411.")
OTHER = Fact((Seq(2),), FactKind.OTHER, "Bob", 2.0, "The cabin has two stoves.")
CORRECTED = Fact((Seq(12),), FactKind.DECISION, "Ada", 12.0, "The gate code is 7023 now.", ("a#1",))


def test_no_number_of_a_fact_changes_its_meaning() -> None:
    """Later corrections and what is stored about people name facts by number: a fact that was corrected since stays,
    one that the model found too stays in place, one that it did not find leaves its number blank, and new ones follow.
    """
    found_too = Fact((Seq(3),), FactKind.DECISION, "Bob", 3.0, "The train leaves at 8.", quoted=True)
    old = replace(stored_segment(0, 10, name="a"), facts=(OTHER, OLD, found_too))
    later = replace(stored_segment(10, 20, name="b"), facts=(CORRECTED,), degraded=False, paragraph="")
    ledger = SegmentLedger([old, later])
    told_by_bob = Fact((Seq(2),), FactKind.OTHER, "Bob", 2.0, "There are two stoves in the cabin in Braemar.")
    fold = Fold(
        gist="They talked about the cabin.",
        facts=(
            Fact((Seq(1),), FactKind.DECISION, "Ada", 1.0, "Ada says the gate code is 4411."),
            told_by_bob,
            replace(found_too, importance=3),
            Fact((Seq(5),), FactKind.LASTING, "Cy", 5.0, "I'm allergic to walnuts."),
        ),
    )
    made = make_repaired_segment(old, fold, later=ledger.facts_after(old.id), summariser="llm ledger.v8", at=5.0)
    assert [fact.text for fact in made.facts] == [
        "",
        "The gate code is 4411.",
        "The train leaves at 8.",
        "There are two stoves in the cabin in Braemar.",
        "I'm allergic to walnuts.",
    ]
    blank, _, train, stoves, walnuts = made.facts
    assert (blank.speaker, blank.supersedes, train.importance) == ("", ("a#0",), 3)
    # What the same person said in the same turn takes the place of what it was before.
    assert stoves == replace(told_by_bob, supersedes=("a#0",))
    assert walnuts.supersedes == ()
    assert (made.degraded, made.gist, made.id, made.created_at) == (False, fold.gist, old.id, 5.0)
    mended = ledger.with_repaired(made)
    assert mended.roster == {"Ada", "Bob", "Cy"}
    rendered = mended.render()
    assert rendered is not None
    assert "4411" not in rendered.text
    assert "7023" in rendered.text
    assert "Braemar" in rendered.text
    assert rendered == render_summary([made, later])
    without_blank = make_repaired_segment(
        replace(old, facts=(OLD, found_too)),
        fold,
        later=[replace(CORRECTED, supersedes=("a#0",))],
        summariser="llm ledger.v8",
        at=5.0,
    )
    assert made.compressed_tokens == without_blank.compressed_tokens


def test_a_repair_without_facts_leaves_those_that_were_corrected() -> None:
    """If the model finds nothing worth keeping, what later facts correct stays, and every other number is blank."""
    old = replace(stored_segment(0, 10, name="a"), facts=(OTHER, OLD))
    later = SegmentLedger([old, replace(stored_segment(10, 20, name="b"), facts=(CORRECTED,))]).facts_after(old.id)
    made = make_repaired_segment(old, Fold("Nothing much.", ()), later=later, summariser="llm ledger.v8", at=5.0)
    assert made.facts == (OTHER.blanked(("a#0",)), OLD)
    assert make_record(made, at=6.0).compressed_content == "Nothing much."


class _Archive(InMemoryTurnStore):
    """A store in which the first segment is archived, and never changes again."""

    async def land(self, landing: Landing) -> bool:
        if landing.repairs and landing.segment is not None and landing.segment.start == 0:
            return False
        return await super().land(landing)


def test_an_archived_segment_keeps_no_other_from_repair() -> None:
    """The store refuses its repair though nobody has changed the session. After a few attempts it stays as it is, and
    the segments after it are repaired.
    """

    async def main() -> None:
        async with Room(store=_Archive()) as room:
            await outage(room, 90)
            await fold_until(room, 161)
            assert [each.degraded for each in room.memory.segments] == [True] + [False] * 10
            failures = [line for line in room.logged("voice_context_compaction_failed") if "repairs" in line]
            assert [(line["repairs"], line["attempt"], line["retryable"]) for line in failures] == [
                ("evening:0-10", attempt, False) for attempt in range(1, REPAIR_ATTEMPTS + 1)
            ]

    run_virtually(main())
