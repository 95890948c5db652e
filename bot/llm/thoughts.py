"""Leaves out what a model thinks before its answer, where the server sends it as part of the answer. Pure.

The thoughts stand in `<think>` tags. Some chat templates open the tag at the end of the prompt (DeepSeek R1, Qwen's
Thinking models); then the answer begins with thoughts, and only the closing tag shows it. `endpoint_features` knows
these models by their names.
"""

from __future__ import annotations

OPENING, CLOSING = "<think>", "</think>"
# How much white space before the first word is held back. Some models write it without an end, and each piece would
# take longer than the one before.
MOST_BLANK_CHARS = 1_000


class Thoughts:
    """Separates the thoughts and the words of one answer.

    `unopened`: the model is expected to begin with thoughts without an opening tag. `was_answer`: it did not.
    """

    def __init__(self, *, unopened: bool = False) -> None:
        self.was_answer = False
        self._inside = unopened
        # Whether a tag has opened the thoughts.
        self._opened = False
        # What is held back: the beginning, then the thoughts.
        self._held = ""
        self._answering = False

    def feed(self, text: str) -> str:
        """Add a piece of the answer; return the words that can be passed on now."""
        if self._answering:
            return text
        looked_at = max(0, len(self._held) - len(CLOSING))
        self._held += text
        if not self._inside:
            beginning = self._held.lstrip()
            undecided = len(beginning) < len(OPENING) and OPENING.startswith(beginning)
            if undecided and len(self._held) <= MOST_BLANK_CHARS:
                return ""
            self._inside = self._opened = beginning.startswith(OPENING)
            if not self._inside:
                return self._begin_answer(self._held)
        at = self._held.find(CLOSING, looked_at)
        return "" if at < 0 else self._begin_answer(self._held[at + len(CLOSING) :])

    def end(self, *, cut_off: bool) -> str:
        """Return the words that were still held back. `cut_off`: the model reached its output limit."""
        held, self._held = self._held, ""
        if self._answering or (self._inside and (cut_off or self._opened)):
            return ""
        self.was_answer = self._inside and bool(held.strip())
        return held

    def _begin_answer(self, words: str) -> str:
        self._answering, self._held = True, ""
        return words


def words_of(answer: str, *, unopened: bool, cut_off: bool) -> str:
    """Return a whole answer without its thoughts. `unopened`: see `Thoughts`. `cut_off`: the model reached its output
    limit.
    """
    before, closing, _ = answer.partition(CLOSING)
    thoughts = Thoughts(unopened=unopened or (bool(closing) and OPENING not in before))
    return thoughts.feed(answer) + thoughts.end(cut_off=cut_off)
