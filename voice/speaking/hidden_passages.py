"""Leaves out the passages of a reply that are never spoken: code blocks, a model's reasoning, and tool calls. Pure.

Such passages extend over many sentences, and the reply arrives sentence by sentence. A markdown parser needs the whole
block, so the voice would have to wait. This module therefore tracks the fences and tags itself.
"""

from __future__ import annotations

import re
from copy import copy

# Tags around reasoning and tool calls. Some have a form such as <function=search>.
_NAMES = (
    "think|thinking|thought|reasoning|scratchpad|tool|tools|tool_call|tool_calls|tool_response|tool_result|tool_use|"
    "function|function_call|function_calls|invoke|parameters?|arguments"
)
_MARK = re.compile(
    rf"(?P<fence>```+|~~~+)|[<◁](?P<close>/?)(?P<tag>{_NAMES})(?:[\s=:][^<>◁▷]*?)?(?P<alone>/?)[>▷]", re.IGNORECASE
)
# A tool call as plain JSON: an object whose first key is in quotes, at the beginning of a piece.
_JSON = re.compile(r"\s*\[?\s*\{\s*\"[^\"]*\"\s*:")
# Lines that agents are trained to write (ReAct). `Final Answer:` is spoken.
_STEP = re.compile(r"\s*(?:Thought|Action|Action Input|Observation)\s*:", re.IGNORECASE)


class HiddenPassages:
    """Tracks which passage is open. Use one instance for each reply, and pass the pieces in order."""

    def __init__(self) -> None:
        self._fence = ""
        self._tag = ""
        self._braces = 0

    def peek(self, written: str) -> str:
        """Return what `visible` would return for `written`, without surrounding spaces. The state does not change."""
        return copy(self).visible(written).strip()

    def visible(self, written: str) -> str:
        """Return the next piece of the reply without its hidden parts."""
        kept: list[str] = []
        at = 0
        for mark in _MARK.finditer(written):
            if not self._inside:
                kept.append(written[at : mark.start()])
            at = mark.end()
            self._pass(mark)
        if not self._inside:
            kept.append(written[at:])
        return self._without_json(" ".join(kept))

    @property
    def _inside(self) -> bool:
        return bool(self._fence) or bool(self._tag)

    def _pass(self, mark: re.Match[str]) -> None:
        if mark["tag"] is None:
            if not self._tag:
                self._fence = "" if self._fence == mark["fence"][0] else self._fence or mark["fence"][0]
            return
        tag = mark["tag"].lower()
        if self._fence or mark["alone"]:
            return
        if mark["close"]:
            # Models sometimes close a tag by another name. Staying silent until the end of the reply would be worse.
            self._tag = "" if self._tag in {tag, ""} or not _nested(self._tag, tag) else self._tag
        else:
            self._tag = self._tag or tag

    def _without_json(self, text: str) -> str:
        if not self._braces:
            if _STEP.match(text):
                return ""
            if not _JSON.match(text):
                return text
        for at, letter in enumerate(text):
            self._braces += (letter in "{[") - (letter in "}]")
            if self._braces <= 0 and letter in "}]":
                self._braces = 0
                return text[at + 1 :]
        return ""


def _nested(outer: str, inner: str) -> bool:
    """Return whether the closing tag `inner` ends a tag inside `outer`, and not `outer` itself."""
    return inner.startswith(("invoke", "parameter", "argument", "function", "tool")) and outer != inner
