"""What has come of one answer as a model streams it: its words without thoughts, and its tool calls. Pure.

*Thoughts* stand in `<think>` tags where a server sends them as part of the answer. Some chat templates open the tag at
the end of the prompt (DeepSeek R1, Qwen's Thinking models); then the answer begins with thoughts, and only the closing
tag shows it. `endpoint_features` knows these models by their names.

*Tool calls* come in pieces. OpenAI streams id and name once and then pieces of the arguments, told apart by an index.
Others repeat id and name in each piece, give every call the index 0, or send no id. Gemini sends whole calls without an
index, which may carry a signature of its own that it wants back.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from bot.llm.port import FinishReason
from compaction.payload import MessageToolCall

OPENING, CLOSING = "<think>", "</think>"
# How a call begins that a model writes as text, because its server could not read it.
_CALL_TAGS = ("<tool_call>", "<tools>")
_WRITTEN_CALLS = (*_CALL_TAGS, "```", "{", "[{")
_FENCE = re.compile(r"```\w*\s*")
# A token has four characters on average, and a server counts them itself. One that does not stop would have the bot
# speak for ever.
MOST_CHARS_PER_TOKEN: Final = 16
# No sensible answer needs more.
MOST_CALLS = 8
MOST_NAME_CHARS = 128
MOST_ARGUMENT_CHARS = 20_000


class MalformedCallsError(ValueError):
    """The streamed pieces don't make up valid tool calls."""


@dataclass(frozen=True, slots=True)
class CallPiece:
    """One streamed piece of a call. Missing fields are empty; `index` is None if the server sends none."""

    index: int | None = 0
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ChunkContent:
    """The content of one streamed chunk."""

    text: str = ""
    # Each with what the endpoint sent beside it.
    calls: tuple[tuple[CallPiece, object], ...] = ()
    finish_reason: str = ""


class StreamedAnswer:
    """What has come of one answer. `has_tools`: it may contain tool calls. `unopened`: see `Thoughts`.
    `max_output_tokens`: how long it was to be at most.

    `began`: text or a call has come. `spoke`: words were passed on. `held`: the beginning of the words, as long as it
    may be a call written as text; such a call is not passed on. `signatures`: what the endpoint sent beside each call.
    `is_over`: the server goes on far beyond that length, so the rest is left out.
    """

    def __init__(self, *, has_tools: bool, unopened: bool, max_output_tokens: int) -> None:
        self.began = self.is_over = self.spoke = False
        self.reason = self.held = ""
        self.signatures: list[object] = []
        self._left_chars = MOST_CHARS_PER_TOKEN * max_output_tokens
        self._has_tools = has_tools
        self._calls = StreamedCalls()
        self.thoughts = Thoughts(unopened=unopened)

    def take(self, content: ChunkContent) -> str:
        """Add a chunk; return the words that can be passed on now. Raises `MalformedCallsError`."""
        for call, signature in content.calls:
            self._calls.feed(call)
            self.signatures.append(signature)
        self.reason = content.finish_reason or self.reason
        self.began = self.began or bool(content.text or content.calls)
        text = content.text[: self._left_chars]
        self._left_chars -= len(text)
        if len(text) < len(content.text):
            self.is_over, self.reason = True, FinishReason.LENGTH
        return self._spoken(self.thoughts.feed(text))

    def end(self) -> str:
        """Return the rest of the words."""
        rest = self._spoken(self.thoughts.end(cut_off=self.reason == FinishReason.LENGTH))
        if _is_written_call(self.held.lstrip()):
            return rest
        rest, self.held = rest + self.held, ""
        self.spoke = self.spoke or bool(rest.strip())
        return rest

    def _spoken(self, words: str) -> str:
        """Return the words that are no call written as text, as far as that can be told."""
        if self._has_tools and not self.spoke:
            self.held += words
            start = self.held.lstrip()
            if any(start.startswith(each) or each.startswith(start) for each in _WRITTEN_CALLS):
                return ""
            words, self.held = self.held, ""
        self.spoke = self.spoke or bool(words.strip())
        return words

    @property
    def wordless(self) -> bool:
        """Whether an answer that has ended contains neither words nor calls."""
        return not (self.signatures or self.spoke)

    @property
    def calls(self) -> tuple[MessageToolCall, ...]:
        """The calls of an answer that has ended. Raises `MalformedCallsError`."""
        return self._calls.calls


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
            if len(beginning) < len(OPENING) and OPENING.startswith(beginning):
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


@dataclass(slots=True)
class _PartialCall:
    index: int
    id: str
    name: str = ""
    arguments: str = ""


class StreamedCalls:
    """Joins the streamed calls of one answer. Feed it every piece, then read `calls`."""

    def __init__(self) -> None:
        self._partial: list[_PartialCall] = []

    def feed(self, piece: CallPiece) -> None:
        """Add one piece. Raises `MalformedCallsError`."""
        index = piece.index if piece.index is not None else self._index_of(piece)
        call = next((each for each in reversed(self._partial) if each.index == index), None)
        if call is None or (piece.id and call.id and piece.id != call.id):
            if len(self._partial) == MOST_CALLS:
                raise MalformedCallsError(f"more than {MOST_CALLS} tool calls at once")
            call = _PartialCall(index, piece.id)
            self._partial.append(call)
        call.id = call.id or piece.id
        if piece.name != call.name:
            call.name += piece.name
        call.arguments += piece.arguments
        if len(call.name) > MOST_NAME_CHARS or max(len(call.arguments), len(call.id)) > MOST_ARGUMENT_CHARS:
            raise MalformedCallsError("a tool call that is too long")

    def _index_of(self, piece: CallPiece) -> int:
        """Return the index of a piece without one: a name after a complete call begins the next."""
        if not self._partial:
            return 0
        last = self._partial[-1]
        return last.index + 1 if piece.name and is_json_object(last.arguments) else last.index

    @property
    def calls(self) -> tuple[MessageToolCall, ...]:
        """Return the calls in order, each with a name and a unique id. Raises `MalformedCallsError`."""
        if any(not call.name.strip() for call in self._partial):
            raise MalformedCallsError("a tool call without a name")
        found: dict[str, MessageToolCall] = {}
        for number, call in enumerate(self._partial):
            name = call.name.strip()
            unique_id = call.id if call.id and call.id not in found else f"call_{number}_{name}"
            found[unique_id] = MessageToolCall(unique_id, name, call.arguments or "{}")
        return tuple(found.values())


def _is_written_call(text: str) -> bool:
    """Return whether a text is a call and not, for example, a block of code."""
    if text.startswith(_CALL_TAGS):
        return True
    bare = _FENCE.sub("", text, count=1) if text.startswith("```") else text
    # Small models forget closing braces, or double them as Qwen's template does.
    for reading in (bare, bare.replace("{{", "{").replace("}}", "}")):
        try:
            value, _ = json.JSONDecoder().raw_decode(reading + "}}")
        except (ValueError, RecursionError):
            continue
        first = value[0] if isinstance(value, list) and value else value
        call = first.get("function", first) if isinstance(first, dict) else None
        if isinstance(call, dict) and "name" in call and ("arguments" in call or "parameters" in call):
            return True
    return False


def is_json_object(arguments: str) -> bool:
    """Return whether the arguments of a call are complete, as far as their syntax tells."""
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False
