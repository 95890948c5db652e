"""Calls of tools that a model writes as text, because its server has no parser for them. Pure.

Many small models behind many small servers answer `{"name": "look", "arguments": {…}}`, in a fence, in `<tool_call>`
or `<tools>` tags, or bare. Read aloud that would be gibberish; understood, it is a call like any other. The tags with
nothing between them are no answer at all.
"""

from __future__ import annotations

import json
import re

from bot.llm.tool_calls import MOST_ARGUMENT_CHARS, MOST_CALLS, MOST_NAME_CHARS
from compaction.budget.messages import ToolCall

# No spoken answer begins like this.
_OPENING = re.compile(r"\s*(<tool_call>|<tools>|```|\{|\[\s*\{)")
# From here on it is plain whether a text opens so.
_TELLING_CHARS = 16
_DECODER = json.JSONDecoder()
# Qwen's template lists the tools between `<tools>` tags, and small ones answer in them.
_MARKS = re.compile(r"</?(?:tool_call|tools)>|```(?:json|tool_call|xml)?", re.IGNORECASE)


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

    def end(self) -> tuple[str, tuple[ToolCall, ...]]:
        """Return the rest of the text, and the calls that were written; one of them is empty, if not both."""
        held, self._held = self._held or "", None
        if not _OPENING.match(held):
            return held, ()
        calls = _calls_in(held)
        return ("", calls) if calls or not _MARKS.sub("", held).strip() else (held, ())


def _may_open(text: str) -> bool:
    start = text.lstrip()
    return any(opening.startswith(start) for opening in ("<tool_call>", "<tools>", "```", "{", "[{"))


def _calls_in(text: str) -> tuple[ToolCall, ...]:
    """Return the calls that a text consists of; none if it holds anything else."""
    rest = _MARKS.sub(" ", text).strip()
    found: list[ToolCall] = []
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


def _call(value: object, number: int) -> ToolCall | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    value = inner if isinstance(inner, dict) else value
    name, arguments = value.get("name"), value.get("arguments", value.get("parameters", {}))
    if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME_CHARS:
        return None
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(f"written_{number}_{name}", name, arguments) if isinstance(arguments, str) else None
