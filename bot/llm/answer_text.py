"""The words of a streamed answer, without its thoughts and without the tool calls written in it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.llm.thoughts import Thoughts
from bot.llm.tool_calls import WrittenCalls

if TYPE_CHECKING:
    from compaction.payload import MessageToolCall


class AnswerText:
    """The text of one answer. `has_tools`: it may contain tool calls. `unopened`: see `Thoughts`.

    `spoke`: whether any words were passed on.
    """

    def __init__(self, *, has_tools: bool, unopened: bool) -> None:
        self.thoughts = Thoughts(unopened=unopened)
        self._written = WrittenCalls() if has_tools else None
        self.spoke = False

    def feed(self, text: str) -> str:
        """Add a piece; return the words that can be passed on now."""
        words = self.thoughts.feed(text)
        return self._passed(words if self._written is None else self._written.feed(words))

    def end(self, *, cut_off: bool) -> tuple[str, tuple[MessageToolCall, ...]]:
        """Return the rest of the words and the calls found. `cut_off`: the model reached its output limit."""
        rest = self.thoughts.end(cut_off=cut_off)
        if self._written is None:
            return self._passed(rest), ()
        begun = self._written.feed(rest)
        rest, calls = self._written.end()
        return self._passed(begun + rest), calls

    def _passed(self, words: str) -> str:
        self.spoke = self.spoke or bool(words.strip())
        return words
