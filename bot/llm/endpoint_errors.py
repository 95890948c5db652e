"""Turns errors of OpenAI-compatible endpoints into plain sentences with a remedy, and says whether a retry may help.

The sentences are the operator's. People read that the model does not answer.
"""

from __future__ import annotations

import httpx2
import openai

from bot.errors import seems_offline
from bot.llm.port import NO_ANSWER, ChatModelError, FilteredError
from bot.texts.text import OperatorText
from voice.endpoint import redirect_target
from voice.plain_http import AnswerRefusedError

# Longer messages of a server are cut; some send pages of HTML.
QUOTE_CHARS = 200


_TIMED_OUT = (
    "The language model {model} at {where} did not answer in time. "
    "Check that it is running and not overloaded, or choose a faster one."
)
_OFFLINE = (
    "{where} is not found from here: this machine is offline, or the address is wrong. Connect it to the network, or "
    "check llm.base_url."
)
_REDIRECTED = (
    "The language model {model} at {where} answered with a redirect to {target}, which is not followed. If you trust "
    "that server, set llm.base_url to its address (it mostly ends in /v1)."
)
_NOT_A_CHAT_ANSWER = (
    "{where} sent something that is not a chat answer. Check that llm.base_url points at an OpenAI-compatible "
    "API (it mostly ends in /v1)."
)

# How OpenAI names a prompt that its filter refuses: what somebody said is no fault of the settings.
FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})

# Kinds of errors, each with its sentence, which may use {model}, {where}, {status} and {reason}, and whether a retry
# may help. The first match wins, so subclasses come before their bases.
_ERROR_KINDS: tuple[tuple[type[Exception], str, bool], ...] = (
    (openai.APITimeoutError, _TIMED_OUT, True),
    (TimeoutError, _TIMED_OUT, True),
    (httpx2.TimeoutException, _TIMED_OUT, True),
    (
        openai.AuthenticationError,
        "{where} refused the key. Set llm.api_key (or OPENAI_API_KEY) to a valid one.",
        False,
    ),
    (
        openai.PermissionDeniedError,
        "The key may not use the language model {model} at {where}: '{reason}'. Choose another llm.model or key.",
        False,
    ),
    (
        openai.NotFoundError,
        (
            "{where} does not know the language model {model}: '{reason}'. "
            "Set llm.model to one that it serves, and check llm.base_url (it mostly ends in /v1)."
        ),
        False,
    ),
    (
        openai.RateLimitError,
        (
            "The language model {model} at {where} is over its rate limit or quota. Wait a little, or look at the "
            "account."
        ),
        True,
    ),
    (
        openai.InternalServerError,
        (
            "The language model {model} at {where} failed inside (status {status}). "
            "Try again, or look at its server's log."
        ),
        True,
    ),
    (
        openai.APIStatusError,
        (
            "The language model {model} at {where} refused the request: '{reason}'. "
            "Check llm.model and that its context is large enough."
        ),
        False,
    ),
    (openai.APIResponseValidationError, _NOT_A_CHAT_ANSWER, True),
    (
        openai.APIConnectionError,
        "No language model answers at {where}. Check llm.base_url and that the server is running.",
        True,
    ),
    (
        openai.APIError,
        (
            "The language model {model} at {where} broke off its answer: '{reason}'. "
            "Try again, or look at its server's log."
        ),
        True,
    ),
    (
        AnswerRefusedError,
        "The language model {model} at {where} {reason}. Look at its server, or choose another one.",
        True,
    ),
    (
        httpx2.HTTPError,
        "The connection to the language model {model} at {where} broke in the middle of an answer. Try again.",
        True,
    ),
    # Other errors of the library when it can't read an answer (JSON, attribute and type errors).
    (Exception, _NOT_A_CHAT_ANSWER, True),
)


def translate_error(error: Exception, *, model: str, where: str, key: str = "") -> ChatModelError:
    """Return `error` as a sentence with the remedy. `key`: removed from the sentence, because some servers quote it."""
    if getattr(error, "code", None) in FILTER_CODES:
        return FilteredError()
    if (target := redirect_target(error)) is not None:
        return ChatModelError(
            OperatorText(_REDIRECTED, NO_ANSWER, model=model, where=where, target=target), retryable=False
        )
    _, pattern, retryable = next(each for each in _ERROR_KINDS if isinstance(error, each[0]))
    if seems_offline(error):
        pattern = _OFFLINE
    status = str(getattr(error, "status_code", "unknown"))
    sentence = OperatorText(pattern, NO_ANSWER, model=model, where=where, status=status, reason=_reason(error, key))
    return ChatModelError(sentence, retryable=retryable, timeout=pattern is _TIMED_OUT)


def _reason(error: Exception, key: str) -> str:
    """Return the server's message as one short line. The rest of the body is not used: many servers echo the request,
    which contains what people said. The sentence quotes it, so that the log leaves it out (bot/logs/redaction.py).
    """
    body = getattr(error, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], dict):
        # Gemini puts the error into a list.
        body = body[0].get("error", body[0])
    candidates = [body.get(field) for field in ("message", "detail")] if isinstance(body, dict) else []
    if isinstance(error, openai.APIStatusError):
        candidates.append(f"status {error.status_code}")
    sentence = next((each for each in (*candidates, str(error)) if isinstance(each, str) and each), "")
    if key:
        sentence = sentence.replace(key, "…")
    return " ".join((sentence or type(error).__name__).split())[:QUOTE_CHARS].rstrip(". ")
