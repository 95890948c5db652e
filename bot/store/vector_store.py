"""Stores embeddings in the database and searches a copy of them in memory.

A guild's vectors are loaded at its first search, and new ones are added later. After any deletion they are loaded
again, so that nothing forgotten stays in memory. The number of vectors in memory is limited; the guild that was
searched longest ago is dropped first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sqlalchemy import String, cast, delete, exists, func, insert, select, update

from bot.store import rows
from bot.store.fact_kind import KIND as FACT_KIND
from bot.store.fact_passages import text_of_fact
from bot.store.tables import hearing_opt_outs, notes, passage_vectors, passages, search_marks, segments, sessions, turns
from bot.store.tags import tag_clauses
from bot.store.vectors import StoredVector, VectorFilter, VectorSet, quantize
from compaction.memory.passage import PassageId, PassageKind, text_to_embed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from bot.store.dialects.port import PlainConnection
    from compaction.memory.passage import PassageSource, Scope

# Rows read at once: they block the event loop for about 2 ms.
_PAGE_ROWS = 1_000


class VectorStore:
    """The embeddings of passages. `most`: how many are held in memory."""

    def __init__(self, database: Database, *, most: int = 200_000) -> None:
        self._database = database
        self._most = most
        self._model: str | None = None
        # Least recently searched guild first. None: the vectors of all guilds.
        self._sets: dict[int | None, VectorSet] = {}
        self._searching = asyncio.Lock()

    # -- searching -------------------------------------------------------------------------------------------

    async def nearest(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """Return the passages whose embeddings by `model` are nearest to `vector`, with their cosine, nearest first."""
        wanted = VectorFilter(tag_clauses(scope), scope.since, scope.until, scope.in_view)
        async with self._searching:
            vectors = await self._loaded(scope.guild_id, model)
            # A search takes ten milliseconds; in a thread it does not delay audio.
            found = await asyncio.to_thread(vectors.nearest, vector, wanted, limit)
        return tuple((PassageId(passage_id), score) for passage_id, score in found)

    async def _loaded(self, guild_id: int | None, model: str) -> VectorSet:
        (generation, newest) = await self._database.read(_read_marks)
        vectors = self._sets.get(guild_id)
        kept = self._model == model and all(each.generation == generation for each in self._sets.values())
        if kept and vectors is not None and vectors.seen_id >= newest:
            self._sets[guild_id] = self._sets.pop(guild_id)
            return vectors
        return await self._refreshed(guild_id, model)

    async def _refreshed(self, guild_id: int | None, model: str) -> VectorSet:
        """Return the guild's vectors after reading new ones, or all of them if anything was deleted."""
        async with self._database.reading() as connection:
            generation = await _mark(connection, "generation")
            newest = int(await connection.scalar(select(func.max(passage_vectors.c.id))) or 0)
            if self._model != model or any(each.generation != generation for each in self._sets.values()):
                self._sets.clear()
                self._model = model
            vectors = self._sets.pop(guild_id, None)
            if vectors is None:
                vectors = VectorSet(self._most, generation=generation)
                await self._load(connection, vectors, _of_guild(guild_id, model).order_by(passage_vectors.c.id.desc()))
            else:
                newer = _of_guild(guild_id, model).where(passage_vectors.c.id > vectors.seen_id)
                await self._load(connection, vectors, newer.order_by(passage_vectors.c.id.desc()))
            vectors.seen_id = newest
        self._sets[guild_id] = vectors
        while sum(map(len, self._sets.values())) > self._most and len(self._sets) > 1:
            del self._sets[next(iter(self._sets))]
        return vectors

    async def _load(self, connection: AsyncConnection, vectors: VectorSet, wanted: Select[Any]) -> None:
        """Add the selected vectors, newest first, page by page, until the limit."""
        below: int | None = None
        loaded = 0
        while loaded < self._most:
            page = wanted if below is None else wanted.where(passage_vectors.c.id < below)
            found = (await connection.execute(page.limit(_PAGE_ROWS))).all()
            if not found:
                return
            vectors.add(
                StoredVector(
                    row.passage_id,
                    row.session_id,
                    -1 if row.start_seq is None else row.start_seq,
                    row.at,
                    row.tags,
                    row.scale,
                    row.vector,
                )
                for row in found
            )
            below = found[-1].id
            loaded += len(found)

    # -- storing ---------------------------------------------------------------------------------------------

    async def discard_other_models(self, model: str) -> None:
        """Delete the embeddings of all other models: they are not comparable with this model's."""
        others = passages.c.embedded_by.is_not(None) & (passages.c.embedded_by != model)
        async with self._database.writing() as connection:
            await connection.execute(delete(passage_vectors).where(passage_vectors.c.model != model))
            await connection.execute(update(passages).where(others).values(embedded_by=None))

    async def unembedded(self, *, limit: int) -> Sequence[tuple[PassageId, str | None]]:
        """Return passages without an embedding, newest first, with the text to embed (None: it needs none).

        A session with the words of somebody who opted out there waits, because an embedder may be another's server.
        """
        wanted = (
            select(passages.c.id, passages.c.session_id, passages.c.kind, passages.c.start_seq, passages.c.key)
            .where(passages.c.embedded_by.is_(None))
            .order_by(passages.c.id.desc())
            .limit(limit)
        )
        async with self._database.reading() as connection:
            if withheld := await _sessions_of_opted_out(connection):
                wanted = wanted.where(passages.c.session_id.not_in(withheld))
            found = (await connection.execute(wanted)).all()
            return [(PassageId(row.id), await _text_of(connection, row)) for row in found]

    async def store(self, model: str, embedded: Mapping[PassageId, Sequence[float] | None]) -> None:
        """Store the embeddings of these passages. None marks a passage that needs none. Passages deleted meanwhile are
        ignored.
        """
        async with self._database.writing() as connection:
            there = await connection.execute(select(passages.c.id).where(passages.c.id.in_(list(embedded))))
            for passage_id in there.scalars().all():
                vector = embedded[PassageId(passage_id)]
                await connection.execute(delete(passage_vectors).where(passage_vectors.c.passage_id == passage_id))
                if vector is not None:
                    scale, data = quantize(vector)
                    values = {"passage_id": passage_id, "model": model, "scale": scale, "vector": data}
                    await connection.execute(insert(passage_vectors).values(values))
                await connection.execute(update(passages).where(passages.c.id == passage_id).values(embedded_by=model))

    async def purge(self) -> bool:
        """Remove deleted words from the index. Returns whether there was anything to do."""
        async with self._database.reading() as connection:
            generation = await _mark(connection, "generation")
            if await _mark(connection, "purged") >= generation:
                return False
        await self._database.purge_index()
        async with self._database.writing() as connection:
            await connection.execute(
                update(search_marks).where(search_marks.c.name == "purged").values(value=generation)
            )
        return True


