"""What a model wrote after it had read forgotten words goes too: paragraphs and chapters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bot.store.database import Database, open_database
from bot.store.rebuilding import Remade, rebuild_segments
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.turns import SqlTurnStore
from compaction.memory.restating import NOTHING_FORGOTTEN
from compaction.memory.segment_forgetting import FORGOTTEN, RemainingWords, forget_in_segment
from compaction.model import Fact, FactKind, Seq, Turn, TurnPart
from compaction.summary.ledger import SegmentLedger
from tests.compaction.turn_store_contract import (
    EVENING,
    T0,
    chapter,
    chapter_landing,
    landing,
    repairing,
    segment,
    turn,
)
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compaction.ports import StoredMemory
    from tests.bot.conftest import Place

# Segments are made one after another, this many seconds apart.
STEP_S = 100.0


async def a_long_session(database: Database) -> SqlTurnStore:
    """Store 180 turns of Bob (Ada says turn 95), 16 segments with paragraphs, and two chapters."""
    store = SqlTurnStore(database, FakeClock())
    for seq in range(180):
        await store.append_turn(EVENING, turn(seq, speaker="Ada" if seq == 95 else "Bob"))
    revision = 0
    for number in range(16):
        land = landing(number * 10, number * 10 + 10, revision=revision)
        assert land.segment is not None
        made_at = T0 + number * STEP_S
        made = replace(
            land.segment, facts=(), degraded=number == 11, created_at=made_at, paragraph=f"Paragraph {number}."
        )
        assert await store.land(replace(land, segment=made, state=replace(land.state, last_at=made_at)))
        revision += 1
        if number in (7, 15):
            end = number * 10 + 10
            over = replace(chapter(end - 80, end), created_at=made_at + 1.0)
            assert await store.land(chapter_landing(over, cursor=end, revision=revision))
            revision += 1
    return store


async def forget_turn(database: Database, seq: int) -> StoredMemory:
    """Forget one turn and return the session."""
    forgetting = SpeechForgetter(database, FakeClock())
    (speaker,) = await forgetting.find("Ada" if seq == 95 else "Bob")
    await forgetting.forget(speaker, session_id=EVENING, seq=seq)
    return await SqlTurnStore(database, FakeClock()).load(EVENING)


class CountedSeqs(frozenset[Seq]):
    """`read`: how many of these numbers were gone through."""

    read = 0

    def __iter__(self) -> Iterator[Seq]:
        """Go through the numbers, and count them."""
        for seq in super().__iter__():
            self.read += 1
            yield seq


@pytest.mark.asyncio
async def test_forgotten_turns_are_not_gone_through_for_each_segment(place: Place) -> None:
    """A long session has thousands of both, and everybody waits for the transaction."""
    async with open_database(place) as database:
        store = await a_long_session(database)
        left = await store.turns(EVENING, Seq(0), Seq(180))
        seqs = CountedSeqs(map(Seq, range(1000, 1020)))
        async with database.writing() as connection:
            remade = await rebuild_segments(
                connection,
                EVENING,
                left,
                seqs=seqs,
                gone_notes=frozenset(),
                words=NOTHING_FORGOTTEN,
                now=T0,
            )
        assert remade == Remade()
        assert seqs.read <= len(seqs)


@pytest.mark.asyncio
async def test_later_paragraphs_and_chapters_are_forgotten(place: Place) -> None:
    """Paragraphs of the touched segment and of all later ones are cleared, and chapters that reach beyond the turn are
    deleted. Earlier ones stay.
    """
    async with open_database(place) as database:
        await a_long_session(database)
        after = await forget_turn(database, 95)
    assert [each.paragraph for each in after.segments] == [f"Paragraph {n}." for n in range(9)] + [""] * 7
    assert {each.paragraph_problem for each in after.segments[9:]} == {FORGOTTEN}
    assert [(each.start, each.end) for each in after.chapters] == [(0, 80)]
    due = SegmentLedger(after.segments, after.chapters).chapter_due()
    assert due is not None
    assert (due.level, due.start, due.end) == (1, 80, 160), "it is made again"


@pytest.mark.asyncio
async def test_everything_goes_after_the_first_turn(place: Place) -> None:
    """If the first turn is forgotten, no paragraph and no chapter stays."""
    async with open_database(place) as database:
        await a_long_session(database)
        after = await forget_turn(database, 0)
    assert not any(each.paragraph for each in after.segments)
    assert after.chapters == ()


@pytest.mark.asyncio
async def test_a_turn_that_is_not_folded_clears_nothing(place: Place) -> None:
    """No model has summarised it."""
    async with open_database(place) as database:
        await a_long_session(database)
        after = await forget_turn(database, 175)
    assert all(each.paragraph for each in after.segments)
    assert len(after.chapters) == 2


@pytest.mark.asyncio
async def test_a_chapter_made_late_is_forgotten_too(place: Place) -> None:
    """A chapter of earlier turns that was made after the forgotten turn was folded may tell of it. The time of the
    first landing counts, also for a segment that was repaired later.
    """
    async with open_database(place) as database:
        store = await a_long_session(database)
        memory = await store.load(EVENING)
        revision = memory.state.revision
        late = replace(chapter(0, 10), created_at=T0 + 11 * STEP_S + 5.0)
        assert await store.land(chapter_landing(late, cursor=160, revision=revision))
        repaired = repairing(110, 120, cursor=160, revision=revision + 1)
        assert repaired.segment is not None
        made = replace(repaired.segment, created_at=T0 + 900 * STEP_S)
        assert await store.land(replace(repaired, segment=made, state=replace(repaired.state, last_at=made.created_at)))
        after = await forget_turn(database, 115)
    assert [(each.start, each.end) for each in after.chapters] == [(0, 80)]
    assert [bool(each.paragraph) for each in after.segments] == [True] * 11 + [False] * 5


def said(seq: int, *parts: tuple[str, str]) -> Turn:
    """Return a turn in which these people say these words."""
    return replace(turn(seq), parts=tuple(TurnPart(f"id-{name}", name, text) for name, text in parts))


def made_of(*facts: Fact) -> list[str]:
    """Return the texts that are left when Will's words of turns 2 and 3 are forgotten; Bob spoke in turn 2 too."""
    heard = [said(1, ("Bob", "It will rain.")), said(2, ("Bob", "We leave at nine.")), said(4, ("Ada", "Fine."))]
    left, _ = forget_in_segment(
        replace(segment(0, 10), facts=facts),
        heard,
        heard,
        frozenset({Seq(2), Seq(3)}),
        frozenset(),
        RemainingWords.of(heard),
    )
    return [each.text for each in left.facts]


def fact(speaker: str, text: str, *turns: int, quoted: bool = True) -> Fact:
    """Return a fact of these turns."""
    return Fact(tuple(map(Seq, turns)), FactKind.OTHER, speaker, 1.0, text, quoted=quoted)


def test_facts_are_forgotten_by_their_turns() -> None:
    """A fact goes if its speaker's words were forgotten in a turn that it cites, whatever names it contains."""
    assert made_of(
        fact("Will", "I keep bees.", 3),
        fact("Will", "I'm late.", 2),
        fact("Bob", "We leave at nine.", 2),
        fact("Bob", "It will rain.", 1),
        fact("Ada", "Will keeps bees, as Ada heard.", 4, 3, quoted=False),
        fact("Ada", "Ada says that Will is nice.", 4, quoted=False),
    ) == ["", "", "We leave at nine.", "It will rain.", "", "Ada says that Will is nice."]
