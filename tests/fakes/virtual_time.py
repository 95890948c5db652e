"""Lets a test run in virtual time."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

from rehearsal.roomtone.evenings.virtual_time import run_virtually

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_P = ParamSpec("_P")


def virtually(test: Callable[_P, Coroutine[object, object, None]]) -> Callable[_P, None]:
    """Decorate a test to run in virtual time."""

    @wraps(test)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        run_virtually(test(*args, **kwargs))

    return run
