"""The interface of a memory search that can be measured, and a plain search to compare with."""

from __future__ import annotations

import re
import sqlite3
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from benchmarks.memory.conversations.conversation import ConversationLine

# A quote is a turn together with its neighbours, because an answer without its question says little.
_NEIGHBOURS = 1
_TERM = re.compile(r"\w+")
# Frequent words in questions, which would match every turn.
_EMPTY_WORDS = frozenset(
    re.findall(r"\w+", "a an the is are was were do does did of for in on at to what when where who which how much we")
)


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


@asynccontextmanager
async def plain_windows() -> AsyncIterator[PlainWindows]:
    """Yield an empty plain search."""
    with closing(sqlite3.connect(":memory:")) as database:
        yield PlainWindows(database)


class PlainWindows:
    """A baseline: BM25 over each turn with its neighbours, in SQLite's FTS5.

    It ignores corrections, so an old value ranks like a new one.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._lines: list[ConversationLine] = []
        self._indexed = 0
        self._database = database
        self._database.execute("CREATE VIRTUAL TABLE windows USING fts5(text, tokenize='porter unicode61')")

    @property
    def name(self) -> str:
        return "plain BM25 over windows"

    async def add(self, lines: Sequence[ConversationLine]) -> None:
        # Index the last turns again, because they have new neighbours now.
        self._indexed = max(0, self._indexed - _NEIGHBOURS)
        self._database.execute("DELETE FROM windows WHERE rowid > ?", (self._indexed,))
        self._lines.extend(lines)
        self._index()

    async def search(self, query: str, *, limit: int) -> Sequence[SearchHit]:
        terms = [term for term in _TERM.findall(query.casefold()) if term not in _EMPTY_WORDS]
        if not terms:
            return []
        match = " OR ".join(f'"{term}"' for term in terms)
        found = self._database.execute(
            "SELECT rowid FROM windows WHERE windows MATCH ? ORDER BY bm25(windows), rowid DESC LIMIT ?", (match, limit)
        )
        return [SearchHit(row[0] - 1, self._window(row[0] - 1)) for row in found]

    def _index(self) -> None:
        for seq in range(self._indexed, len(self._lines)):
            self._database.execute("INSERT INTO windows(rowid, text) VALUES (?, ?)", (seq + 1, self._window(seq)))
        self._indexed = len(self._lines)

    def _window(self, seq: int) -> str:
        around = self._lines[max(0, seq - _NEIGHBOURS) : seq + _NEIGHBOURS + 1]
        return "\n".join(f"{line.speaker}: {line.text}" for line in around)
