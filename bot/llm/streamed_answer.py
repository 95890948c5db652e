"""One answer as a model streams it: what has come of it so far, and until when the next of it must come. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot.llm.port import FinishReason
from bot.llm.thoughts import Thoughts
from bot.llm.tool_calls import StreamedCalls, WrittenCalls

if TYPE_CHECKING:
    from bot.llm.chat_wire import ChunkContent
    from compaction.payload import MessageToolCall


# A token has four characters on average, and a server counts them itself. One that does not stop would have the bot
# speak for ever.
MOST_CHARS_PER_TOKEN: Final = 16


class StreamedAnswer:
    """What has come of one answer. `has_tools`: it may contain tool calls. `unopened`: see `Thoughts`.
    `max_output_tokens`: how long it was to be at most.

    Its words are the text without thoughts and without calls written in it. `began`: text or a call has come. `spoke`:
    words were passed on. `signatures`: what the endpoint sent beside each call. `is_over`: the server goes on far
    beyond that length, so the rest is left out.
    """

    def __init__(self, *, has_tools: bool, unopened: bool, max_output_tokens: int) -> None:
        self.began = self.is_over = self.spoke = False
        self.reason = ""
        self._left_chars = MOST_CHARS_PER_TOKEN * max_output_tokens
        self.signatures: list[object] = []
        self._calls = StreamedCalls()
        self._thoughts = Thoughts(unopened=unopened)
        self._writing = WrittenCalls() if has_tools else None
        self._written: tuple[MessageToolCall, ...] = ()

    def take_calls(self, content: ChunkContent) -> None:
        """Add the pieces of calls in a chunk. Raises `MalformedCallsError`."""
        for call, signature in content.calls:
            self._calls.feed(call)
            self.signatures.append(signature)

    def take_words(self, content: ChunkContent) -> str:
        """Add the text of a chunk; return the words that can be passed on now."""
        self.reason = content.finish_reason or self.reason
        self.began = self.began or bool(content.text or content.calls)
        words = self._thoughts.feed(content.text)
        return self._passed(words if self._writing is None else self._writing.feed(words))

    def end(self) -> str:
        """Return the rest of the words."""
        rest = self._thoughts.end(cut_off=self.reason == FinishReason.LENGTH)
        if self._writing is not None:
            begun = self._writing.feed(rest)
            rest, self._written = self._writing.end()
            rest = begun + rest
        return self._passed(rest)

    def _passed(self, words: str) -> str:
        """Return the words as far as they are within the length."""
        self.spoke = self.spoke or bool(words.strip())
        kept = words[: self._left_chars]
        self._left_chars -= len(kept)
        if len(kept) < len(words):
            self.is_over, self.reason = True, FinishReason.LENGTH
        return kept

    @property
    def lacked_thoughts(self) -> bool:
        """Whether the answer was expected to begin with thoughts, and did not."""
        return self._thoughts.was_answer

    @property
    def wordless(self) -> bool:
        """Whether an answer that has ended contains neither words nor calls."""
        return not (self.signatures or self._written or self.spoke)

    @property
    def calls(self) -> tuple[MessageToolCall, ...]:
        """The calls of an answer that has ended, streamed or written. Raises `MalformedCallsError`."""
        return self._calls.calls or self._written


class StreamDeadlines:
    """Until when the next piece of an answer must come (`next_at`), in the event loop's seconds.

    Only the time spent waiting for the server counts, not what the voice takes for a piece.
    """

    def __init__(self, started: float, *, first_token_s: float, total_s: float) -> None:
        # The same limit holds for pauses within the answer.
        self._pause_s = first_token_s
        self._last_at = started + total_s
        self.next_at = started + first_token_s

    def on_piece(self, now: float) -> None:
        """Note that a piece has come of an answer that has begun."""
        self.next_at = min(self._last_at, now + self._pause_s)

    def postpone(self, taken_s: float) -> None:
        """Add time in which nobody waited for the server."""
        self.next_at += taken_s
        self._last_at += taken_s
