"""An endpoint with OpenAI's API: its address, its client, and plain sentences for its failures.

Recognisers, voices, embeddings and vision models all use this module. Each adapter makes its own requests, sets its
deadline and checks the response.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
import openai

from voice.endpoint_settings import address, is_this_machine, without_secrets
from voice.errors import EndpointFailureError, EnvironmentProxyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# If a TCP connection takes longer than this, the address is wrong or the host is down. A slow model cannot be the
# cause.
CONNECT_TIMEOUT_S = 5.0
# How long a connection without a request stays open. In a talk questions come every few seconds or minutes, and a new
# connection with TLS takes two more round trips before the first word of the answer. One that the server has closed
# meanwhile is noticed before the next request.
KEEP_OPEN_S = 60.0
# What a redirect's address is quoted as. What else it may hold (a path, a query, a password) can be secret or endless.
_ORIGIN = re.compile(r"https?://[a-z0-9.:\[\]-]{1,100}")
# What is read of a redirect or an error, which the libraries read whole. OpenAI's errors have a few hundred bytes.
MAX_REFUSAL_BYTES = 64 * 1024
# What is read of an answer; the libraries read one without an end until the memory is full. The vectors of a full batch
# have some 8 MB as JSON, and the sound of a sentence fewer.
MAX_ANSWER_MB = 32
# A compressed megabyte may become a thousand. Servers are asked to send what they have as it is, and few do otherwise.
MAX_COMPRESSED_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and model of an endpoint. An empty `base_url` means OpenAI itself. `timeout_s` applies to one call."""

    base_url: str
    model: str
    api_key: str = ""
    timeout_s: float = 10.0

    @property
    def where(self) -> str:
        """Return the address for messages."""
        return without_secrets(address(self.base_url))

    def open(self) -> openai.AsyncOpenAI:
        """Return a client, which the caller must close."""
        return open_client(self.base_url, self.api_key, timeout_s=self.timeout_s)


@dataclass(frozen=True, slots=True)
class Remedies:
    """The settings that an adapter's error messages name.

    `section`: the section with its `model`, `base_url` and `api_key`. `refused`: the settings to check when a request
    is refused.
    """

    section: str
    refused: str


def open_client(base_url: str, api_key: str, *, timeout_s: float) -> openai.AsyncOpenAI:
    """Return a client, which the caller must close. It never retries, because the caller decides about retries.

    Raises `EnvironmentProxyError`.
    """
    where = address(base_url)
    # A proxy of the environment is on another machine, and what is said to this one stays here.
    stays = is_this_machine(urlsplit(where).hostname or "")
    usual = openai.DEFAULT_CONNECTION_LIMITS
    limits = httpx2.Limits(
        max_connections=usual.max_connections,
        max_keepalive_connections=usual.max_keepalive_connections,
        keepalive_expiry=KEEP_OPEN_S,
    )
    try:
        http_client = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(limits=limits) if stays else None,
            timeout=httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
            limits=limits,
            headers={"Accept-Encoding": "identity"},
            # Whoever runs the bot has named this server, and the notice has told people of it. A redirect would send
            # what they say to another one, or make a request within the bot's own network. Nor is one followed on the
            # same server: the interfaces that Roomtone speaks need none, and it would take time from each sentence.
            follow_redirects=False,
            event_hooks={"request": [_in_one_piece], "response": [_bound_answer]},
        )
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        raise EnvironmentProxyError from error
    return openai.AsyncOpenAI(
        # The library requires a key. Servers without keys ignore it.
        api_key=api_key or "none",
        base_url=where,
        http_client=http_client,
        max_retries=0,
    )


async def _in_one_piece(request: httpx2.Request) -> None:
    """Let a form be sent at once: httpx2 writes each of its fields twice, and each write wakes the server up."""
    await request.aread()


async def _bound_answer(response: httpx2.Response) -> None:
    """Let no more of an answer be read than it may have, however much the server sends: of a redirect or an error the
    first `MAX_REFUSAL_BYTES`; any other fails beyond `MAX_ANSWER_MB`.
    """
    if not isinstance(response.stream, httpx2.AsyncByteStream):
        return
    if not response.is_success:
        response.stream = _Bounded(response.stream, MAX_REFUSAL_BYTES, fails=False)
        return
    is_plain = response.headers.get("content-encoding", "identity").lower() == "identity"
    response.stream = _Bounded(
        response.stream, MAX_ANSWER_MB * 1_000_000 if is_plain else MAX_COMPRESSED_BYTES, fails=True
    )


