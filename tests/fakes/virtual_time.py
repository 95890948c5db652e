"""Lets a test run in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import ParamSpec

from rehearsal.roomtone.evenings.virtual_time import run_virtually

_P = ParamSpec("_P")


def virtually(test: Callable[_P, Coroutine[object, object, None]]) -> Callable[_P, None]:
    """Decorate a test to run in virtual time."""

    @wraps(test)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        run_virtually(test(*args, **kwargs))

    return run
