"""Embeddings of passages, in memory for as long as they are searched: signed bytes, and the signs of each as bits.

Comparing 100,000 vectors of 384 bytes takes 15 ms of one core. So of many the few thousand are chosen whose signs
agree most with the query's, which takes one, and those are compared: what is nearest is nearly always among them.
Few are compared all. Owns no database: `bot.store.search` loads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bot.store.tags import tags_match

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from bot.store.tags import Clauses

# Bytes are turned into floats for so many rows at once, in one buffer that stays in the processor's cache: with blocks
# of 4,096 the memory had to be made each time, and a search took 200 ms instead of 10.
_BLOCK_ROWS = 256
_MAX_BYTE = 127.0
# Of more than so many the signs choose; for each wanted one they choose at least as many more.
_COMPARED = 4_096
_COMPARED_EACH = 40
_LEAST = 1e-30
# Signs are counted by so many bits at once.
_WORD_BITS = 64
# What is known of a row besides its vector; sessions and tags by number.
_ABOUT = np.dtype([("id", "i8"), ("seq", "i8"), ("at", "f8"), ("session", "i4"), ("tags", "i4"), ("scale", "f4")])
# What is too much is dropped by the tenth, not row by row.
_SLACK = 1.1
# The arrays grow by this share, so that appending stays cheap.
_GROWTH = 1.5


@dataclass(frozen=True, slots=True)
class StoredVector:
    """One embedding with what it is filtered by. `seq` is -1 where the passage is no turn and no segment."""

    passage_id: int
    session_id: str
    seq: int
    at: float
    tags: str
    scale: float
    vector: bytes


@dataclass(frozen=True, slots=True)
class VectorFilter:
    """What a vector must fulfil: clauses on its tags, a time, and not to be in view already (session, first seq)."""

    clauses: Clauses = ()
    since: float | None = None
    until: float | None = None
    in_view: tuple[str, int] | None = None


def quantize(vector: Sequence[float]) -> tuple[float, bytes]:
    """Return a vector as (scale, signed bytes): component = byte * scale. Off by at most half a step, 0.2 %."""
    values = np.asarray(vector, dtype=np.float32)
    largest = float(np.abs(values).max(initial=0.0))
    if not np.isfinite(largest) or largest < _LEAST:
        # No direction, or one that floats of 32 bits can't divide.
        return 0.0, bytes(len(values))
    scale = largest / _MAX_BYTE
    return scale, np.rint(values / scale).astype(np.int8).tobytes()


@dataclass(slots=True)
class VectorSet:
    """The vectors of one guild (or of all). Not thread-safe: one task fills it, and searches run one by one.

    `seen_id` is the database's number of the newest vector when it was loaded; `generation` the mark it was loaded at.
    """

    most: int
    generation: int = 0
    seen_id: int = 0
    _count: int = 0
    _bytes: NDArray[np.int8] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int8))
    # The signs by word and row: so a word of all rows lies in one piece.
    _signs: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint64))
    _about: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, dtype=_ABOUT))
    _session_codes: dict[str, int] = field(default_factory=dict)
    _tag_codes: dict[str, int] = field(default_factory=dict)
    _tag_sets: list[frozenset[str]] = field(default_factory=list)

    def __len__(self) -> int:
        """Return how many vectors are in it."""
        return self._count

    def add(self, vectors: Iterable[StoredVector]) -> None:
        """Take vectors in. Of another width than the first are left out. Beyond `most` the oldest passages go."""
        new = list(vectors)
        if not new:
            return
        width = self._bytes.shape[1] if self._count else len(new[0].vector)
        new = [each for each in new if len(each.vector) == width]
        self._make_room(len(new), width)
        rows = slice(self._count, self._count + len(new))
        self._bytes[rows] = np.frombuffer(b"".join(each.vector for each in new), dtype=np.int8).reshape(-1, width)
        self._signs[:, rows] = _sign_words(self._bytes[rows])
        self._about[rows] = [self._about_row(each) for each in new]
        self._count += len(new)
        if self._count > self.most * _SLACK:
            self._keep(np.sort(np.argsort(self._about["id"][: self._count])[-self.most :]))

    def nearest(self, vector: Sequence[float], wanted: VectorFilter, limit: int) -> list[tuple[int, float]]:
        """Return (passage id, cosine) of the vectors most like `vector`, best first. `vector`: unit length."""
        query = np.asarray(vector, dtype=np.float32)
        if not self._count or query.shape != (self._bytes.shape[1],):
            return []
        rows = self._rows(wanted)
        if rows is not None and not len(rows):
            return []
        rows = self._likely(query, rows, max(_COMPARED, limit * _COMPARED_EACH))
        scores = self._scores(query, rows)
        count = min(limit, len(scores))
        top = np.argpartition(-scores, count - 1)[:count]
        found = top if rows is None else rows[top]
        ranked = zip(self._about["id"][found].tolist(), scores[top].tolist(), strict=True)
        return sorted(ranked, key=lambda each: (-each[1], -each[0]))

    def _likely(
        self, query: NDArray[np.float32], rows: NDArray[np.int64] | None, most: int
    ) -> NDArray[np.int64] | None:
        """Return about `most` of the rows, those whose signs agree most with the query's; all where there are fewer."""
        count = self._count if rows is None else len(rows)
        if count <= most:
            return rows
        apart = np.zeros(count, dtype=np.uint16)
        for mine, theirs in zip(_sign_words(query[np.newaxis])[:, 0], self._signs, strict=True):
            apart += np.bitwise_count((theirs[: self._count] if rows is None else theirs[rows]) ^ mine)
        cut = int(np.searchsorted(np.cumsum(np.bincount(apart)), most))
        chosen = np.flatnonzero(apart <= cut)
        return chosen if rows is None else rows[chosen]

    def _scores(self, query: NDArray[np.float32], rows: NDArray[np.int64] | None) -> NDArray[np.float32]:
        count = self._count if rows is None else len(rows)
        scores = np.empty(count, dtype=np.float32)
        buffer = np.empty((min(_BLOCK_ROWS, count), len(query)), dtype=np.float32)
        for start in range(0, count, _BLOCK_ROWS):
            block = slice(start, min(start + _BLOCK_ROWS, count))
            floats = buffer[: block.stop - start]
            np.copyto(floats, self._bytes[block if rows is None else rows[block]])
            # Not the matrix library: its threads would contend with the recogniser's for less than a millisecond.
            np.einsum("ij,j->i", floats, query, out=scores[block])
        scales = self._about["scale"]
        scores *= scales[: self._count] if rows is None else scales[rows]
        return scores

    def _rows(self, wanted: VectorFilter) -> NDArray[np.int64] | None:
        """Return which rows fulfil what is wanted, or None for all."""
        about = self._about[: self._count]
        mask = np.ones(self._count, dtype=bool)
        if wanted.clauses:
            fits = np.array([tags_match(wanted.clauses, tags) for tags in self._tag_sets], dtype=bool)
            mask &= fits[about["tags"]]
        if wanted.since is not None:
            mask &= about["at"] >= wanted.since
        if wanted.until is not None:
            mask &= about["at"] < wanted.until
        if wanted.in_view is not None:
            session, seq = wanted.in_view
            code = self._session_codes.get(session, -1)
            mask &= (about["session"] != code) | (about["seq"] < seq)
        return None if mask.all() else np.flatnonzero(mask)

    def _about_row(self, each: StoredVector) -> tuple[float, ...]:
        session = self._session_codes.setdefault(each.session_id, len(self._session_codes))
        return (each.passage_id, each.seq, each.at, session, self._tag_code(each.tags), each.scale)

    def _tag_code(self, tags: str) -> int:
        code = self._tag_codes.get(tags)
        if code is None:
            code = self._tag_codes[tags] = len(self._tag_sets)
            self._tag_sets.append(frozenset(tags.split()))
        return code

    def _make_room(self, more: int, width: int) -> None:
        needed = self._count + more
        if needed <= len(self._about) and self._bytes.shape[1] == width:
            return
        size = max(needed, int(len(self._about) * _GROWTH))
        resized = np.zeros((size, width), dtype=np.int8)
        resized[: self._count] = self._bytes[: self._count] if self._count else 0
        self._bytes = resized
        signs = np.zeros((-(-width // _WORD_BITS), size), dtype=np.uint64)
        if self._count:
            signs[:, : self._count] = self._signs[:, : self._count]
        self._signs = signs
        about = np.zeros(size, dtype=_ABOUT)
        about[: self._count] = self._about[: self._count]
        self._about = about

    def _keep(self, rows: NDArray[np.int64]) -> None:
        self._bytes, self._signs, self._about = self._bytes[rows], self._signs[:, rows], self._about[rows]
        self._count = len(rows)


def _sign_words(vectors: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Return which components of each vector are positive, as bits: words by rows, missing components as zeros."""
    bits = np.packbits(np.asarray(vectors) > 0, axis=1)
    whole = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    whole[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(whole.view(np.uint64).T)
