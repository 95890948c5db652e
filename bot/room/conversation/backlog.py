"""The finished utterances that wait for the recogniser, and which of them is dropped when it cannot keep up. Pure.

The rule is fair between people: whoever has the most utterances waiting loses their oldest one; among equals, whoever
has waited longest does. So nobody loses their only utterance while somebody else has two. Who speaks little is heard in
full however much the others speak. The same rule holds for both bounds, the number of utterances and their sound.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from voice.audio import LISTEN_RATE_HZ

if TYPE_CHECKING:
    from voice.listening.utterance import Utterance


class UtteranceBacklog:
    """At most `size` finished utterances of one room, and `sound_s` seconds of sound, in the order in which they ended.
    A single one is kept however long it is.
    """

    def __init__(self, size: int, *, sound_s: float) -> None:
        self._size = size
        self._most_samples = round(sound_s * LISTEN_RATE_HZ)
        self._waiting: deque[Utterance] = deque()
        self._samples = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waits_since(self) -> float | None:
        """Return when the utterance that has waited longest was complete, in monotonic seconds; None if none waits."""
        return self._waiting[0].closed_at if self._waiting else None

    def add(self, utterance: Utterance) -> tuple[Utterance, ...]:
        """Add a finished utterance. Returns those that are given up for it: none if there is room."""
        self._waiting.append(utterance)
        self._samples += len(utterance.pcm)
        given_up: list[Utterance] = []
        while len(self._waiting) > self._size or (self._samples > self._most_samples and len(self._waiting) > 1):
            given_up.append(self._give_up())
        return tuple(given_up)

    def take(self) -> Utterance:
        """Remove and return the utterance that has waited longest. Raises `IndexError` if none waits."""
        utterance = self._waiting.popleft()
        self._samples -= len(utterance.pcm)
        return utterance

    def _give_up(self) -> Utterance:
        waiting_of = Counter(waiting.user_id for waiting in self._waiting)
        most = max(waiting_of.values())
        index = next(index for index, waiting in enumerate(self._waiting) if waiting_of[waiting.user_id] == most)
        given_up = self._waiting[index]
        del self._waiting[index]
        self._samples -= len(given_up.pcm)
        return given_up
