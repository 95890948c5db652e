"""Bounded caches of what was made of people's sentences, which can all be emptied when somebody is to be forgotten."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

_emptying: list[Callable[[], None]] = []


def sentence_cache(*, most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return what lets a pure function keep its last `most` results. Its arguments must be hashable."""

    def keeping(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(maxsize=most)(function)
        _emptying.append(cached.cache_clear)
        return cast("Callable[P, R]", cached)

    return keeping


def clear_sentence_caches() -> None:
    """Forget every sentence that any of them keeps; the next answers are only slower."""
    for empty in _emptying:
        empty()
