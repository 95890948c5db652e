"""A repaired segment loses what was made of its old words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, text

from bot.store.tables import corrections
from compaction.model import Seq
from compaction.ports import Landing
from tests.bot.evening import Evening

if TYPE_CHECKING:
    from tests.bot.conftest import Place


@pytest.mark.asyncio
async def test_a_repaired_segment_waits_for_a_record_of_its_new_words(place: Place) -> None:
    """It loses its compressed record and what it said of corrections, and keeps its count of retrievals."""
    async with Evening(place) as evening:
        await evening.talk(100)
        done = await evening.upkeep_check()
        assert len(done.compress) == 4
        await evening.tier_store.count_accesses({evening.session_id: [(0, 0)]}, evening.clock.now())
        async with evening.database.writing() as connection:
            await connection.execute(text("UPDATE segments SET degraded = TRUE WHERE start_seq = 0"))
            for old, new in ((1, 3), (2, 15)):
                row = {"session_id": evening.session_id, "old_seq": old, "new_seq": new}
                await connection.execute(corrections.insert().values(row))
        state = evening.memory.state
        first = evening.memory.segments[0]
        repaired = replace(first, gist="Ada: It was made again.", summariser="llm ledger.v8")
        assert await evening.store.land(
            Landing(
                session_id=evening.session_id,
                expected_cursor=state.cursor,
                expected_revision=state.revision,
                segment=repaired,
                state=replace(state, revision=state.revision + 1, cursor=Seq(state.cursor)),
                folded_note_ids=(),
                repairs=True,
            )
        )
        tier, other, *_ = await evening.tier_store.tiers_of(evening.session_id)
        assert tier.kept.segment.gist == "Ada: It was made again."
        assert (tier.kept.record, tier.kept.queued_at_turn) == (None, None)
        assert tier.accesses.count == 1
        assert other.kept.record is not None
        async with evening.database.reading() as connection:
            left = (await connection.execute(select(corrections.c.old_seq, corrections.c.new_seq))).all()
        # What the rules had taken for a correction, the model may not have.
        assert [tuple(row) for row in left] == [(2, 15)]


@pytest.mark.asyncio
async def test_an_archived_segment_is_not_repaired(place: Place) -> None:
    """The landing is refused and changes nothing, the revision included, because archived segments never change."""
    async with Evening(place) as evening:
        await evening.talk(100)
        first = evening.memory.segments[0]
        async with evening.database.writing() as connection:
            await connection.execute(text("UPDATE segments SET degraded = TRUE WHERE start_seq = 0"))
        await evening.upkeep_check()
        await evening.tier_store.archive(evening.session_id, [first.id], now=evening.clock.now())
        before = await evening.store.load(evening.session_id)
        landing = Landing(
            session_id=evening.session_id,
            expected_cursor=before.state.cursor,
            expected_revision=before.state.revision,
            segment=replace(first, gist="Ada: It was made again.", summariser="llm ledger.v8"),
            state=replace(before.state, revision=before.state.revision + 1),
            folded_note_ids=(),
            repairs=True,
        )
        assert not await evening.store.land(landing)
        assert await evening.store.load(evening.session_id) == before
