"""The responses that a speech-to-speech model makes now, and what each has cost once it is over. Pure.

The room may have given up a response by then, as after a barge-in. It is billed all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from voice.realtime.effects import ResponseStatus
from voice.realtime.wire import id_of, object_of

if TYPE_CHECKING:
    from collections.abc import Mapping

# A server makes one at a time. Those that were cancelled end within moments.
MOST_OPEN = 64


@dataclass(frozen=True, slots=True)
class FinishedResponse:
    """A response that is over. The tokens are as the endpoint reports them, or None. `duration_s`: since the server
    began it.
    """

    status: ResponseStatus
    input_tokens: int | None
    output_tokens: int | None
    duration_s: float


class OpenResponses:
    """The responses of one connection that the server has begun and not ended. `now`: monotonic seconds."""

    def __init__(self) -> None:
        self._begun_at: dict[str, float] = {}

    def receive(self, event: Mapping[str, Any], now: float) -> FinishedResponse | None:
        """Take an event of the server. Returns the response that it ends, if it ends one."""
        response = event.get("response")
        if not isinstance(response, dict):
            return None
        response_id = id_of(response.get("id"))
        match event.get("type"):
            case "response.created":
                self._begun_at[response_id] = now
                while len(self._begun_at) > MOST_OPEN:
                    del self._begun_at[next(iter(self._begun_at))]
            case "response.done" if (begun_at := self._begun_at.pop(response_id, None)) is not None:
                return _finished(response, now - begun_at)
        return None

    def end_all(self, status: ResponseStatus, now: float) -> list[FinishedResponse]:
        """Return all that are open, ended without an event: nobody says any more what they cost."""
        ended = [FinishedResponse(status, None, None, now - begun_at) for begun_at in self._begun_at.values()]
        self._begun_at.clear()
        return ended


def _finished(response: Mapping[str, Any], duration_s: float) -> FinishedResponse:
    tokens = object_of(response.get("usage"))
    return FinishedResponse(
        _status_of(response), _count(tokens, "input_tokens"), _count(tokens, "output_tokens"), duration_s
    )


def _status_of(response: Mapping[str, Any]) -> ResponseStatus:
    match response.get("status"):
        case "failed":
            return ResponseStatus.FAILED
        case "cancelled":
            return ResponseStatus.CANCELLED
    return ResponseStatus.COMPLETE


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    count = usage.get(name)
    return count if isinstance(count, int) and not isinstance(count, bool) else None
