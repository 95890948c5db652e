"""How many failures in a row speech-to-speech is forgiven, and how long it is left alone after that. Pure.

Lost connections, failed answers and words that were not written down are counted together but forgiven apart: a service
that takes every connection and writes down every word, and never answers, is one that fails, and so is one that answers
and leaves everybody waiting for what was said.
"""

from __future__ import annotations

from typing import Final

# However often it fails right after it came back, it is tried twice an hour.
MAX_RETRY_DELAY_S: Final = 1_800.0


class FailureBudget:
    """One session's. `failures_in_a_row`: so many are too many. `rest_s`: the time until it is tried again, doubled
    whenever it fails before a first answer."""

    def __init__(self, *, failures_in_a_row: int, rest_s: float) -> None:
        self._most = failures_in_a_row
        self._first_rest_s = rest_s
        self._connections = 0
        self._answers = 0
        self._unwritten = 0
        self._on_probation = False
        self._relapses = 0

    @property
    def failures(self) -> int:
        """Return how many there were in a row."""
        return self._connections + self._answers + self._unwritten

    @property
    def exhausted(self) -> bool:
        """Return whether it is to be given up. Back after a rest it has one chance until it has answered."""
        return self.failures >= (1 if self._on_probation else self._most)

    @property
    def rest_s(self) -> float:
        """Return how long it is to be left alone."""
        return min(self._first_rest_s * float(2**self._relapses), max(MAX_RETRY_DELAY_S, self._first_rest_s))

    def lost(self) -> None:
        """A connection could not be made, or broke soon."""
        self._connections += 1

    def failed(self) -> None:
        """An answer did not come."""
        self._answers += 1

    def unwritten(self) -> None:
        """What was said did not come back in writing."""
        self._unwritten += 1

    def connected(self) -> None:
        """A connection works: it has held for long."""
        self._connections = 0

    def wrote(self) -> None:
        """What was said came back in writing, or word that it can't be written: the connection works too."""
        self._connections = self._unwritten = 0

    def answered(self) -> None:
        """An answer came whole. It says nothing about what is written down."""
        self._connections = self._answers = self._relapses = 0
        self._on_probation = False

    def came_back(self) -> None:
        """It was given up and takes connections again."""
        self._relapses += self._on_probation
        self._connections = self._answers = self._unwritten = 0
        self._on_probation = True
