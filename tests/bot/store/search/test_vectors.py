"""Vectors in memory: the search can be filtered and is limited in size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.store.search.vector_store import VectorSet, quantize
from compaction.memory.passage import Scope


@dataclass
class _Row:
    passage_id: int
    session_id: str
    start_seq: int | None
    at: float
    heard_from: float
    heard_until: float
    tags: str
    scale: float
    vector: bytes


def stored(passage_id: int, vector: list[float], *, tags: str = "g1", at: float = 0.0, seq: int = 0) -> _Row:
    """Return the stored vector of a passage."""
    scale, data = quantize(vector)
    return _Row(passage_id, "s", seq, at, at, at, tags, scale, data)


@pytest.mark.parametrize("values", [[0.0, 2.8e-45], [0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_what_has_no_direction_is_like_nothing(values: list[float]) -> None:
    """A vector without a direction (all zeros, NaN or infinity) has the score 0, never NaN."""
    vectors = VectorSet(most=10)
    vectors.add([stored(1, values)])
    assert vectors.nearest([1.0, 0.0], Scope(), 5) == [(1, 0.0)]


def test_the_nearest_come_first_and_equal_ones_newest_first() -> None:
    """Results are sorted by cosine similarity, and equally similar ones by the newest passage."""
    vectors = VectorSet(most=100)
    vectors.add([stored(1, [1.0, 0.0]), stored(2, [0.0, 1.0])])
    vectors.add([stored(3, [1.0, 0.0])])
    assert [each for each, _ in vectors.nearest([1.0, 0.0], Scope(), 5)] == [3, 1, 2]
    assert [each for each, _ in vectors.nearest([0.0, 1.0], Scope(), 1)] == [2]


@given(st.permutations(range(40)), st.integers(1, 12))
def test_of_too_many_the_newest_stay(order: list[int], page: int) -> None:
    """In whatever order and however many at once they are added, there are never more than may be."""
    vectors = VectorSet(most=20)
    for start in range(0, len(order), page):
        vectors.add([stored(n, [1.0, n / 100]) for n in order[start : start + page]])
        assert len(vectors) <= 20
    found = vectors.nearest([1.0, 0.0], Scope(), 99)
    assert {each for each, _ in found} >= set(range(22, 40))
    assert all(score == pytest.approx(1.0, abs=0.01) for _, score in found)


def test_of_more_than_are_compared_the_nearest_are_found() -> None:
    """Also after the oldest have left. The signs of components are those of their vector."""
    made = np.random.default_rng(1).standard_normal((3_500, 100))
    vectors = VectorSet(most=3_000)
    for start in range(0, len(made), 500):
        vectors.add([stored(n, made[n].tolist()) for n in range(start, start + 500)])
    assert all(vectors.nearest(made[n].tolist(), Scope(), 1)[0][0] == n for n in range(800, len(made), 50))
