"""Stores embeddings in the database, searches them in a copy in memory, and says which passages still need one.

The copy holds quantised embeddings and their signs. A search compares the signs of all, and the embeddings of the best:
of 30,000 turns, the ten nearest were always among them, and of the sixty 99.9 %. With 100,000 that takes 1 ms of one
core instead of 12.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    not_,
    or_,
    select,
    update,
)

from bot.store import rows
from bot.store.search.passages import read_passages
from bot.store.search.tags import FACT_KIND, tag_clauses, tags_match
from bot.store.speakers import may_have_part_of
from bot.store.tables import hearing_opt_outs, notes, passage_vectors, passages, search_marks, segments, sessions, turns
from bot.tuning import UNTUNED
from compaction.language.terms import normalized_words
from compaction.memory.passage import LEAST_EMBEDDED_WORDS, PassageId, PassageKind, Readable, Scope, text_to_embed
from compaction.model import Fact, SessionId, TurnKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database

# So many vectors with nearly the signs of the query's components are compared with it.
_COMPARED = 2_000
_MAX_BYTE = 127.0
_LEAST = 1e-30
# The fields of a row besides its vector; sessions and tags as numbers.
_ABOUT = np.dtype(
    [
        ("id", "i8"), ("seq", "i8"), ("at", "f8"), ("heard_from", "f8"), ("heard_until", "f8"), ("session", "i4"),
        ("tags", "i4"), ("scale", "f4"),
    ]
)  # fmt: skip
# Rows read at once: they block the event loop for about 2 ms.
PAGE_ROWS = 1_000
# A set that is too large keeps this share of what it may have, so that it is not cut with each new vector.
_KEPT = 0.9


def quantize(vector: Sequence[float]) -> tuple[float, bytes]:
    """Return a vector as (scale, signed bytes): component = byte * scale. Off by at most half a step, 0.2 %."""
    values = np.asarray(vector, dtype=np.float32)
    largest = float(np.abs(values).max(initial=0.0))
    if not np.isfinite(largest) or largest < _LEAST:
        # A zero vector, or one too small for 32-bit floats.
        return 0.0, bytes(len(values))
    scale = largest / _MAX_BYTE
    return scale, np.rint(values / scale).astype(np.int8).tobytes()


def _signs(vectors: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the signs of the components of vectors, 64 a number: numbers x vectors."""
    positive = np.pad(vectors > 0, ((0, 0), (0, -vectors.shape[1] % 64)))
    return np.packbits(positive, axis=1).view(np.uint64).T