def _of_guild(guild_id: int | None, model: str) -> Select[Any]:
    wanted = (
        select(
            passage_vectors.c.id,
            passage_vectors.c.passage_id,
            passages.c.session_id,
            passages.c.start_seq,
            passages.c.at,
            passages.c.tags,
            passage_vectors.c.scale,
            passage_vectors.c.vector,
        )
        .join(passages, passages.c.id == passage_vectors.c.passage_id)
        .where(passage_vectors.c.model == model)
    )
    if guild_id is None:
        return wanted
    return wanted.join(sessions, sessions.c.id == passages.c.session_id).where(sessions.c.guild_id == guild_id)


async def _sessions_of_opted_out(connection: AsyncConnection) -> Sequence[str]:
    """Return the sessions in which somebody spoke who opted out of being heard in that guild."""
    return (await connection.scalars(select_withheld_sessions())).all()


def select_withheld_sessions() -> Select[tuple[str]]:
    """Select the sessions with passages that wait for an embedding, and with words of people who opted out there.

    For each session it reads turns only until the first of such a person.
    """
    waiting = select(passages.c.session_id).where(passages.c.embedded_by.is_(None))
    spoke = turns.c.parts.contains('"' + cast(hearing_opt_outs.c.person_id, String) + '"')
    opted_out = select(hearing_opt_outs.c.person_id).where(
        hearing_opt_outs.c.guild_id == sessions.c.guild_id,
        exists().where(turns.c.session_id == sessions.c.id, spoke).correlate(sessions, hearing_opt_outs),
    )
    return select(sessions.c.id).where(sessions.c.id.in_(waiting), opted_out.correlate(sessions).exists())


async def _text_of(connection: AsyncConnection, row: Any) -> str | None:
    source: PassageSource
    if row.kind == FACT_KIND:
        return await text_of_fact(connection, row.session_id, row.key)
    if row.kind == PassageKind.TURN:
        of_turn = select(turns).where(turns.c.session_id == row.session_id, turns.c.seq == row.start_seq)
        found = (await connection.execute(of_turn)).one_or_none()
        if found is None:
            return None
        source = rows.turn_from_row(found)
    elif row.kind == PassageKind.NOTE:
        of_note = select(notes).where(notes.c.session_id == row.session_id, notes.c.id == row.key)
        found = (await connection.execute(of_note)).one_or_none()
        if found is None:
            return None
        source = rows.note_from_row(found)
    else:
        of_segment = select(segments).where(segments.c.session_id == row.session_id, segments.c.id == row.key)
        found = (await connection.execute(of_segment)).one_or_none()
        if found is None:
            return None
        source = rows.segment_from_row(found)
    return text_to_embed(source)


def _read_marks(connection: PlainConnection) -> tuple[int, int]:
    """Return the generation and the newest vector id. If both are unchanged, nothing was stored or deleted."""
    generation, newest = connection.execute(
        "SELECT (SELECT value FROM search_marks WHERE name = 'generation'), (SELECT max(id) FROM passage_vectors)"
    ).fetchone()
    return generation or 0, newest or 0


async def _mark(connection: AsyncConnection, name: str) -> int:
    return int(await connection.scalar(select(search_marks.c.value).where(search_marks.c.name == name)) or 0)
