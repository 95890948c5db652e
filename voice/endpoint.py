"""An endpoint with OpenAI's API: its address, its client, and plain sentences for its failures.

Recognisers, voices, embeddings and vision models all use this module. Each adapter makes its own requests, sets its
deadline and checks the response.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus

import httpx2
import openai

from voice.endpoint_settings import address, to_connect
from voice.errors import EndpointFailureError
from voice.plain_http import AnswerRefusedError, open_http

# If a TCP connection takes longer than this, the address is wrong or the host is down. A slow model cannot be the
# cause.
CONNECT_TIMEOUT_S = 5.0
# How long a connection without a request stays open. In a talk questions come every few seconds or minutes, and a new
# connection with TLS takes two more round trips before the first word of the answer. One that the server has closed
# meanwhile is noticed before the next request.
KEEP_OPEN_S = 60.0
# What a redirect's address is quoted as. What else it may hold (a path, a query, a password) can be secret or endless.
_ORIGIN = re.compile(r"https?://[a-z0-9.:\[\]-]{1,100}")
# What is read of an answer; the libraries read one without an end until the memory is full. The vectors of a full batch
# have some 8 MB as JSON, and the sound of a sentence fewer.
MAX_ANSWER_MB = 32


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
        return address(self.base_url)

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
    usual = openai.DEFAULT_CONNECTION_LIMITS
    http_client = open_http(
        where,
        timeout=httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
        most_bytes=MAX_ANSWER_MB * 1_000_000,
        before_request=_in_one_piece,
        limits=httpx2.Limits(
            max_connections=usual.max_connections,
            max_keepalive_connections=usual.max_keepalive_connections,
            keepalive_expiry=KEEP_OPEN_S,
        ),
    )
    return openai.AsyncOpenAI(
        # The library requires a key. Servers without keys ignore it.
        api_key=api_key or "none",
        base_url=to_connect(where),
        http_client=http_client,
        max_retries=0,
    )


async def _in_one_piece(request: httpx2.Request) -> None:
    """Let a form be sent at once: httpx2 writes each of its fields twice, and each write wakes the server up."""
    await request.aread()


_UNREADABLE = "sent something that cannot be read. Check {section}.base_url"
_REDIRECTED = (
    "answered with a redirect to {target}, which is not followed. If you trust that server, set {section}.base_url to "
    "its address (it mostly ends in /v1)"
)
_UNPAID = "is not paid for: its account has too little credit. Top it up"
# What an error means, and the remedy. Of several that fit, the first.
_MEANINGS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((AnswerRefusedError,), "{why}. Check {section}.base_url"),
    (
        (openai.APITimeoutError, TimeoutError, httpx2.TimeoutException),
        "did not answer in time. Check that it is running and not overloaded",
    ),
    (
        (openai.AuthenticationError, openai.PermissionDeniedError),
        "refused the key. Set {section}.api_key to one that may use it",
    ),
    (
        (openai.NotFoundError,),
        "is not known there. Check {section}.model and {section}.base_url (it mostly ends in /v1)",
    ),
    ((openai.RateLimitError,), "is over its rate limit or quota. Wait a little, or look at the account"),
    ((openai.InternalServerError,), "failed inside (status {status}). Look at its server's log"),
    ((openai.APIStatusError,), "refused the request (status {status}). Check {settings}"),
    (
        (openai.APIConnectionError, httpx2.HTTPError),
        "cannot be reached. Check {section}.base_url and that the server is running",
    ),
    ((openai.APIResponseValidationError,), _UNREADABLE),
    # A provider behind the endpoint failed when the status 200 had been sent.
    ((openai.APIError,), "broke off its answer. Look at its server's log"),
)


def describe_failure(error: Exception, remedies: Remedies) -> EndpointFailureError:
    """Return the cause and the remedy as the end of a sentence that begins with the name of what failed. No full stop.

    The text never contains keys or the request's content.
    """
    meaning = next((meaning for kinds, meaning in _MEANINGS if isinstance(error, kinds)), _UNREADABLE)
    target = redirect_target(error)
    return EndpointFailureError(
        _REDIRECTED if target is not None else _UNPAID if is_unpaid(error) else meaning,
        section=remedies.section,
        settings=remedies.refused,
        target=target,
        status=getattr(error, "status_code", ""),
        # Of any other error the message may quote what was asked.
        why=str(error) if isinstance(error, AnswerRefusedError) else "",
    )


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
