"""Tool calls in a model's answer: streamed in pieces (`StreamedCalls`) or written as text (`WrittenCalls`). Pure.

OpenAI streams id and name once and then pieces of the arguments, told apart by an index. Others repeat id and name in
each piece, give every call the index 0, or send no id. Gemini sends whole calls without an index, which may carry a
signature of its own that it wants back. Small models on servers without a parser for tool calls write
them as text: `{"name": "look", "arguments": {…}}`, fenced, in `<tool_call>` or `<tools>` tags, or bare.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from bot.llm.thoughts import MOST_BLANK_CHARS
from compaction.payload import MessageToolCall

# No sensible answer needs more.
MOST_CALLS = 8
MOST_NAME_CHARS = 128
MOST_ARGUMENT_CHARS = 20_000

# No spoken answer begins like this.
_OPENING = re.compile(r"\s*(<tool_call>|<tools>|```|\{|\[\s*\{)")
# Enough characters to tell whether a text begins with one of these.
_OPENING_CHARS = 16
_DECODER = json.JSONDecoder()
# Qwen's template lists the tools in `<tools>` tags, and small Qwen models answer in them.
_MARKS = re.compile(r"</?(?:tool_call|tools)>|```(?:json|tool_call|xml)?", re.IGNORECASE)


class MalformedCallsError(ValueError):
    """The streamed pieces don't make up valid tool calls."""


@dataclass(frozen=True, slots=True)
class CallPiece:
    """One streamed piece of a call. Missing fields are empty; `index` is None if the server sends none."""

    index: int | None = 0
    id: str = ""
    name: str = ""
    arguments: str = ""


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
        found: list[MessageToolCall] = []
        taken: set[str] = set()
        for number, call in enumerate(self._partial):
            unique_id = call.id if call.id and call.id not in taken else f"call_{number}_{call.name.strip()}"
            taken.add(unique_id)
            found.append(MessageToolCall(unique_id, call.name.strip(), call.arguments or "{}"))
        return tuple(found)


def is_json_object(arguments: str) -> bool:
    """Return whether the arguments of a call are complete, as far as their syntax tells."""
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


class WrittenCalls:
    """Finds calls in the text of one answer. Text that may be a call is held back until the end; other text passes."""

    def __init__(self) -> None:
        self._held: str | None = ""

    def feed(self, text: str) -> str:
        """Add a piece; return the text that can be passed on now."""
        if self._held is None:
            return text
        self._held += text
        if _OPENING.match(self._held) and len(self._held) <= MOST_ARGUMENT_CHARS:
            return ""
        undecided = len(self._held.lstrip()) < _OPENING_CHARS and _may_open(self._held)
        if undecided and len(self._held) <= MOST_BLANK_CHARS:
            return ""
        passed, self._held = self._held, None
        return passed

    def end(self) -> tuple[str, tuple[MessageToolCall, ...]]:
        """Return the rest of the text and the calls found; at least one of the two is empty."""
        held, self._held = self._held or "", None
        if not _OPENING.match(held):
            return held, ()
        calls = _calls_in(held)
        return ("", calls) if calls or not _MARKS.sub("", held).strip() else (held, ())


def _may_open(text: str) -> bool:
    start = text.lstrip()
    return any(opening.startswith(start) for opening in ("<tool_call>", "<tools>", "```", "{", "[{"))


def _calls_in(text: str) -> tuple[MessageToolCall, ...]:
    """Return the calls at the beginning of a text; none if it begins with anything else."""
    rest = _MARKS.sub(" ", text).strip()
    found: list[MessageToolCall] = []
    while rest:
        value, rest = _first_value(rest)
        if value is None:
            # Text after the calls is ignored.
            break
        rest = rest.lstrip(" \n\t,;}")
        for each in value if isinstance(value, list) else [value]:
            call = _call(each, len(found))
            if call is None or len(found) == MOST_CALLS:
                return ()
            found.append(call)
    return tuple(found)


def _first_value(text: str) -> tuple[object, str]:
    """Return the first JSON value of a text, or None, and the rest of the text."""
    # The text is tried unchanged, then with one or two closing braces added.
    readings = [text, text + "}", text + "}}"]
    if text.startswith("{{"):
        # Qwen's template shows calls in doubled braces, and small models imitate it: the outer braces, or all.
        readings[:1] = [text[1:], text.replace("{{", "{").replace("}}", "}")]
    for reading in readings:
        try:
            value, end = _DECODER.raw_decode(reading)
        except (ValueError, RecursionError):
            continue
        return value, reading[end:]
    return None, text


def _call(value: object, number: int) -> MessageToolCall | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    value = inner if isinstance(inner, dict) else value
    name, arguments = value.get("name"), value.get("arguments", value.get("parameters", {}))
    if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME_CHARS:
        return None
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return MessageToolCall(f"written_{number}_{name}", name, arguments) if isinstance(arguments, str) else None
