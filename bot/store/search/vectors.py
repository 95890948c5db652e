"""An in-memory set of quantised embeddings, and nearest-neighbour search in it.

Comparing 100,000 vectors of 384 bytes takes 15 ms of one core. In a large set, the few thousand vectors whose signs
agree most with the query's are chosen first (1 ms), and only those are compared; the nearest is nearly always among
them. In a small set all are compared. `vector_memory` loads the set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from bot.store.search.tags import tags_match

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from bot.store.search.tags import Clauses

# Rows converted to floats at once, in a buffer that stays in the processor's cache. With blocks of 4,096 rows the
# buffer was allocated each time, and a search took 200 ms instead of 10.
_BLOCK_ROWS = 256
_MAX_BYTE = 127.0
# Larger sets are narrowed by signs to this many vectors, or to `_COMPARED_EACH` for each result.
_COMPARED = 4_096
_COMPARED_EACH = 40
_LEAST = 1e-30
# Signs are compared this many bits at once.
_WORD_BITS = 64
# The fields of a row besides its vector; sessions and tags as numbers.
_ABOUT = np.dtype([("id", "i8"), ("seq", "i8"), ("at", "f8"), ("session", "i4"), ("tags", "i4"), ("scale", "f4")])
# In a full set the oldest are looked for this many, as a share of all, at once.
_OLDEST = 0.1
# The arrays grow by this factor, so that appending stays cheap.
_GROWTH = 1.5


@dataclass(frozen=True, slots=True)
class StoredVector:
    """One embedding with its filter fields. `seq`: -1 unless the passage is a turn or a segment."""

    passage_id: int
    session_id: str
    seq: int
    at: float
    tags: str
    scale: float
    vector: bytes


@dataclass(frozen=True, slots=True)
class VectorFilter:
    """Which vectors to search. `in_view` (session, first seq): leave out turns that the model's window contains.
    `sessions`: None: all.
    """

    clauses: Clauses = ()
    since: float | None = None
    until: float | None = None
    in_view: tuple[str, int] | None = None
    sessions: frozenset[str] | None = None


def quantize(vector: Sequence[float]) -> tuple[float, bytes]:
    """Return a vector as (scale, signed bytes): component = byte * scale. Off by at most half a step, 0.2 %."""
    values = np.asarray(vector, dtype=np.float32)
    largest = float(np.abs(values).max(initial=0.0))
    if not np.isfinite(largest) or largest < _LEAST:
        # A zero vector, or one too small for 32-bit floats.
        return 0.0, bytes(len(values))
    scale = largest / _MAX_BYTE
    return scale, np.rint(values / scale).astype(np.int8).tobytes()


@dataclass(slots=True)
class VectorSet:
    """The vectors of one guild, or of all. Not thread-safe: one task fills it, and searches run one at a time.

    `seen_id`: the id of the newest vector that was read. `unread_below`: no vector with a lower id was read yet; None:
    all that have room were. `generation`: the search generation when the set was begun.
    """

    most: int
    generation: int = 0
    seen_id: int = 0
    unread_below: int | None = None
    _count: int = 0
    _bytes: NDArray[np.int8] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int8))
    # Sign words by word and row, so that one word of all rows is contiguous.
    _signs: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint64))
    _about: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, dtype=_ABOUT))
    _session_codes: dict[str, int] = field(default_factory=dict)
    _tag_codes: dict[str, int] = field(default_factory=dict)
    _tag_sets: list[frozenset[str]] = field(default_factory=list)
    # The oldest of a full set as a heap of (id, row), whose places the next vectors take; all others are newer than
    # `_oldest_until`.
    _oldest: list[tuple[int, int]] = field(default_factory=list)
    _oldest_until: int = 0

    def __len__(self) -> int:
        return self._count

    def add(self, vectors: Iterable[StoredVector]) -> None:
        """Add vectors. Vectors of another width than the first are ignored. Of more than `most`, only the newest
        passages are kept: in a full set new vectors take the places of the oldest, so that it takes no more memory.
        """
        new = list(vectors)
        if not new:
            return
        width = self._bytes.shape[1] if self._count else len(new[0].vector)
        new = [each for each in new if len(each.vector) == width]
        free = min(len(new), self.most - self._count)
        self._make_room(free, width)
        rows = [*range(self._count, self._count + free)]
        self._count += free
        self._write(rows, new[:free])
        for each in new[free:]:
            self._replace_oldest(each)

    def _replace_oldest(self, new: StoredVector) -> None:
        if not self._oldest:
            ids = self._about["id"][: self._count]
            rows = np.argsort(ids)[: max(1, int(self.most * _OLDEST))]
            self._oldest = list(zip(ids[rows].tolist(), rows.tolist(), strict=True))
            self._oldest_until = self._oldest[-1][0]
        oldest, row = self._oldest[0]
        if new.passage_id > oldest:
            heappop(self._oldest)
            self._write([row], [new])
            if new.passage_id < self._oldest_until:
                heappush(self._oldest, (new.passage_id, row))

    def _write(self, rows: list[int], vectors: Sequence[StoredVector]) -> None:
        if rows:
            joined = b"".join(each.vector for each in vectors)
            self._bytes[rows] = np.frombuffer(joined, dtype=np.int8).reshape(len(rows), -1)
            self._signs[:, rows] = _sign_words(self._bytes[rows])
            self._about[rows] = [self._about_row(each) for each in vectors]

    def nearest(self, vector: Sequence[float], filter_by: VectorFilter, limit: int) -> list[tuple[int, float]]:
        """Return (passage id, cosine) of the vectors nearest to `vector` (unit length), nearest first."""
        query = np.asarray(vector, dtype=np.float32)
        if not self._count or query.shape != (self._bytes.shape[1],):
            return []
        rows = self._rows(filter_by)
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
        """Return about `most` rows, those whose signs agree most with the query's; `rows` itself if it has no more than
        that.
        """
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
            # Not matmul: its threads would compete with the recogniser's to save less than a millisecond.
            np.einsum("ij,j->i", floats, query, out=scores[block])
        scales = self._about["scale"]
        scores *= scales[: self._count] if rows is None else scales[rows]
        return scores

    def _rows(self, filter_by: VectorFilter) -> NDArray[np.int64] | None:
        """Return the row numbers that match, or None for all rows."""
        about = self._about[: self._count]
        mask = np.ones(self._count, dtype=bool)
        if filter_by.clauses:
            fits = np.array([tags_match(filter_by.clauses, tags) for tags in self._tag_sets], dtype=bool)
            mask &= fits[about["tags"]]
        if filter_by.since is not None:
            mask &= about["at"] >= filter_by.since
        if filter_by.until is not None:
            mask &= about["at"] < filter_by.until
        if filter_by.sessions is not None:
            known = [self._session_codes[each] for each in filter_by.sessions if each in self._session_codes]
            mask &= np.isin(about["session"], known)
        if filter_by.in_view is not None:
            session, seq = filter_by.in_view
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
        size = max(needed, min(self.most, int(len(self._about) * _GROWTH)))
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


def _sign_words(vectors: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Return the signs of each vector as bits (1 for positive), shape (words, rows), padded with zeros."""
    bits = np.packbits(np.asarray(vectors) > 0, axis=1)
    whole = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    whole[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(whole.view(np.uint64).T)
