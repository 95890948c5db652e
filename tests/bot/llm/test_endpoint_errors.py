"""A failure of an endpoint becomes a sentence with a remedy, and quotes nothing of the request."""

from __future__ import annotations

import errno
import socket

import httpx2
import openai
import pytest

from bot.llm.endpoint_errors import translate_error
from bot.llm.port import FilteredError

WORDS = "I live in Zanzibar"


def refused(
    body: object, status: int = 422, kind: type[openai.APIStatusError] = openai.UnprocessableEntityError
) -> openai.APIStatusError:
    """Return the error that the library raises if a server refuses a request with this body."""
    request = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
    return kind(
        f"Error code: {status} - {body}", response=httpx2.Response(status, request=request, json=body), body=body
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"message": "the context is too small"}, "refused the request: 'the context is too small'. "),
        ({"detail": "Not a\nmodel"}, "refused the request: 'Not a model'. "),
        ({"detail": [{"loc": ["body"], "input": {"messages": [WORDS]}}]}, "refused the request: 'status 422'. "),
        ([WORDS], "refused the request: 'status 422'. "),
    ],
)
def test_a_server_that_sends_the_request_back_is_not_quoted(body: object, told: str) -> None:
    """The server's message is quoted, but not the parts of the request that its answer repeats."""
    sentence = str(translate_error(refused(body), model="m", where="w"))
    assert told in sentence
    assert WORDS not in sentence


def test_a_server_that_quotes_the_key_is_quoted_without_it() -> None:
    """If the server's message contains the API key, the key is removed, because the message is shown."""
    error = refused({"message": "correct-horse-battery may not use m"})
    assert "refused the request: '… may not use m'. " in str(
        translate_error(error, model="m", where="w", key="correct-horse-battery")
    )


def test_a_redirect_is_told_with_its_remedy() -> None:
    """The message names the other server, and nothing else of its address."""
    elsewhere = httpx2.Request("POST", "https://models.example/v1/chat/completions?key=correct-horse-battery")
    response = httpx2.Response(
        307,
        request=httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions"),
        headers={"location": str(elsewhere.url)},
    )
    response.next_request = elsewhere
    told = translate_error(openai.APIStatusError("Error code: 307", response=response, body=None), model="m", where="w")
    assert "answered with a redirect to https://models.example, which is not followed" in str(told)
    assert "set llm.base_url to its address" in str(told)
    assert "correct-horse-battery" not in str(told)
    assert not told.retryable


def test_an_address_without_its_path_is_told_with_what_it_lacks() -> None:
    """A server answers so too if the address is its own alone, as http://127.0.0.1:11434 for Ollama."""
    told = translate_error(refused(None, 404, openai.NotFoundError), model="m", where="http://127.0.0.1:11434")
    assert str(told).endswith("and check llm.base_url (it mostly ends in /v1).")


@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation", "invalid_prompt"])
def test_a_filter_that_refuses_what_was_said_is_no_fault_of_the_settings(code: str) -> None:
    """Azure refuses a whole prompt with status 400. Another question may pass, so the model is asked again."""
    body = {"message": "The response was filtered due to the prompt triggering a policy.", "code": code, "status": 400}
    told = translate_error(refused(body), model="m", where="w")
    assert isinstance(told, FilteredError)
    assert told.retryable


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (404, openai.NotFoundError, "No endpoints found matching your data policy"),
        (403, openai.PermissionDeniedError, "Country, region, or territory not supported"),
    ],
)
def test_why_a_model_is_not_to_be_had_is_quoted(status: int, kind: type[openai.APIStatusError], reason: str) -> None:
    """It may be another reason than the usual one."""
    told = translate_error(refused({"message": f"{reason}."}, status, kind), model="m", where="w")
    assert f": '{reason}'. " in str(told)
    assert "llm.model" in str(told)
    assert not told.retryable


@pytest.mark.parametrize("cause", [socket.gaierror(-2, "Name or service not known"), OSError(errno.ENETUNREACH, "no")])
def test_offline_is_called_offline(cause: OSError) -> None:
    """Not a server that does not answer."""
    error = openai.APIConnectionError(request=httpx2.Request("POST", "https://models.example/v1"))
    error.__cause__ = httpx2.ConnectError("No connection.")
    error.__cause__.__cause__ = cause
    assert "this machine is offline" in str(translate_error(error, model="m", where="w"))
