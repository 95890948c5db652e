"""A session of ten thousand turns never exceeds the budget, never misses a turn, and keeps a bounded number of turns in
memory.
"""

from __future__ import annotations

import pytest

from compaction.context.build import build_payload
from compaction.errors import ContextOverflowError
from compaction.model import Fact, Mode
from compaction.payload import coverage
from compaction.summary.port import Fold, FoldRequest
from tests.compaction.rooms import EVENING
from tests.compaction.rooms import MemoryRoom as Room
from tests.fakes.virtual_time import virtually

TURNS = 10_000
# Input limits of a usual model, of a small one, and of one that accepts almost nothing.
LIMITS = (28_672, 1_200, 200)


class FirstWords:
    """A quick summariser that keeps the first words said in each batch."""

    name = "first-words"
    model = ""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return a fold with one fact."""
        turn = request.turns[0]
        (part,) = turn.parts
        fact = Fact((turn.seq,), f"{part.speaker}: {part.text}", speaker=part.speaker, at=turn.started_at)
        return Fold(fact.text, (fact,), fact.text, "first-words")


@pytest.mark.covers("4.11")
@pytest.mark.slow
@pytest.mark.parametrize("mode", [Mode.SUMMARY, Mode.ROLLING])
@virtually
async def test_ten_thousand_turns(mode: Mode) -> None:
    """A reply at every fiftieth turn fits models of every size over ten thousand turns, and memory stays bounded."""
    most_in_memory = 0
    async with Room(mode=mode, searchable=True, summariser=FirstWords()) as room:
        timeline = room.timeline
        for number in range(TURNS):
            turn = await room.say()
            if number % 50:
                continue
            for limit in LIMITS if mode is Mode.SUMMARY else LIMITS[1:]:
                context = timeline.context(current=turn, max_input_tokens=limit)
                payload = build_payload(context, system=["You take part."], searchable=True)
                assert sum(each.tokens for each in payload) <= limit
                timeline.record_sent(context, payload)
                if number % 500 == 0:
                    assert coverage(payload, timeline.total_turns).missing == ()
            await timeline.settle()
            most_in_memory = max(most_in_memory, len(timeline.turns))
        assert timeline.total_turns == TURNS
        assert most_in_memory <= 220 + 10
        stored = await room.store.load(EVENING)
        assert len(stored.segments) == (990 if mode is Mode.SUMMARY else 0)
        with pytest.raises(ContextOverflowError):
            build_payload(timeline.context(max_input_tokens=5), system=["You take part."])
