"""What each failure of an OpenAI-compatible endpoint is called in plain words, and whether waiting helps."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
import openai

from bot.llm.port import ChatModelError

# The server's own words are quoted up to here; longer ones are pages of HTML.
QUOTE_CHARS = 200


@dataclass(frozen=True, slots=True)
class _Trouble:
    """One family of failures. `sentence` may name {model}, {where}, {status} and {reason}."""

    kind: type[Exception]
    sentence: str
    retryable: bool
    timeout: bool = False


_TOO_SLOW = (
    "The language model {model} at {where} did not answer in time. "
    "Check that it is running, or raise llm.first_token_timeout_s."
)
_GARBAGE = (
    "{where} sent something that is not a chat answer. Check that llm.base_url points at an OpenAI-compatible "
    "API (it mostly ends in /v1)."
)

# The first kind that fits wins, so subclasses stand before their bases.
_TROUBLES = (
    _Trouble(openai.APITimeoutError, _TOO_SLOW, retryable=True, timeout=True),
    _Trouble(TimeoutError, _TOO_SLOW, retryable=True, timeout=True),
    _Trouble(httpx.TimeoutException, _TOO_SLOW, retryable=True, timeout=True),
    _Trouble(
        openai.AuthenticationError,
        "{where} refused the key. Set llm.api_key (or OPENAI_API_KEY) to a valid one.",
        retryable=False,
    ),
    _Trouble(
        openai.PermissionDeniedError,
        "The key may not use the language model {model} at {where}. Choose another llm.model or key.",
        retryable=False,
    ),
    _Trouble(
        openai.NotFoundError,
        "{where} does not know the language model {model}. "
        "Set llm.model to one that it serves, and check llm.base_url.",
        retryable=False,
    ),
    _Trouble(
        openai.RateLimitError,
        "The language model {model} at {where} is over its rate limit or quota. Wait a little, or look at the account.",
        retryable=True,
    ),
    _Trouble(
        openai.InternalServerError,
        "The language model {model} at {where} failed inside (status {status}). "
        "Try again, or look at its server's log.",
        retryable=True,
    ),
    _Trouble(
        openai.APIStatusError,
        "The language model {model} at {where} refused the request: {reason}. "
        "Check llm.model and that its context is large enough.",
        retryable=False,
    ),
    _Trouble(openai.APIResponseValidationError, _GARBAGE, retryable=True),
    _Trouble(
        openai.APIConnectionError,
        "No language model answers at {where}. Check llm.base_url and that the server is running.",
        retryable=True,
    ),
    _Trouble(
        openai.APIError,
        "The language model {model} at {where} broke off its answer: {reason}. Try again, or look at its server's log.",
        retryable=True,
    ),
    _Trouble(
        httpx.HTTPError,
        "The connection to the language model {model} at {where} broke in the middle of an answer. Try again.",
        retryable=True,
    ),
    # Whatever else the library makes of an answer that it cannot read (JSON, attribute and type errors).
    _Trouble(Exception, _GARBAGE, retryable=True),
)


def translate_error(error: Exception, *, model: str, where: str, key: str = "") -> ChatModelError:
    """Return `error` as a sentence with the remedy. `key`: what it must not say, though some servers quote it."""
    trouble = next(trouble for trouble in _TROUBLES if isinstance(error, trouble.kind))
    sentence = trouble.sentence.format(
        model=model, where=where, status=getattr(error, "status_code", "unknown"), reason=_reason(error, key)
    )
    return ChatModelError(sentence, retryable=trouble.retryable, timeout=trouble.timeout)


def _reason(error: Exception, key: str) -> str:
    """Return the server's own words in one short line. Only what it says as a sentence: many send the request back with
    what they refuse, and so what people said."""
    body = getattr(error, "body", None)
    told = [body.get(key) for key in ("message", "detail")] if isinstance(body, dict) else []
    if isinstance(error, openai.APIStatusError):
        told.append(f"status {error.status_code}")
    sentence = next((each for each in (*told, getattr(error, "message", "")) if isinstance(each, str) and each), "")
    if key:
        sentence = sentence.replace(key, "…")
    return " ".join((sentence or type(error).__name__).split())[:QUOTE_CHARS].rstrip(". ")
