"""The OpenAI-compatible endpoint that a local chat server forwards requests to.

Requests are forwarded unchanged, with tools and `response_format`. The only check on answers is that they are JSON.
When the client disconnects, the forwarded request is disconnected too.
"""

from __future__ import annotations

import json
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self

import aiohttp

from rehearsal.errors import RehearsalError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
    from types import TracebackType

    from rehearsal.servers.chat_wire import Payload

CONNECT_TIMEOUT_S = 5.0
# A model on a slow processor may take minutes to read a long prompt. The client usually gives up sooner.
SILENCE_TIMEOUT_S = 600.0
_WELL, _BAD_GATEWAY = 200, 502
_MAX_MESSAGE_CHARS = 300
_DATA, _END = b"data:", b"[DONE]"


class UpstreamError(RehearsalError):
    """The endpoint did not answer. `status` and the message are for the client."""

    def __init__(self, message: str, *, status: int = _BAD_GATEWAY) -> None:
        super().__init__(message)
        self.status = status


class Upstream:
    """One endpoint and the name of its model.

    *Ownership*: an async context manager, which owns its connections. *Cancellation* disconnects. Several requests may
    run at the same time.
    """

    def __init__(self, base_url: str, model: str) -> None:
        self._completions = f"{base_url.rstrip('/')}/chat/completions"
        self.model = model
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        patience = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=SILENCE_TIMEOUT_S)
        self._session = aiohttp.ClientSession(timeout=patience)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def complete(self, body: Mapping[str, Any]) -> Payload:
        """Return the answer to a request without streaming. Raises `UpstreamError`."""
        async with await self._post(body) as response:
            with self._translate_errors():
                return _payload(await response.read())

    @asynccontextmanager
    async def stream(self, body: Mapping[str, Any]) -> AsyncIterator[AsyncGenerator[Payload, None]]:
        """Request a stream and yield its chunks. Raises `UpstreamError`, also while the chunks are read."""
        async with await self._post(body) as response, aclosing(self._chunks(response)) as chunks:
            yield chunks

    async def _post(self, body: Mapping[str, Any]) -> aiohttp.ClientResponse:
        assert self._session is not None, "entered before"
        with self._translate_errors():
            response = await self._session.post(self._completions, json={**body, "model": self.model})
            if response.status == _WELL:
                return response
            async with response:
                raise UpstreamError(_message(await response.read()), status=response.status)

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncGenerator[Payload, None]:
        with self._translate_errors():
            async for line in response.content:
                if not line.startswith(_DATA):
                    continue
                data = line.removeprefix(_DATA).strip()
                if data == _END:
                    return
                yield _payload(data)
        raise UpstreamError(
            f"The language model {self.model} behind this server stopped in the middle of its answer. Ask again."
        )

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate connection errors to `UpstreamError`. Use it only around this endpoint's own I/O, not the client's
        code.
        """
        try:
            yield
        # aiohttp raises ValueError when a line of the stream is too long.
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise UpstreamError(
                f"The language model {self.model} cannot be reached ({type(error).__name__}). Restart it."
            ) from error


def _payload(data: bytes) -> Payload:
    try:
        payload = json.loads(data)
    except ValueError as error:
        raise UpstreamError("The language model behind this server did not answer with JSON.") from error
    if not isinstance(payload, dict):
        raise UpstreamError("The language model behind this server did not answer with a JSON object.")
    return payload


def _message(data: bytes) -> str:
    """Return the endpoint's error message, or the beginning of its answer."""
    text = data.decode("utf-8", "replace")
    try:
        message = json.loads(text)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = text
    return str(message)[:_MAX_MESSAGE_CHARS]
