"""Streamed calls of tools, put together out of their pieces. Pure; servers differ in how they cut them.

OpenAI sends id and name once and then the arguments bit by bit, told apart by an index. Others repeat id and name in
each piece, give every call the index 0, or no id at all; all of that is understood.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from compaction.budget.messages import MessageToolCall

# What no honest answer needs; beyond it a model has run wild.
MOST_CALLS = 8
MOST_NAME_CHARS = 128
MOST_ARGUMENT_CHARS = 20_000

# No spoken answer begins like this.
_OPENING = re.compile(r"\s*(<tool_call>|<tools>|```|\{|\[\s*\{)")
# From here on it is plain whether a text opens so.
_TELLING_CHARS = 16
_DECODER = json.JSONDecoder()
# Qwen's template lists the tools between `<tools>` tags, and small ones answer in them.
_MARKS = re.compile(r"</?(?:tool_call|tools)>|```(?:json|tool_call|xml)?", re.IGNORECASE)


class MalformedCallsError(ValueError):
    """What was streamed as calls of tools is none."""


@dataclass(frozen=True, slots=True)
class CallPiece:
    """One streamed piece of one call; what it doesn't hold is empty."""

    index: int = 0
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Growing:
    index: int
    id: str
    name: str = ""
    arguments: str = ""


class StreamedCalls:
    """The calls of one answer. Feed it every piece, then ask for the `calls`."""

    def __init__(self) -> None:
        self._growing: list[_Growing] = []

    def feed(self, piece: CallPiece) -> None:
        """Take one piece in. Raises `MalformedCallsError`."""
        call = next((each for each in reversed(self._growing) if each.index == piece.index), None)
        if call is None or (piece.id and call.id and piece.id != call.id):
            if len(self._growing) == MOST_CALLS:
                raise MalformedCallsError(f"more than {MOST_CALLS} calls of tools at once")
            call = _Growing(piece.index, piece.id)
            self._growing.append(call)
        call.id = call.id or piece.id
        if piece.name != call.name:
            call.name += piece.name
        call.arguments += piece.arguments
        if len(call.name) > MOST_NAME_CHARS or len(call.arguments) > MOST_ARGUMENT_CHARS:
            raise MalformedCallsError("a call of a tool that is too long")

    @property
    def calls(self) -> tuple[MessageToolCall, ...]:
        """Return the calls, in order, each with a name and an id of its own. Raises `MalformedCallsError`."""
        if any(not call.name.strip() for call in self._growing):
            raise MalformedCallsError("a call of a tool without its name")
        found: list[MessageToolCall] = []
        taken: set[str] = set()
        for number, call in enumerate(self._growing):
            own = call.id if call.id and call.id not in taken else f"call_{number}_{call.name.strip()}"
            taken.add(own)
            found.append(MessageToolCall(own, call.name.strip(), call.arguments or "{}"))
        return tuple(found)


class WrittenCalls:
    """Reads the text of one answer. What may be calls is held until its end; everything else passes as it comes."""

    def __init__(self) -> None:
        self._held: str | None = ""

    def feed(self, text: str) -> str:
        """Take a piece in; return what of the answer can be passed on now."""
        if self._held is None:
            return text
        self._held += text
        if _OPENING.match(self._held) and len(self._held) <= MOST_ARGUMENT_CHARS:
            return ""
        if len(self._held.lstrip()) < _TELLING_CHARS and _may_open(self._held):
            return ""
        passed, self._held = self._held, None
        return passed

    def end(self) -> tuple[str, tuple[MessageToolCall, ...]]:
        """Return the rest of the text, and the calls that were written; one of them is empty, if not both."""
        held, self._held = self._held or "", None
        if not _OPENING.match(held):
            return held, ()
        calls = _calls_in(held)
        return ("", calls) if calls or not _MARKS.sub("", held).strip() else (held, ())


def _may_open(text: str) -> bool:
    start = text.lstrip()
    return any(opening.startswith(start) for opening in ("<tool_call>", "<tools>", "```", "{", "[{"))


def _calls_in(text: str) -> tuple[MessageToolCall, ...]:
    """Return the calls that a text consists of; none if it holds anything else."""
    rest = _MARKS.sub(" ", text).strip()
    found: list[MessageToolCall] = []
    while rest:
        value, rest = _first_value(rest)
        if value is None:
            # A model that goes on talking after its calls has made them all the same.
            break
        rest = rest.lstrip(" \n\t,;}")
        for each in value if isinstance(value, list) else [value]:
            call = _call(each, len(found))
            if call is None or len(found) == MOST_CALLS:
                return ()
            found.append(call)
    return tuple(found)


def _first_value(text: str) -> tuple[object, str]:
    """Return the first JSON value of a text, None if there is none, and what stands behind it."""
    # As it is, or with the one or two braces that it forgot at its end.
    readings = [text, text + "}", text + "}}"]
    if text.startswith("{{"):
        # Qwen's own template shows its calls in doubled braces, and small ones write them so: the outer ones, or all.
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
