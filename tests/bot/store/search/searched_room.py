"""A room of the database whose words can be searched."""

from __future__ import annotations

from sqlalchemy import update

from bot.store.database import Database
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.sessions import Sessions
from bot.store.tables import turns
from bot.store.turns import SqlTurnStore
from compaction.memory.passage import PassageSource
from compaction.model import CompactionState, Note, SessionId, Turn
from compaction.ports import Landing
from tests.compaction.memory.recall_index_contract import PLACES, LetterEmbedder
from tests.fakes.clock import FakeClock


class SearchedRoom:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.store = SqlTurnStore(database, FakeClock())
        self.sessions = Sessions(database, FakeClock())
        self.vectors = VectorStore(database)
        self.index = SqlRecallIndex(database, self.vectors)
        self._revisions: dict[SessionId, int] = {}

    async def add(self, session_id: SessionId, *sources: PassageSource) -> None:
        guild_id, channel_id = PLACES[session_id]
        await self.sessions.open(guild_id=guild_id, channel_id=channel_id, resume_within_s=1e12, session_id=session_id)
        for source in sources:
            if isinstance(source, Turn):
                await self.store.append_turn(session_id, source)
            elif isinstance(source, Note):
                await self.store.add_note(session_id, source)
            else:
                revision = self._revisions[session_id] = self._revisions.get(session_id, 0) + 1
                before = (await self.store.load(session_id)).state
                state = CompactionState(cursor=source.end, revision=revision)
                assert await self.store.land(Landing(session_id, before.cursor, before.revision, source, state))

    async def forget(self, session_id: SessionId, seq: int) -> None:
        async with self.database.writing() as connection:
            await connection.execute(
                update(turns)
                .where(turns.c.session_id == session_id, turns.c.seq == seq)
                .values(parts="[]", tombstone=True)
            )

    async def embed(self) -> None:
        embedder = LetterEmbedder()
        while waiting := await self.vectors.unembedded(limit=3):
            embedded = {}
            for passage_id, words in waiting:
                embedded[passage_id] = None if words is None else (await embedder.embed([words]))[0]
            await self.vectors.store(embedder.model, embedded)
