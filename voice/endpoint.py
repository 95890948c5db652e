"""An endpoint with OpenAI's API: its address, its client, and plain sentences for its failures.

Recognisers, voices, embeddings and vision models all use it. Each adapter makes its own requests, sets its deadline and
checks the response.
"""

from __future__ import annotations

from dataclasses import dataclass

import httpx
import openai

OPENAI_URL = "https://api.openai.com/v1"
# A TCP connection that takes longer is a wrong address or a dead host, not a slow model.
CONNECT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Which endpoint and model. `base_url` empty is OpenAI itself; `timeout_s` is for one call."""

    base_url: str
    model: str
    api_key: str = ""
    timeout_s: float = 10.0

    @property
    def where(self) -> str:
        """Return the address."""
        return address(self.base_url)

    def open(self) -> openai.AsyncOpenAI:
        """Return a client that the caller closes."""
        return open_client(self.base_url, self.api_key, timeout_s=self.timeout_s)


@dataclass(frozen=True, slots=True)
class Remedies:
    """The settings that an adapter's error messages name.

    `section`: the section with its `model`, `base_url` and `api_key`. `answer`: what the endpoint returns. `refused`:
    what to check when a request is refused. `timeout`: the setting for more time, if there is one.
    """

    section: str
    answer: str
    refused: str
    timeout: str = ""


def address(base_url: str) -> str:
    """Return the address of a `base_url` setting; empty is OpenAI itself."""
    return base_url or OPENAI_URL


def open_client(base_url: str, api_key: str, *, timeout_s: float) -> openai.AsyncOpenAI:
    """Return a client that the caller closes. It never retries: the caller decides."""
    return openai.AsyncOpenAI(
        # The library insists on some key; servers without keys ignore it.
        api_key=api_key or "none",
        base_url=address(base_url),
        timeout=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
        max_retries=0,
    )


def describe_failure(error: Exception, remedies: Remedies) -> str:
    """Return the cause and the remedy, to follow the name of what failed in a sentence; no full stop.

    Keys and the request's content never appear in it.
    """
    section = remedies.section
    match error:
        case openai.APITimeoutError() | TimeoutError() | httpx.TimeoutException():
            more = f", or raise {remedies.timeout}" if remedies.timeout else " and not overloaded"
            return f"did not answer in time. Check that it is running{more}"
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return f"refused the key. Set {section}.api_key to one that may use it"
        case openai.NotFoundError():
            return f"is not known there. Check {section}.model and {section}.base_url (it mostly ends in /v1)"
        case openai.RateLimitError():
            return "is over its rate limit or quota. Wait a little, or look at the account"
        case openai.InternalServerError():
            return f"failed inside (status {error.status_code}). Look at its server's log"
        case openai.APIStatusError():
            return f"refused the request (status {error.status_code}). Check {remedies.refused}"
        case openai.APIConnectionError() | httpx.HTTPError():
            return f"cannot be reached. Check {section}.base_url and that the server is running"
        case _:
            return f"sent something that is no {remedies.answer}. Check {section}.base_url"


def is_retryable(error: Exception) -> bool:
    """Return whether the same request may succeed later without anybody changing anything."""
    lasting = isinstance(error, openai.APIStatusError) and not isinstance(
        error, openai.RateLimitError | openai.InternalServerError
    )
    return not lasting
