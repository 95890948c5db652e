"""What each response of a speech-to-speech model has cost, however it ends."""

from __future__ import annotations

from typing import Any

import pytest

from voice.realtime.effects import ResponseStatus
from voice.realtime.open_responses import MOST_OPEN, FinishedResponse, OpenResponses

USAGE = {"total_tokens": 47, "input_tokens": 40, "output_tokens": 7}


def _created(response: str = "resp_1") -> dict[str, Any]:
    return {"type": "response.created", "response": {"id": response}}


def _done(status: str = "completed", *, response: str = "resp_1", usage: object = USAGE) -> dict[str, Any]:
    return {"type": "response.done", "response": {"id": response, "status": status, "usage": usage}}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("completed", ResponseStatus.COMPLETE),
        # Cut off at its longest: it was answered.
        ("incomplete", ResponseStatus.COMPLETE),
        ("cancelled", ResponseStatus.CANCELLED),
        ("failed", ResponseStatus.FAILED),
    ],
)
def test_a_response_has_an_end_and_a_bill(status: str, expected: ResponseStatus) -> None:
    """Its duration counts from when the server began it. It ends once."""
    responses = OpenResponses()
    assert responses.receive(_created(), 10.0) is None
    assert responses.receive(_done(status), 12.5) == FinishedResponse(expected, 40, 7, 2.5)
    assert responses.receive(_done(status), 13.0) is None


@pytest.mark.parametrize("usage", [None, "7", {}, {"input_tokens": "40", "output_tokens": True}])
def test_an_endpoint_need_not_report_tokens(usage: object) -> None:
    """The call is known all the same."""
    responses = OpenResponses()
    responses.receive(_created(), 0.0)
    assert responses.receive(_done(usage=usage), 1.0) == FinishedResponse(ResponseStatus.COMPLETE, None, None, 1.0)


def test_responses_whose_connection_ends_are_over() -> None:
    """Nobody says any more what they cost. A late event of one has no effect."""
    responses = OpenResponses()
    responses.receive(_created("resp_1"), 0.0)
    responses.receive(_created("resp_2"), 1.0)
    assert responses.end_all(ResponseStatus.FAILED, 3.0) == [
        FinishedResponse(ResponseStatus.FAILED, None, None, 3.0),
        FinishedResponse(ResponseStatus.FAILED, None, None, 2.0),
    ]
    assert responses.receive(_done(), 4.0) is None
    assert responses.end_all(ResponseStatus.FAILED, 4.0) == []


def test_responses_that_never_end_are_not_kept_for_ever() -> None:
    """A server may begin as many as it likes. The newest are known when they end."""
    responses = OpenResponses()
    for number in range(MOST_OPEN + 1):
        responses.receive(_created(f"resp_{number}"), 0.0)
    assert responses.receive(_done(response="resp_0"), 1.0) is None
    assert responses.receive(_done(response="resp_1"), 1.0) is not None
    assert len(responses.end_all(ResponseStatus.FAILED, 1.0)) == MOST_OPEN - 1


@pytest.mark.parametrize("event", [{"type": "response.done"}, {"type": "response.created", "response": "resp_1"}, {}])
def test_what_is_no_response_is_ignored(event: dict[str, Any]) -> None:
    """Servers send what they like."""
    responses = OpenResponses()
    assert responses.receive(event, 0.0) is None
    assert responses.end_all(ResponseStatus.FAILED, 0.0) == []
