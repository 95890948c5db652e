"""Which finished utterances wait for the recogniser, and which one is given up when more are spoken than it can keep up
with. Pure.

The rule is fair between people: whoever has the most utterances waiting loses their oldest one; among equals, whoever
has waited longest does. So nobody loses their only utterance while somebody else has two. Who speaks little is heard in
full however much the others speak.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice.listening.utterance import Utterance


class UtteranceBacklog:
    """At most `size` finished utterances of one room, in the order in which they ended."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: deque[Utterance] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, utterance: Utterance) -> Utterance | None:
        """Add a finished utterance. Returns the one that is given up for it, or None if there is room."""
        self._waiting.append(utterance)
        if len(self._waiting) <= self._size:
            return None
        waiting_of = Counter(waiting.user_id for waiting in self._waiting)
        most = max(waiting_of.values())
        given_up = next(waiting for waiting in self._waiting if waiting_of[waiting.user_id] == most)
        self._waiting.remove(given_up)
        return given_up

    def take(self) -> Utterance:
        """Remove and return the utterance that has waited longest. Raises `IndexError` if none waits."""
        return self._waiting.popleft()