@dataclass(slots=True)
class VectorSet:
    """The vectors of a database, the newest `most`. Not thread-safe: one task fills it, and searches run one at a time.

    `seen_id`: the id of the newest vector that was read. `unread_below`: no vector with a lower id was read yet; None:
    all that have room were. `generation`: the search generation when the set was begun.
    """

    most: int
    generation: int = 0
    seen_id: int = 0
    unread_below: int | None = None
    _count: int = 0
    _bytes: NDArray[np.int8] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int8))
    # The signs of the components, 64 a number: numbers x vectors.
    _signs: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint64))
    _about: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, dtype=_ABOUT))
    _session_codes: dict[str, int] = field(default_factory=dict)
    _tag_codes: dict[str, int] = field(default_factory=dict)
    _tag_sets: list[frozenset[str]] = field(default_factory=list)

    def __len__(self) -> int:
        return self._count

    def add(self, vectors: Iterable[Any]) -> None:
        """Add rows of `_of_model`, a page at most. Vectors of another width than the first are ignored. Of more than
        `most`, the newest passages are kept.
        """
        new = list(vectors)
        if not new:
            return
        if not self._count:
            # The system gives the memory as it is written to.
            self._bytes = np.zeros((self.most + PAGE_ROWS, len(new[0].vector)), dtype=np.int8)
            self._signs = np.zeros((len(_signs(self._bytes[:1])), len(self._bytes)), dtype=np.uint64)
            self._about = np.zeros(len(self._bytes), dtype=_ABOUT)
        new = [each for each in new if len(each.vector) == self._bytes.shape[1]]
        rows = slice(self._count, self._count + len(new))
        joined = b"".join(each.vector for each in new)
        self._bytes[rows] = np.frombuffer(joined, dtype=np.int8).reshape(len(new), self._bytes.shape[1])
        self._signs[:, rows] = _signs(self._bytes[rows])
        self._about[rows] = [self._about_row(each) for each in new]
        self._count += len(new)
        if self._count > self.most:
            kept = np.argsort(self._about["id"][: self._count])[-max(1, int(self.most * _KEPT)) :]
            self._count = len(kept)
            self._bytes[: self._count], self._about[: self._count] = self._bytes[kept], self._about[kept]
            self._signs[:, : self._count] = self._signs[:, kept]

    def nearest(self, vector: Sequence[float], scope: Scope, limit: int) -> list[tuple[int, float]]:
        """Return (passage id, cosine) of the vectors nearest to `vector` (unit length), nearest first."""
        query = np.asarray(vector, dtype=np.float32)
        if not self._count or query.shape != (self._bytes.shape[1],):
            return []
        rows = self._rows(scope)
        if not len(rows):
            return []
        if len(rows) > _COMPARED:
            unlike = np.bitwise_count(self._signs[:, : self._count] ^ _signs(query[np.newaxis]))
            rows = rows[np.argpartition(unlike.sum(axis=0, dtype=np.uint16)[rows], _COMPARED)[:_COMPARED]]
        # Not matmul: its threads would compete with the recogniser's to save less than a millisecond.
        scores = np.einsum("ij,j->i", self._bytes[rows].astype(np.float32), query) * self._about["scale"][rows]
        count = min(limit, len(scores))
        top = np.argpartition(-scores, count - 1)[:count]
        ranked = zip(self._about["id"][rows[top]].tolist(), scores[top].tolist(), strict=True)
        return sorted(ranked, key=lambda each: (-each[1], -each[0]))

    def _rows(self, scope: Scope) -> NDArray[np.int64]:
        """Return the numbers of the rows in a scope."""
        about = self._about[: self._count]
        mask = np.ones(self._count, dtype=bool)
        if tag_clauses(scope):
            fits = np.array([tags_match(scope, tags) for tags in self._tag_sets], dtype=bool)
            mask &= fits[about["tags"]]
        if scope.since is not None:
            mask &= about["at"] >= scope.since
        if scope.until is not None:
            mask &= about["at"] < scope.until
        if scope.readable.sessions is not None:
            mask &= self._covered(scope.readable.sessions, about)
        if scope.in_view is not None:
            session, seq = scope.in_view
            mask &= (about["session"] != self._session_codes.get(session, -1)) | (about["seq"] < seq)
        return np.flatnonzero(mask)

    def _covered(
        self, readable: Mapping[SessionId, Sequence[tuple[float, float]]], about: NDArray[np.void]
    ) -> NDArray[np.bool_]:
        """Return which rows are held by a stretch of their session (`Readable.covers`)."""
        stretches = sorted(
            (self._session_codes[session_id], start, end)
            for session_id, stretches in readable.items()
            if session_id in self._session_codes
            for start, end in stretches
        )
        if not stretches:
            return np.zeros(len(about), dtype=bool)
        codes, starts, ends = (np.array(column) for column in zip(*stretches, strict=True))
        # Sorted by session and start as one number each. Those of a session do not overlap, so of each row only the
        # last one that begins before it can hold it.
        keys = np.empty(len(about), dtype=np.complex128)
        keys.real, keys.imag = about["session"], about["heard_from"]
        last = np.searchsorted(codes + 1j * starts, keys, side="right") - 1
        held = (last >= 0) & (codes[last] == about["session"]) & (about["heard_until"] <= ends[last])
        return np.asarray(held, dtype=bool)

    def _about_row(self, each: Any) -> tuple[float, ...]:
        session = self._session_codes.setdefault(each.session_id, len(self._session_codes))
        seq = -1 if each.start_seq is None else each.start_seq
        tags = self._tag_code(each.tags)
        return (each.passage_id, seq, each.at, each.heard_from, each.heard_until, session, tags, each.scale)

    def _tag_code(self, tags: str) -> int:
        code = self._tag_codes.get(tags)
        if code is None:
            code = self._tag_codes[tags] = len(self._tag_sets)
            self._tag_sets.append(frozenset(tags.split()))
        return code


