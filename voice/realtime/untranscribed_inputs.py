"""The inputs of a speech-to-speech conversation that the server has not transcribed yet.

They are kept with their sound, because a new connection needs them again. The server commits them in the order in which
they were sent, and names the item of each; later it transcribes that item.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from voice.realtime.effects import InputTranscribed
from voice.realtime.wire import ClientEvent, input_events, label_ids

if TYPE_CHECKING:
    from voice.audio import Pcm


@dataclass(slots=True)
class _Input:
    id: int
    speakers: str
    pcm: Pcm
    item_id: str | None = None


class UntranscribedInputs:
    """The inputs of one conversation, over any number of connections."""

    def __init__(self) -> None:
        self._untranscribed: dict[int, _Input] = {}
        # Those sent on this connection that have no item yet, in order; also ones that were dropped meanwhile. Numbers
        # alone: a server that names no items would have us keep all sound.
        self._uncommitted: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._untranscribed)

    def add(self, input_id: int, speakers: str, pcm: Pcm) -> None:
        """Expect the transcript of a new input (mono int16, 24 kHz)."""
        self._untranscribed[input_id] = _Input(input_id, speakers, pcm)

    def send(self, input_id: int) -> list[ClientEvent]:
        """Return the events that send an input on this connection."""
        waiting = self._untranscribed[input_id]
        self._uncommitted.append(input_id)
        return input_events(waiting.id, waiting.speakers, waiting.pcm)

    def send_all(self) -> list[ClientEvent]:
        """Return the events that send all inputs on a new connection."""
        return [event for input_id in self._untranscribed for event in self.send(input_id)]

    def drop(self, input_id: int) -> str | None:
        """Expect no transcript of an input any more. Returns its item; None if it has none yet."""
        waiting = self._untranscribed.pop(input_id, None)
        return None if waiting is None else waiting.item_id

    def clear(self) -> None:
        """Drop all inputs."""
        self._uncommitted.clear()
        self._untranscribed.clear()

    def on_connection_lost(self) -> None:
        """Forget the items of the lost connection."""
        self._uncommitted.clear()
        for waiting in self._untranscribed.values():
            waiting.item_id = None

    def on_committed(self, item_id: str) -> tuple[str, ...]:
        """Note the item of the next input. Returns the items to delete: those of an input that was dropped before."""
        if not self._uncommitted:
            return ()
        input_id = self._uncommitted.popleft()
        if (waiting := self._untranscribed.get(input_id)) is None:
            return label_ids(input_id, item_id)
        waiting.item_id = item_id
        return ()

    def on_commit_refused(self) -> InputTranscribed | None:
        """Drop the oldest input that has no item yet: the server found its buffer empty. Returns it without a text;
        None if nobody expects its transcript.
        """
        if not self._uncommitted:
            return None
        input_id = self._uncommitted.popleft()
        if self._untranscribed.pop(input_id, None) is None:
            return None
        return InputTranscribed(input_id, "", None)

    def on_transcribed(self, item_id: str, text: str | None) -> InputTranscribed | None:
        """Return the input with this item and its text (None: the server could not transcribe it); None if nobody
        expects its transcript.
        """
        for waiting in self._untranscribed.values():
            if waiting.item_id == item_id:
                del self._untranscribed[waiting.id]
                return InputTranscribed(waiting.id, item_id, text)
        return None
