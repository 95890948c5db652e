"""Counts the requests that `front` answers in Ray Serve's proxy process, so that Serve does not end it meanwhile.

Serve ends that process on a machine that is drained or has no recogniser any more: once that has lasted for half a
minute, and no request is counted. It does not see the requests that `front` answers, so they are added to its own
count. Serve offers nothing for that; this is the only module that touches these private parts of it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from starlette.types import ASGIApp


def ongoing_requests(serve: ASGIApp) -> Callable[[], AbstractContextManager[None]]:
    """Return what counts a request during its block. `serve`: what Ray Serve gives to a middleware: its proxy for HTTP,
    inside an application that gives requests their ids.

    Raises `AttributeError` with another version of Ray than the pinned one: then Serve does not listen.
    """
    wrapper: Any = serve
    begin, end = wrapper._app._ongoing_requests_start, wrapper._app._ongoing_requests_end

    @contextmanager
    def counted() -> Iterator[None]:
        begin()
        try:
            yield
        finally:
            end()

    return counted