class AnswerTooLargeError(httpx2.HTTPError):
    """An endpoint sent more than any answer has."""


class _Bounded(httpx2.AsyncByteStream):
    """The first `most_bytes` of another stream, which then ends, or fails."""

    def __init__(self, whole: httpx2.AsyncByteStream, most_bytes: int, *, fails: bool) -> None:
        self._whole = whole
        self._most_bytes = most_bytes
        self._fails = fails

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most_bytes
        async for piece in self._whole:
            if len(piece) > left and self._fails:
                raise AnswerTooLargeError("an answer that is too large")
            yield piece[:left]
            left -= len(piece)
            if left <= 0 and not self._fails:
                return

    async def aclose(self) -> None:
        await self._whole.aclose()


def describe_failure(error: Exception, remedies: Remedies) -> EndpointFailureError:
    """Return the cause and the remedy as the end of a sentence that begins with the name of what failed. No full stop.

    The text never contains keys or the request's content.
    """
    section = remedies.section
    match error:
        case AnswerTooLargeError():
            return EndpointFailureError(
                "sent more than {size} MB at once. Check {section}.base_url", size=MAX_ANSWER_MB, section=section
            )
        case openai.APITimeoutError() | TimeoutError() | httpx2.TimeoutException():
            return EndpointFailureError("did not answer in time. Check that it is running and not overloaded")
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return EndpointFailureError(
                "refused the key. Set {section}.api_key to one that may use it", section=section
            )
        case openai.NotFoundError():
            return EndpointFailureError(
                "is not known there. Check {section}.model and {section}.base_url (it mostly ends in /v1)",
                section=section,
            )
        case openai.RateLimitError():
            return EndpointFailureError("is over its rate limit or quota. Wait a little, or look at the account")
        case openai.APIStatusError() if (target := redirect_target(error)) is not None:
            return EndpointFailureError(
                "answered with a redirect to {target}, which is not followed. If you trust that server, set "
                "{section}.base_url to its address (it mostly ends in /v1)",
                target=target,
                section=section,
            )
        case openai.APIStatusError() if is_unpaid(error):
            return EndpointFailureError("is not paid for: its account has too little credit. Top it up")
        case openai.InternalServerError():
            return EndpointFailureError(
                "failed inside (status {status}). Look at its server's log", status=str(error.status_code)
            )
        case openai.APIStatusError():
            return EndpointFailureError(
                "refused the request (status {status}). Check {settings}",
                status=str(error.status_code),
                settings=remedies.refused,
            )
        case openai.APIConnectionError() | httpx2.HTTPError():
            return EndpointFailureError(
                "cannot be reached. Check {section}.base_url and that the server is running", section=section
            )
        case openai.APIError() if not isinstance(error, openai.APIResponseValidationError):
            # A provider behind the endpoint failed when the status 200 had been sent.
            return EndpointFailureError("broke off its answer. Look at its server's log")
        case _:
            return EndpointFailureError("sent something that cannot be read. Check {section}.base_url", section=section)


def redirect_target(error: Exception) -> str | None:
    """Return the server to which an endpoint redirects, as `https://host:port`, or ? if that is no usual address. None:
    this error is no redirect.
    """
    if not isinstance(error, openai.APIStatusError) or not error.response.has_redirect_location:
        return None
    asked = error.response.next_request
    origin = "" if asked is None else f"{asked.url.scheme}://{asked.url.netloc.decode('ascii')}"
    return origin if _ORIGIN.fullmatch(origin) else "?"


def is_unpaid(error: Exception) -> bool:
    """Return whether an account has too little credit left, as OpenRouter's and DeepSeek's tell."""
    return isinstance(error, openai.APIStatusError) and error.status_code == HTTPStatus.PAYMENT_REQUIRED


def is_retryable(error: Exception) -> bool:
    """Return whether the same request may succeed later without anybody changing anything."""
    lasting = isinstance(error, openai.APIStatusError) and not isinstance(
        error, openai.RateLimitError | openai.InternalServerError
    )
    return not lasting
