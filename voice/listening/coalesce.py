"""Groups utterances of people who speak at the same time, so that they get one reply. Pure.

A finished utterance waits while anybody is still speaking or their speech is being recognised. Then all waiting
utterances form one group, ordered by start time, each person with their own words. An utterance that calls the bot by
name does not wait.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

# If the same person says the same words within this time, they are an echo, a second client in the room, or a
# repetition by the recogniser. People repeat an answer only after another question, which takes longer.
DUPLICATE_WITHIN_S = 2.0
_WORD = re.compile(r"\w+(?:['’]\w+)*")


class TimedText(Protocol):
    """The parts of an utterance that coalescing needs. Times are monotonic seconds."""

    @property
    def user_id(self) -> int:
        """The speaker's user id."""

    @property
    def text(self) -> str:
        """The recognised words."""

    @property
    def started_at(self) -> float:
        """When the sound of the utterance starts."""

    @property
    def ended_at(self) -> float:
        """When the sound of the utterance ends."""


SpokenT = TypeVar("SpokenT", bound=TimedText)


@dataclass(frozen=True, slots=True)
class _Last:
    user_id: int
    words: tuple[str, ...]
    ended_at: float


class UtteranceCoalescer(Generic[SpokenT]):
    """Holds utterances until their group is complete. One per room; not thread-safe.

    `longest_wait_s`: the group is released after this time even if somebody speaks, because an open microphone may
    never fall silent.
    """

    def __init__(self, *, longest_wait_s: float) -> None:
        self._longest_wait_s = longest_wait_s
        self._held: list[SpokenT] = []
        self._since = 0.0
        self._urgent = False
        self._last: _Last | None = None

    def add(self, spoken: SpokenT, *, urgent: bool, now: float) -> bool:
        """Add an utterance. Returns False if it was dropped: it repeats the one that was added before it, by the same
        person.

        `urgent`: it is not dropped, and the next `release` returns the group.
        """
        words = _words(spoken.text)
        last = self._last
        if (
            not urgent
            and last is not None
            and (last.user_id, last.words) == (spoken.user_id, words)
            and 0 <= spoken.started_at - last.ended_at <= DUPLICATE_WITHIN_S
        ):
            return False
        self._last = _Last(spoken.user_id, words, spoken.ended_at)
        if not self._held:
            self._since = now
        self._held.append(spoken)
        self._urgent = self._urgent or urgent
        return True

    @property
    def held(self) -> tuple[SpokenT, ...]:
        """The utterances that wait for others."""
        return tuple(self._held)

    def release(self, *, anybody_speaks: bool, now: float) -> tuple[SpokenT, ...]:
        """Return the group if it is complete, else nothing. `anybody_speaks`: more text will come."""
        if anybody_speaks and not self._urgent and now - self._since < self._longest_wait_s:
            return ()
        return self.flush()

    def flush(self) -> tuple[SpokenT, ...]:
        """Return all held utterances, whether their group is complete or not."""
        group = tuple(sorted(self._held, key=lambda spoken: spoken.started_at))
        self._held = []
        self._urgent = False
        return group


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))
