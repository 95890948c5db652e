"""Roomtone's own memory search, called as the tool `memory_search` calls it."""

from __future__ import annotations

import tempfile
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.memory.conversations.synthetic_evenings import BOT
from bot.brain.context import QUOTE_TOKENS, RESULTS_PER_QUOTE, UNQUOTED
from bot.brain.embedded.chat import FirstSentences
from bot.brain.wakeword import strip_call
from bot.clock import SystemClock
from bot.memory.recall import Recall
from bot.store import rows
from bot.store.database import Database, open_database
from bot.store.search.search import SqlRecallIndex
from bot.store.search.tags import passage_tags
from bot.store.search.vector_store import VectorStore
from bot.store.tables import passages, turns
from bot.store.turns import SqlTurnStore
from bot.tuning import UNTUNED
from compaction.errors import EmbeddingError
from compaction.memory.passage import PassageKind, Scope, source_terms
from compaction.memory.quote_search import searches_for
from compaction.memory.quotes import Quote, parse_citation, select_quotes
from compaction.memory.recall import RecallHit, parse_query
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.ports import Embedder, WordComparer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from benchmarks.memory.conversations.conversation import ConversationLine

SESSION = SessionId("bench")
# Passages that are embedded and stored in one batch.
_BATCH = 64
# A busy machine must not end a run of minutes.
PATIENCE_S = 60.0
# The first and the last of the ways to search.
FULL_TEXT = "full text alone"
WHOLE_SEARCH = "with both"


class _Vectors:
    """The vectors of an embedder, and no comparison of words."""

    def __init__(self, embedder: Embedder) -> None:
        self.model = embedder.model
        self.embed = embedder.embed


class _Comparer:
    """The comparison of words of an embedder, and no vectors."""

    model = ""

    def __init__(self, comparer: WordComparer) -> None:
        self.compare_words = comparer.compare_words

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        raise EmbeddingError("This benchmark compares words alone.", retryable=False)


class RoomtoneSearch:
    """A search over one database: by full text, and by meaning if there is an embedder."""

    def __init__(self, database: Database, embedder: Embedder | None = None) -> None:
        self.database = database
        self.store = SqlTurnStore(database, SystemClock())
        self._vectors = VectorStore(database)
        self.index = SqlRecallIndex(database, self._vectors)
        self.recall = Recall(self.index, self.store, embedder=embedder)
        self._embedder = embedder
        self._first_sentences = FirstSentences(embedder)
        self._added = 0

    async def add(self, lines: Sequence[ConversationLine]) -> None:
        """Store more turns, many in one transaction. Not needed if a memory stores its turns in this database itself.

        The stored rows equal those of the store's own indexing. That needs five statements for each turn, which takes
        ten minutes for 100,000 turns. A test compares the two.
        """
        new_turns = [turn_of(line, self._added + number) for number, line in enumerate(lines)]
        if not new_turns:
            return
        if self._added == 0:
            # The first turn creates the session.
            await self.store.append_turn(SESSION, new_turns[0])
        fresh = new_turns if self._added else new_turns[1:]
        async with self.database.writing() as connection:
            if fresh:
                await connection.execute(turns.insert(), [rows.turn_values(SESSION, turn) for turn in fresh])
                await connection.execute(passages.insert(), [_passage(turn) for turn in fresh])
        self._added += len(new_turns)

    async def embed_all(self) -> None:
        """Embed every passage that has no embedding yet, if there is an embedder."""
        while self._embedder is not None and (waiting := await self._vectors.unembedded(limit=_BATCH)):
            texts = [text for _, text in waiting if text is not None]
            made = iter(await self._embedder.embed(texts) if texts else ())
            await self._vectors.store(
                self._embedder.model,
                {passage_id: None if text is None else next(made) for passage_id, text in waiting},
            )

    def ways(self) -> dict[str, Recall]:
        """Return the ways to search this database, by name. The last is how the bot searches."""
        ways: dict[str, Embedder | None] = {FULL_TEXT: None}
        if isinstance(self._embedder, WordComparer):
            ways |= {"with the comparison": _Comparer(self._embedder), "with embeddings": _Vectors(self._embedder)}
        if self._embedder is not None:
            ways |= {WHOLE_SEARCH: self._embedder}
        return {name: Recall(self.index, self.store, embedder=embedder) for name, embedder in ways.items()}

    async def search(self, query: str, *, limit: int) -> Sequence[RecallHit]:
        """Return at most `limit` turns with their neighbours, best first."""
        return await self.recall.search(query, Scope(), limit=limit)

    async def quotes(
        self,
        question: str,
        *,
        asked_at: float,
        window: Sequence[Turn] = (),
        exchange: Sequence[Turn] = (),
        in_view: tuple[SessionId, Seq] | None = None,
    ) -> tuple[Quote, ...]:
        """Return the quotes for a question as `QuoteFinder` searches and selects them, without a summary in view."""
        searches = searches_for(
            strip_call(question, (BOT,)), " ".join(strip_call(turn.text, (BOT,)) for turn in exchange)
        )
        await self._first_sentences.read_examples(SystemClock())
        if await self._first_sentences.meaning_of(question, names=(BOT,), people=()) in UNQUOTED:
            return ()
        scope, limit = Scope(in_view=in_view), RESULTS_PER_QUOTE * UNTUNED.quotes
        found = [
            hit
            for each in searches
            for hit in await self.recall.search(each.text, scope, limit=limit)
            if hit.relevance >= each.least
        ]
        return select_quotes(
            found,
            asked=parse_query(searches[0].text if searches else ""),
            session_id=SESSION,
            asked_at=asked_at,
            window=window,
            most=UNTUNED.quotes,
            max_tokens=QUOTE_TOKENS,
            zone=UTC,
        )


def quoted_turns(quotes: Sequence[Quote]) -> list[int]:
    """Return the seqs of the turns that are quoted, in the order of the prompt."""
    return [int(cited.key) for quote in quotes for ref in quote.refs if (cited := parse_citation(ref)) is not None]


@asynccontextmanager
async def open_roomtone_search(
    embedder: Embedder | None = None, lines: Sequence[ConversationLine] = ()
) -> AsyncIterator[RoomtoneSearch]:
    """Yield a search over a temporary database with these lines."""
    with tempfile.TemporaryDirectory(prefix="roomtone-bench-") as folder:
        place = Path(folder) / "search.db"
        async with open_database(place, synchronous="normal", busy_timeout_s=PATIENCE_S) as database:
            search = RoomtoneSearch(database, embedder)
            await search.add(lines)
            await search.embed_all()
            yield search


def _passage(turn: Turn) -> dict[str, object]:
    """Return the row that `bot.store.search.passages` would store for a turn."""
    return {
        "session_id": SESSION,
        "kind": PassageKind.TURN.value,
        "key": str(turn.seq),
        "start_seq": turn.seq,
        "at": turn.started_at,
        "heard_from": turn.started_at,
        "heard_until": turn.ended_at,
        "own": " ".join(source_terms(turn)),
        "tags": passage_tags(turn, SESSION, None, None),
    }


def turn_of(line: ConversationLine, seq: int) -> Turn:
    """Return a line as the turn with this seq."""
    kind = TurnKind.ASSISTANT if line.by_bot else TurnKind.SPEECH
    return Turn(Seq(seq), kind, line.at, line.at, (TurnPart(line.speaker.casefold(), line.speaker, line.text),))
