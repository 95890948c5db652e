"""Bounded caches for functions that take people's sentences. All caches can be cleared at once when words are
forgotten.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

_clear_functions: list[Callable[[], None]] = []


def sentence_cache(*, most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a pure function so that its last `most` results are cached. Its arguments must be hashable."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(maxsize=most)(function)
        _clear_functions.append(cached.cache_clear)
        return cast("Callable[P, R]", cached)

    return decorate


def clear_sentence_caches() -> None:
    for clear in _clear_functions:
        clear()
