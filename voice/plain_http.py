"""The HTTP client for servers in the settings: the only one, so that its rules hold for each of them.

It asks for answers as they are and reads nothing of a compressed one: 3 KB can become 3 GB, and every bound here and in
the adapters counts what is kept in memory. It bounds how much is read, follows no redirect, and uses no proxy for what
stays on this machine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2

from voice.endpoint_settings import is_this_machine
from voice.errors import EnvironmentProxyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    # A last step before a request is sent.
    BeforeRequest = Callable[[httpx2.Request], Awaitable[None]]

# What is read of a redirect or an error, which the libraries read whole. OpenAI's errors have a few hundred bytes.
MAX_REFUSAL_BYTES = 64 * 1024
# What a whole answer, or one event of a stream, is made of, told by its signs before anything is made of it. The
# libraries make an object of Python of each, in 30 µs: of 32 MB in a quarter of an hour, in which nobody is heard, and
# of gigabytes. 64 vectors have a comma for each of their thousands of numbers, and few braces.
MOST_PARTS = 600_000
_PARTS_OF_BRACE = 16
PLAIN = "identity"


class AnswerRefusedError(httpx2.HTTPError):
    """An answer is not read, or not read to its end, because of its form. The message completes `it …`."""


def open_http(
    url: str,
    *,
    timeout: httpx2.Timeout,
    most_bytes: int,
    before_request: BeforeRequest,
    headers: Mapping[str, str] | None = None,
    limits: httpx2.Limits | None = None,
    endless_events: bool = False,
    refusal: Callable[[AnswerRefusedError], Exception] = lambda error: error,
) -> httpx2.AsyncClient:
    """Return a client for the server of `url`, which the caller must close. Raises `EnvironmentProxyError`.

    `most_bytes`: an answer that is larger fails. `endless_events`: unless it is a stream of events, whose reader bounds
    each, and what any message is made of. `refusal`: returns what is raised in place of an `AnswerRefusedError`.
    """
    limits = limits or httpx2.Limits()
    # A proxy of the environment is on another machine, and what is said to this one stays here.
    stays = is_this_machine(urlsplit(url).hostname or "")
    check = partial(_check_answer, most_bytes=most_bytes, endless_events=endless_events, refusal=refusal)
    try:
        return httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(limits=limits) if stays else None,
            timeout=timeout,
            limits=limits,
            headers=dict(headers or {}) | {"Accept-Encoding": PLAIN},
            # Whoever runs the bot has named this server, and the notice has told people of it. A redirect would send
            # what they say to another one, or make a request within the bot's own network. Nor is one followed on the
            # same server: the interfaces that Roomtone speaks need none, and it would take time from each sentence.
            follow_redirects=False,
            event_hooks={"request": [before_request], "response": [check]},
        )
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        raise EnvironmentProxyError from error


async def _check_answer(
    answer: httpx2.Response,
    *,
    most_bytes: int,
    endless_events: bool,
    refusal: Callable[[AnswerRefusedError], Exception],
) -> None:
    """Let no more of an answer be read than it may have: nothing of a compressed one, whatever its status; of a
    redirect or an error the first `MAX_REFUSAL_BYTES`.
    """
    kind = answer.headers.get("content-type", "").lower()
    is_events = kind.startswith("text/event-stream")
    if not isinstance(answer.stream, httpx2.AsyncByteStream):
        return
    encodings = answer.headers.get_list("content-encoding", split_commas=True)
    if any(each.strip().lower() != PLAIN for each in encodings):
        error = AnswerRefusedError("compresses its answers, though it was asked not to")
        answer.stream = _Bounded(answer.stream, 0, partial(refusal, error))
    elif not answer.is_success:
        answer.stream = _Bounded(answer.stream, MAX_REFUSAL_BYTES)
    elif not (endless_events and is_events):
        too_large = AnswerRefusedError(f"sent more than {most_bytes // 1_000_000} MB at once")
        answer.stream = _Bounded(answer.stream, most_bytes, partial(refusal, too_large))
        if not endless_events and (is_events or "json" in kind):
            answer.stream = _Countable(answer.stream, is_events=is_events)


class _Countable(httpx2.AsyncByteStream):
    """Another stream, which fails once an answer in it, or an event of it, has too many parts."""

    def __init__(self, whole: httpx2.AsyncByteStream, *, is_events: bool) -> None:
        self._whole = whole
        self._is_events = is_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = 0
        async for piece in self._whole:
            begun = piece
            if self._is_events:
                # What is in one piece is too short to have too many.
                _, ended, begun = piece.replace(b"\r", b"").rpartition(b"\n\n")
                parts = 0 if ended else parts
            parts += begun.count(b",") + begun.count(b"[") + _PARTS_OF_BRACE * begun.count(b"{")
            if parts > MOST_PARTS:
                raise AnswerRefusedError("sent an answer of too many parts")
            yield piece

    async def aclose(self) -> None:
        await self._whole.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """The first `most_bytes` of another stream, which then ends, or fails with what `failure` returns."""

    def __init__(
        self, whole: httpx2.AsyncByteStream, most_bytes: int, failure: Callable[[], Exception] | None = None
    ) -> None:
        self._whole = whole
        self._most_bytes = most_bytes
        self._failure = failure

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most_bytes
        if not left and self._failure is not None:
            raise self._failure()
        async for piece in self._whole:
            if len(piece) > left and self._failure is not None:
                raise self._failure()
            yield piece[:left]
            left -= len(piece)
            if left <= 0 and self._failure is None:
                return

    async def aclose(self) -> None:
        await self._whole.aclose()
