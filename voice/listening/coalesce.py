"""When words become a turn: people who talk at the same time make one moment of the room, not a row of snippets.

A finished utterance waits while anybody is in the midst of a sentence, or their words are on the way to becoming
text; then all that was said is one moment, in the order in which it was begun, and everybody keeps their own words.
Who calls the bot by name does not wait. Pure: it is told who is speaking and what time it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

# The same words again so soon, and nothing between: an echo, a second client in the room, the recogniser's stutter.
# A person who repeats an answer does so after another question, which takes longer.
DUPLICATE_WITHIN_S = 2.0
_EFFECT = re.compile(r"[\[(*♪][^\[\]()*♪]+[\])*♪][.!]?")
_WORD = re.compile(r"\w+(?:['’]\w+)*")


class TimedText(Protocol):
    """What coalescing looks at of an utterance's text. Times are monotonic seconds."""

    @property
    def user_id(self) -> int:
        """Return who said it."""

    @property
    def text(self) -> str:
        """Return what was said."""

    @property
    def started_at(self) -> float:
        """Return when it began, acoustically."""

    @property
    def ended_at(self) -> float:
        """Return when it ended, acoustically."""


SpokenT = TypeVar("SpokenT", bound=TimedText)


@dataclass(frozen=True, slots=True)
class _Last:
    user_id: int
    words: tuple[str, ...]
    ended_at: float


class UtteranceCoalescer(Generic[SpokenT]):
    """Holds what was said until the moment is over. Owned by the room's hearing; not thread-safe.

    `longest_wait_s`: after so long a moment is over whoever still speaks, for an open microphone never ends.
    """

    def __init__(self, *, longest_wait_s: float) -> None:
        self._longest_wait_s = longest_wait_s
        self._held: list[SpokenT] = []
        self._since = 0.0
        self._urgent = False
        self._last: _Last | None = None

    def add(self, spoken: SpokenT, *, urgent: bool, now: float) -> bool:
        """Take what was said; False if it only repeats what the same person just said and is left out.

        `urgent`: it ends the moment at once.
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

    def release(self, *, anybody_speaks: bool, now: float) -> tuple[SpokenT, ...]:
        """Return the moment if it is over, else nothing. `anybody_speaks`: somebody's words are still to come."""
        if anybody_speaks and not self._urgent and now - self._since < self._longest_wait_s:
            return ()
        return self.flush()

    def flush(self) -> tuple[SpokenT, ...]:
        """Return whatever is held, over or not."""
        moment = tuple(sorted(self._held, key=lambda spoken: spoken.started_at))
        self._held = []
        self._urgent = False
        return moment


def is_sound_effect(text: str) -> bool:
    """Return whether `text` is no words but says what sounded: '[laughter]', '(coughs)', '*sighs*'."""
    return _EFFECT.fullmatch(text.strip()) is not None


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))
