"""The reply that a speech-to-speech model is giving: its responses, one after the other, and what has arrived. Pure.

A reply has one response, and another one after each round of tool calls. Each request has a number, which the server
repeats when it begins the response. So a response whose reply was given up before it began is not taken for the next
reply's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from voice.asr.unspaced import word_ends
from voice.realtime.port import REALTIME_RATE_HZ
from voice.realtime.wire import ClientEvent, object_of

if TYPE_CHECKING:
    from collections.abc import Mapping


# The usual rate of English speech-to-speech voices at their default speed.
WORDS_A_SECOND = 2.8


def words_within(sound_s: float) -> int:
    """Return about how many words are said in so many seconds of sound."""
    return round(sound_s * WORDS_A_SECOND)


def words_heard(text: str, sound_s: float) -> str:
    """Return about the beginning of `text` that is said in its first `sound_s` seconds, with single spaces."""
    words = " ".join(text.split())
    ends = [0, *islice(word_ends(words), words_within(sound_s))]
    return words[: ends[-1]]


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
    """The current or the last reply. `sound`, `words`: for each of its items on this connection, in order, the samples
    and the words that have arrived.
    """

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
    # How many samples arrived over earlier connections, and the words that belong to them.
    earlier_samples: int = 0
    said: str = ""
    # Whether the reply continues after sound that arrived over an earlier connection.
    resumed: bool = False
    # Items on this connection that hold `said`.
    resumed_items: tuple[str, ...] = ()

    @property
    def may_call(self) -> bool:
        """Return whether the response may call tools."""
        return self.steps < TOOL_STEPS

    @property
    def has_sound(self) -> bool:
        """Return whether any sound of the reply has arrived."""
        return self._samples > 0

    @property
    def sound_ms(self) -> int:
        """Return how many milliseconds of sound have arrived."""
        return milliseconds(self._samples)

    @property
    def _samples(self) -> int:
        return self.earlier_samples + sum(self.sound.values())

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
        if not self.may_call:
            response["tool_choice"] = "none"
        return {"type": "response.create", "response": response}

    def truncate(self, kept_ms: int) -> list[ClientEvent]:
        """Keep only the first `kept_ms` of its sound. Returns the events that shorten its items on this connection."""
        events: list[ClientEvent] = []
        left = max(0, kept_ms - milliseconds(self.earlier_samples))
        for item_id, samples in self.sound.items():
            length_ms = milliseconds(samples)
            kept, left = min(left, length_ms), max(0, left - length_ms)
            if kept < length_ms:
                self.sound[item_id] = kept * REALTIME_RATE_HZ // 1000
                where = {"item_id": item_id, "content_index": 0, "audio_end_ms": kept}
                events.append({"type": "conversation.item.truncate", **where})
        return events

    @property
    def is_too_long(self) -> bool:
        """Return whether more has arrived than a reply has."""
        return (
            self.called > MOST_CALLS
            or max(len(self.words), len(self.sound)) > MOST_ITEMS
            or len(self.said) + sum(map(len, self.words.values())) > MOST_CHARS
            or self._samples > MOST_SOUND_S * REALTIME_RATE_HZ
        )

    def on_connection_lost(self) -> None:
        """Keep the sound, which is played all the same, and its words. Words without sound are never heard."""
        self.earlier_samples = self._samples
        words = " ".join([self.said, *self.words.values()])
        self.said = words_heard(words, self.earlier_samples / REALTIME_RATE_HZ)
        self.sound.clear()
        self.words.clear()
        self.resumed_items = ()
        # What tools found went with the connection, so the model may look again.
        self.steps = 0

    def takes(self, response: Mapping[str, Any]) -> bool:
        """Return whether a response that the server begins is the one that was requested."""
        number = object_of(response.get("metadata")).get(_REQUEST)
        # Some servers do not repeat the number.
        return self.awaits_response and (number is None or number == self.request)


def milliseconds(samples: int) -> int:
    """Return how many whole milliseconds so many samples last."""
    return samples * 1000 // REALTIME_RATE_HZ
