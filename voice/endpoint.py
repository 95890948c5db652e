"""An endpoint that speaks OpenAI's API: where it is, the client that opens it, and what its failures are called.

Recognisers, voices, embeddings and vision models are all asked through it. Each adapter keeps what is its own: the
request, the deadline, the check of what comes back.
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
    """What an adapter tells people to look at, by the names of its settings.

    `section`: where its `model`, `base_url` and `api_key` stand. `answer`: what it waits for. `refused`: what to check
    when a request is refused. `timeout`: the setting that grants more time, if there is one.
    """

    section: str
    answer: str
    refused: str
    timeout: str = ""


def address(base_url: str) -> str:
    """Return the address that a setting means; empty is OpenAI itself."""
    return base_url or OPENAI_URL


def open_client(base_url: str, api_key: str, *, timeout_s: float) -> openai.AsyncOpenAI:
    """Return a client that the caller closes. It tries nothing twice: whether that is worth it, who waits decides."""
    return openai.AsyncOpenAI(
        # The library insists on some key; servers without keys ignore it.
        api_key=api_key or "none",
        base_url=address(base_url),
        timeout=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
        max_retries=0,
    )


def describe_failure(error: Exception, remedies: Remedies) -> str:
    """Return the rest of a sentence that begins with who failed: the cause and the remedy, without a full stop.

    Keys and what was sent never enter it.
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
    """Return whether the same request may go well later, with nobody doing anything."""
    lasting = isinstance(error, openai.APIStatusError) and not isinstance(
        error, openai.RateLimitError | openai.InternalServerError
    )
    return not lasting
