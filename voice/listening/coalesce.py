"""Groups utterances of people who speak at the same time, so that they get one reply. Pure.

A finished utterance waits while anybody is still speaking or their speech is being recognised. Then all waiting
utterances form one group, ordered by start time, each person with their own words. An utterance that calls the bot by
name does not wait.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar


class TimedText(Protocol):
    """What coalescing needs of an utterance. Times are monotonic seconds."""

    @property
    def started_at(self) -> float:
        """When the sound of the utterance starts."""


SpokenT = TypeVar("SpokenT", bound=TimedText)


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

    def add(self, spoken: SpokenT, *, urgent: bool, now: float) -> None:
        """Add an utterance. `urgent`: the next `release` returns the group."""
        if not self._held:
            self._since = now
        self._held.append(spoken)
        self._urgent = self._urgent or urgent

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
