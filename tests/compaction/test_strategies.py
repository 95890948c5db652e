"""Sessions with each of the two strategies: what is stored, what a restart reads, and what a change of
strategy does.
"""

from __future__ import annotations

import pytest

from compaction.model import Strategy
from compaction.settings import CompactionSettings
from compaction.summary.prompt_texts import LEDGER_VERSION, RECURSIVE_VERSION
from tests.compaction.rooms import EVENING, Room, fold_until
from tests.fakes.completion import Mood, MoodyModel
from tests.fakes.turn_store import InMemoryTurnStore
from tests.fakes.virtual_time import run_virtually

RECURSIVE = CompactionSettings(strategy=Strategy.RECURSIVE)
VERSIONS = {Strategy.LEDGER: LEDGER_VERSION, Strategy.RECURSIVE: RECURSIVE_VERSION}


@pytest.mark.parametrize("strategy", list(Strategy))
def test_strategy_is_logged_and_recorded(strategy: Strategy) -> None:
    """The strategy is named in each log line and in each segment."""

    async def main() -> None:
        async with Room(settings=CompactionSettings(strategy=strategy)) as room:
            await fold_until(room, 82)
            assert {line["strategy"] for line in room.logged("voice_context_compaction_completed")} == {strategy.value}
            assert [each.summariser for each in room.memory.segments] == [f"llm {VERSIONS[strategy]}"] * 3

    run_virtually(main())


def test_paragraph_is_retold_from_the_one_before() -> None:
    """The prompt for the next paragraph has the last paragraph, and a restart begins with the last paragraph."""

    async def main() -> None:
        store = InMemoryTurnStore()
        async with Room(store=store, settings=RECURSIVE) as room:
            await fold_until(room, 71)
            first, second = room.memory.segments
            assert first.paragraph in room.model.calls[1].prompt
            assert room.memory.summary is not None
            assert room.memory.summary.text == second.paragraph == room.memory.state.summary
        async with Room(store=store, settings=RECURSIVE) as room:
            assert room.memory.summary is not None
            assert room.memory.summary.text == second.paragraph
            await fold_until(room, 81)
            assert second.paragraph in room.model.calls[0].prompt

    run_virtually(main())


def test_outage_under_recursive_is_folded_without_the_model() -> None:
    """During an outage the extractor writes the paragraph in the same form, and the model continues from that paragraph
    later.
    """

    async def main() -> None:
        async with Room(settings=RECURSIVE, model=MoodyModel(Mood.WRONG_KEY)) as room:
            await fold_until(room, 71)
            assert [(each.degraded, each.summariser) for each in room.memory.segments] == [
                (True, "extractive recursive"),
                (True, "extractive recursive"),
            ]
            standing_in = room.memory.state.summary
            assert standing_in
            room.model.mood = Mood.GOOD
            await room.wait(300.0)
            await fold_until(room, 81)
            assert room.memory.segments[-1].summariser == f"llm {RECURSIVE_VERSION}"
            assert standing_in in room.model.calls[-1].prompt

    run_virtually(main())


def test_strategy_may_change_between_processes() -> None:
    """Each strategy continues from the summary of the other one, and every turn stays covered."""

    async def main() -> None:
        store = InMemoryTurnStore()
        for total, strategy in ((71, Strategy.LEDGER), (91, Strategy.RECURSIVE), (111, Strategy.LEDGER)):
            async with Room(store=store, settings=CompactionSettings(strategy=strategy)) as room:
                before = room.memory.state.summary
                await fold_until(room, total)
                assert before is None or before in room.model.calls[0].prompt
                assert room.sent().missing == ()
        stored = await store.load(EVENING)
        assert [each.is_recursive for each in stored.segments] == [False, False, True, True, False, False]

    run_virtually(main())
