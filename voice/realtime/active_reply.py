"""The reply that a speech-to-speech model is giving: its responses, one after the other, and what has arrived. Pure.

A reply has one response, and another one after each round of tool calls. Each request has a number, which the server
repeats when it begins the response. So a response whose reply was given up before it began is not taken for the next
reply's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voice.realtime.wire import ClientEvent

# Maximum rounds of tool calls in one reply. After them the model must speak.
TOOL_STEPS = 2
# What a reply may have at most; with more than that the service is broken, or means harm. OpenAI's longest replies have
# three and a half minutes of sound.
MOST_CALLS = 8
MOST_ITEMS = 100
MOST_CHARS = 50_000
MOST_SOUND_S = 600
# The name under which a response carries the number of its request.
_REQUEST = "request"


@dataclass(slots=True)
class ActiveReply:
    """The current or the last reply. `sound`: for each of its items in order, the milliseconds that have arrived."""

    request: str = ""
    response_id: str | None = None
    # Whether the server refused the request because it still makes an earlier response.
    refused: bool = False
    over: bool = False
    steps: int = 0
    # State of the current response: its unanswered tool calls, how many it has made, and whether it has ended.
    calls: set[str] = field(default_factory=set)
    called: int = 0
    done: bool = False
    sound: dict[str, int] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    resumed: bool = False
    # Items on this connection that stand for the part of the reply that arrived over the previous connection.
    resumed_items: tuple[str, ...] = ()

    @property
    def has_sound(self) -> bool:
        """Return whether any sound of the reply has arrived."""
        return any(self.sound.values())

    @property
    def awaits_response(self) -> bool:
        """Return whether a response was requested that the server has not begun yet."""
        return not self.over and self.response_id is None

    def request_response(self, number: int) -> ClientEvent:
        """Wait for another response, and return the event that requests it. After `TOOL_STEPS` rounds of tool calls the
        model must speak.
        """
        self.response_id = None
        self.calls.clear()
        self.called, self.done, self.refused = 0, False, False
        self.request = str(number)
        response: dict[str, Any] = {"metadata": {_REQUEST: self.request}}
        if self.steps >= TOOL_STEPS:
            response["tool_choice"] = "none"
        return {"type": "response.create", "response": response}

    @property
    def is_too_long(self) -> bool:
        """Return whether more has arrived than a reply has."""
        return (
            self.called > MOST_CALLS
            or max(len(self.words), len(self.sound)) > MOST_ITEMS
            or sum(map(len, self.words.values())) > MOST_CHARS
            or sum(self.sound.values()) > 1_000 * MOST_SOUND_S
        )

    def takes(self, response: Mapping[str, Any]) -> bool:
        """Return whether a response that the server begins is the one that was requested."""
        metadata = response.get("metadata")
        number = metadata.get(_REQUEST) if isinstance(metadata, dict) else None
        # Some servers do not repeat the number.
        return self.awaits_response and (number is None or number == self.request)