class VectorStore:
    """The embeddings of passages. Searches compare a copy in memory: the newest vectors are loaded at the first search,
    and new ones are added later. After any deletion they are loaded again, so that nothing forgotten stays in memory.

    `most`: how many are held in memory.
    """

    def __init__(self, database: Database, *, most: int = UNTUNED.vectors_in_memory) -> None:
        self._database = database
        self._most = most
        self._model: str | None = None
        self._vectors = VectorSet(most)
        self._searching = asyncio.Lock()

    async def nearest(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """Return the passages whose embeddings by `model` are nearest to `vector` (unit length), with their cosine,
        nearest first. Raises `StoreError`.
        """
        async with self._searching:
            async with self._database.reading() as connection:
                await self._refresh(connection, model)
            # A search takes ten milliseconds; in a thread it does not delay audio.
            found = await asyncio.to_thread(self._vectors.nearest, vector, scope, limit)
        return tuple((PassageId(passage_id), score) for passage_id, score in found)

    async def _refresh(self, connection: AsyncConnection, model: str) -> None:
        """Read new vectors, or all of them if anything was deleted."""
        of_generation = select(search_marks.c.value).where(search_marks.c.name == "generation")
        generation = int(await connection.scalar(of_generation) or 0)
        newest = int(await connection.scalar(select(func.max(passage_vectors.c.id))) or 0)
        if self._model != model or self._vectors.generation != generation:
            self._model = model
            # It stays if whoever searches gives up waiting: the next search goes on where this one was.
            self._vectors = VectorSet(self._most, generation=generation, seen_id=newest, unread_below=newest + 1)
        await self._load_older(connection, self._vectors, _of_model(model))
        await self._load_newer(connection, self._vectors, _of_model(model), newest)

    async def _load_older(self, connection: AsyncConnection, vectors: VectorSet, wanted: Select[Any]) -> None:
        """Add the vectors that are not read yet, newest first, page by page, until the limit."""
        while vectors.unread_below is not None:
            page = min(PAGE_ROWS, self._most - len(vectors))
            older = wanted.where(passage_vectors.c.id < vectors.unread_below).order_by(passage_vectors.c.id.desc())
            found = (await connection.execute(older.limit(page))).all() if page > 0 else []
            vectors.add(found)
            vectors.unread_below = found[-1].id if found else None

    async def _load_newer(
        self, connection: AsyncConnection, vectors: VectorSet, wanted: Select[Any], newest: int
    ) -> None:
        """Add the vectors up to `newest` that were stored since the set was begun, oldest first, page by page."""
        while vectors.seen_id < newest:
            newer = wanted.where(passage_vectors.c.id > vectors.seen_id).order_by(passage_vectors.c.id)
            found = (await connection.execute(newer.limit(PAGE_ROWS))).all()
            vectors.add(found)
            vectors.seen_id = found[-1].id if found else newest

    async def discard_other_models(self, model: str) -> None:
        """Delete the embeddings of all other models: they are not comparable with this model's."""
        others = passages.c.embedded_by.is_not(None) & (passages.c.embedded_by != model)
        async with self._database.writing() as connection:
            await connection.execute(delete(passage_vectors).where(passage_vectors.c.model != model))
            await connection.execute(update(passages).where(others).values(embedded_by=None))

    async def unembedded(self, *, limit: int) -> Sequence[tuple[PassageId, str | None]]:
        """Return passages without an embedding, newest first, with the text to embed (None: it needs none).

        What may hold words of somebody who opted out there waits, because an embedder may be another's server: in a
        session with such words, all but the turns of other people.
        """
        wanted = (
            select(passages.c.id, passages.c.session_id, passages.c.kind, passages.c.key)
            .where(passages.c.embedded_by.is_(None))
            .order_by(passages.c.id.desc())
            .limit(limit)
        )
        async with self._database.reading() as connection:
            if withheld := (await connection.scalars(_select_withheld_sessions())).all():
                wanted = wanted.where(or_(passages.c.session_id.not_in(withheld), _is_turn_of_others()))
            waiting = (await connection.execute(wanted)).all()
            found = await read_passages(connection, [row.id for row in waiting], Readable())
            texts = {each.id: text_to_embed(each.source) for each in found}
            for row in waiting:
                if row.kind == FACT_KIND:
                    texts[row.id] = await _text_of_fact(connection, row.session_id, row.key)
        return [(PassageId(row.id), texts.get(row.id)) for row in waiting]

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


def _select_withheld_sessions() -> Select[str]:
    """Select the sessions with passages that wait for an embedding, and with words or screens of people who opted out
    there.

    For each session it reads turns only until the first of such a person.
    """
    waiting = select(passages.c.session_id).where(passages.c.embedded_by.is_(None))
    person_id = cast(hearing_opt_outs.c.person_id, String)
    spoke = exists().where(turns.c.session_id == sessions.c.id, may_have_part_of(person_id))
    shared = exists().where(notes.c.session_id == sessions.c.id, notes.c.person_id == person_id)
    opted_out = select(hearing_opt_outs.c.person_id).where(
        hearing_opt_outs.c.guild_id == sessions.c.guild_id,
        or_(spoke.correlate(sessions, hearing_opt_outs), shared.correlate(sessions, hearing_opt_outs)),
    )
    return select(sessions.c.id).where(sessions.c.id.in_(waiting), opted_out.correlate(sessions).exists())


def _is_turn_of_others() -> ColumnElement[bool]:
    """Return whether a passage is a turn of which no part is of the bot, or of somebody who opted out there."""
    opted_out = exists().where(
        sessions.c.id == turns.c.session_id,
        hearing_opt_outs.c.guild_id == sessions.c.guild_id,
        may_have_part_of(cast(hearing_opt_outs.c.person_id, String)),
    )
    of_others = exists().where(
        turns.c.session_id == passages.c.session_id,
        turns.c.seq == passages.c.start_seq,
        turns.c.kind != TurnKind.ASSISTANT.value,
        not_(opted_out.correlate(turns)),
    )
    return and_(passages.c.kind == PassageKind.TURN.value, of_others.correlate(passages))


async def _text_of_fact(connection: AsyncConnection, session_id: str, key: str) -> str | None:
    """Return the text of a fact to embed, or None if an embedding would not help."""
    segment_id, _, place = key.rpartition("#")
    index = place.partition(".")[0]
    stored = select(segments).where(segments.c.session_id == session_id, segments.c.id == segment_id)
    found = (await connection.execute(stored)).one_or_none()
    facts: Sequence[Fact] = () if found is None else rows.segment_from_row(found).facts
    if not index.isdecimal() or int(index) >= len(facts):
        return None
    text = facts[int(index)].text
    return text if len(normalized_words(text)) >= LEAST_EMBEDDED_WORDS else None


def _of_model(model: str) -> Select[Any]:
    wanted = select(
        passage_vectors.c.id,
        passage_vectors.c.passage_id,
        passages.c.session_id,
        passages.c.start_seq,
        passages.c.at,
        passages.c.heard_from,
        passages.c.heard_until,
        passages.c.tags,
        passage_vectors.c.scale,
        passage_vectors.c.vector,
    )
    same = passages.c.id == passage_vectors.c.passage_id
    return wanted.join(passages, same).where(passage_vectors.c.model == model)
