"""Segments change tier every ten turns, without delaying replies."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from compaction.memory.tiers import Tier, TierCounts
from compaction.payload import PartKind, make_part
from tests.bot.conftest import Place
from tests.bot.evening import GUILD, Evening


def filled(evening: Evening, share: float) -> None:
    """Report a sent prompt that fills this share of the context."""
    tokens = round(share * evening.max_input_tokens)
    evening.upkeep.on_payload_sent([make_part("user", PartKind.TURN, "x", count=lambda _: tokens - 6)])


@pytest.mark.covers("3.1", "3.2")
async def test_segments_are_queued_compressed_archived_as_the_context_fills(place: Place) -> None:
    """Segments are queued above 60 % of the context, compressed ten turns later, and archived above 80 %."""
    async with Evening(place) as evening:
        await evening.talk(100)
        filled(evening, 0.5)
        await evening.upkeep.run_once()
        tiers = await evening.tier_store.tiers_of(evening.session_id)
        assert [each.kept.queued_at_turn for each in tiers] == [None] * 4
        await evening.talk(10)
        filled(evening, 0.7)
        await evening.upkeep.run_once()
        tiers = await evening.tier_store.tiers_of(evening.session_id)
        assert [each.kept.queued_at_turn for each in tiers] == [110] * 5
        assert all(each.kept.record is None for each in tiers)
        await evening.talk(10)
        with capture_logs() as logs:
            await evening.upkeep.run_once()
        (told,) = [line for line in logs if line["event"] == "tiers_checked"]
        assert (told["compressed"], told["queued"], told["archived"]) == (5, 1, 0)
        assert told["tokens_before"] > told["tokens_after"] > 0
        filled(evening, 0.85)
        await evening.talk(10)
        await evening.upkeep.run_once()
        tiers = await evening.tier_store.tiers_of(evening.session_id)
        assert [each.kept.tier for each in tiers] == [Tier.COLD] * 5 + [Tier.WARM] * 2
        assert evening.upkeep.tier_checks.counts == TierCounts(queued=1, compressed=1, archived=5)
        record = tiers[0].kept.record
        assert record is not None
        assert (record.start_turn, record.end_turn, record.session_id) == (0, 9, evening.session_id)
        assert "parcel" in record.compressed_content


@pytest.mark.covers("3.5")
async def test_a_check_happens_every_ten_turns(evening: Evening) -> None:
    """The tiers are checked every ten turns, however often the work runs, also across a restart."""
    with capture_logs() as logs:
        for _ in range(10):
            await evening.talk(2)
            evening.upkeep.wake()
            await evening.upkeep.run_once()
        await evening.new_upkeep().run_once()
    assert [line["total_turns"] for line in logs if line["event"] == "tiers_checked"] == [10, 20]


@pytest.mark.covers("3.11")
@pytest.mark.parametrize("scope", ["guild", "session"])
async def test_who_opted_out_is_left_alone(place: Place, scope: str) -> None:
    """Tiers can be switched off for a guild or for a session."""
    async with Evening(place) as evening:
        name = str(GUILD) if scope == "guild" else evening.session_id
        assert await evening.tier_store.set_frozen(scope, name, frozen=True)
        assert not await evening.tier_store.set_frozen(scope, name, frozen=True)
        assert await evening.tier_store.frozen() == ((scope, name),)
        await evening.talk(72)
        filled(evening, 0.9)
        await evening.upkeep.run_once()
        assert not any(each.known for each in await evening.tier_store.tiers_of(evening.session_id))
        assert await evening.tier_store.set_frozen(scope, name, frozen=False)
        await evening.new_upkeep().run_once()
        assert all(each.known for each in await evening.tier_store.tiers_of(evening.session_id))
