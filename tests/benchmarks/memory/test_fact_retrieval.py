"""Whether search finds facts that have left the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.memory.conversation import ConversationLine, FactStatement, PlantedFact, RecordedConversation
from benchmarks.memory.fact_retrieval import find_facts, fit_summary_size
from benchmarks.memory.retrieval import SearchHit

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
    """A search that always finds the same."""

    name = "fixed"

    def __init__(self, *quotes: SearchHit) -> None:
        self._quotes = quotes

    async def add(self, lines: Sequence[ConversationLine]) -> None:
        """Take nothing in."""

    async def search(self, query: str, *, limit: int) -> Sequence[SearchHit]:
        """Return what was given."""
        assert query == FACT.question
        return self._quotes[:limit]


@pytest.mark.asyncio
async def test_latest_value_before_the_old_one() -> None:
    """Found, and in the right order."""
    found = await find_facts(EVENING, FixedSearch(SearchHit(4, NEW), SearchHit(1, OLD)), 1, "")
    assert (found.facts, found.found, found.corrected, found.old_first) == (1, 1, 1, 0)


@pytest.mark.asyncio
async def test_old_value_first_is_counted_unless_it_is_marked() -> None:
    """A quote that says that it was corrected misleads nobody."""
    unmarked = await find_facts(EVENING, FixedSearch(SearchHit(1, OLD), SearchHit(4, NEW)), 1, "")
    marked = await find_facts(EVENING, FixedSearch(SearchHit(1, OLD, replaced=True), SearchHit(4, NEW)), 1, "")
    assert (unmarked.found, unmarked.old_first) == (1, 1)
    assert (marked.found, marked.old_first) == (1, 0)


@pytest.mark.asyncio
async def test_summary_counts_where_nothing_is_found() -> None:
    """Told or found is known."""
    found = await find_facts(EVENING, FixedSearch(), 1, NEW)
    assert (found.found, found.with_summary) == (0, 1)


def test_as_much_is_read_as_a_summary_may_have() -> None:
    """What doesn't fit in 1,200 characters isn't shown."""
    assert fit_summary_size(["a" * 700, "b" * 499, "c"]) == ["a" * 700, "b" * 499]
    assert fit_summary_size(["a" * 1_201]) == []
