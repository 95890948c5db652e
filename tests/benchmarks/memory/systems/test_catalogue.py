"""Which memory systems take part."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.local_model import ChatEndpoint
from benchmarks.memory.conversations.folds import turns_needed
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.systems.catalogue import peer_system, roomtone_systems, systems_without_model
from benchmarks.peers.environment import LANGCHAIN
from benchmarks.stub_model import stub_endpoint

ENDPOINT = ChatEndpoint("http://127.0.0.1:9/v1", "none")


def test_everybody_is_named_once_and_on_one_side() -> None:
    """Every memory system has a name of its own and is either ours or not."""
    entrants = [*systems_without_model(), *roomtone_systems(ENDPOINT), peer_system(LANGCHAIN, Path("python"), ENDPOINT)]
    names = [entrant.name for entrant in entrants]
    assert len(set(names)) == len(names)
    assert set(names) == {"extractive", "last 50 turns", "ledger", "recursive", "langchain"}
    assert [entrant.name for entrant in entrants if not entrant.ours] == ["last 50 turns", "langchain"]


@pytest.mark.asyncio
async def test_model_that_answers_nothing_useful_is_seen_in_the_cost() -> None:
    """If a model's answers are useless, its failures and the folds that were made without it are counted."""
    evening = generate_evening(1, TemplateSet.TUNING, lines=turns_needed(4))
    async with stub_endpoint(answer_s=0.0) as endpoint:
        (ledger,) = [entrant for entrant in roomtone_systems(endpoint) if entrant.name == "ledger"]
        async with ledger.enter(evening) as contender:
            for line in evening.lines:
                await contender.hear(line)
            snapshot = await contender.snapshot()
    assert snapshot.folds > 0
    assert contender.cost.failures >= 3
    assert contender.cost.degraded > 0
