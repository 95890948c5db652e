"""The interface of a memory search that can be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.memory.conversations.conversation import ConversationLine


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result. `text`: as a model would see it. `seq`: the central turn. `replaced`: marked as corrected later."""

    seq: int
    text: str
    replaced: bool = False


class Retriever(Protocol):
    """Searches the turns of one conversation."""

    @property
    def name(self) -> str:
        """Return the name of the search in the report."""

    async def add(self, lines: Sequence[ConversationLine]) -> None:
        """Add more turns. The first turn has seq 0."""

    async def search(self, query: str, *, limit: int) -> Sequence[SearchHit]:
        """Return at most `limit` quotes, best first."""
