"""Whether search finds facts that are not in the summary any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.memory.conversations.conversation import (
    ConversationLine,
    FactStatement,
    PlantedFact,
    RecordedConversation,
)
from benchmarks.memory.search.fact_retrieval import find_facts, fit_summary_size
from benchmarks.memory.search.retrieval import SearchHit

if TYPE_CHECKING:
    from collections.abc import Sequence

FACT = PlantedFact(
    "event", "raid", (FactStatement(1, "Ada", ("Thursday",)), FactStatement(4, "Ada", ("Friday",))), "When is the raid?"
)
EVENING = RecordedConversation(
    "one", "made up", tuple(ConversationLine("Ada", "…", float(n)) for n in range(70)), (FACT,)
)
OLD = "Ada: The raid is on Thursday."
NEW = "Ada: The raid is on Friday."


class FixedSearch:
    """A search that always returns the same hits."""

    name = "fixed"

    def __init__(self, *quotes: SearchHit) -> None:
        self._quotes = quotes

    async def add(self, lines: Sequence[ConversationLine]) -> None:
        """Ignore the lines."""

    async def search(self, query: str, *, limit: int) -> Sequence[SearchHit]:
        """Return the fixed hits."""
        assert query == FACT.question
        return self._quotes[:limit]


@pytest.mark.asyncio
async def test_latest_value_before_the_old_one() -> None:
    """A fact is found in the right order if its latest value comes before the old one."""
    found = await find_facts(EVENING, FixedSearch(SearchHit(4, NEW), SearchHit(1, OLD)), 1, "")
    assert (found.facts, found.found, found.corrected, found.old_first) == (1, 1, 1, 0)


@pytest.mark.asyncio
async def test_old_value_first_is_counted_unless_it_is_marked() -> None:
    """A fact whose old value comes first is counted, unless the hit is marked as replaced and so misleads nobody."""
    unmarked = await find_facts(EVENING, FixedSearch(SearchHit(1, OLD), SearchHit(4, NEW)), 1, "")
    marked = await find_facts(EVENING, FixedSearch(SearchHit(1, OLD, replaced=True), SearchHit(4, NEW)), 1, "")
    assert (unmarked.found, unmarked.old_first) == (1, 1)
    assert (marked.found, marked.old_first) == (1, 0)


@pytest.mark.asyncio
async def test_summary_counts_where_nothing_is_found() -> None:
    """A fact that search does not find counts as known if the summary has it."""
    found = await find_facts(EVENING, FixedSearch(), 1, NEW)
    assert (found.found, found.with_summary) == (0, 1)


def test_as_much_is_read_as_a_summary_may_have() -> None:
    """Only the hits that fit into 1,200 characters, the size of a summary, are read."""
    assert fit_summary_size(["a" * 700, "b" * 499, "c"]) == ["a" * 700, "b" * 499]
    assert fit_summary_size(["a" * 1_201]) == []
