"""What of a reply is not for the ears at all: code, what models think to themselves, and calls of tools.

Such passages go over many sentences, so one `Hidden` goes with one reply and is given its pieces in order. Pure.
"""

from __future__ import annotations

import re
from copy import copy

from voice.speaking.code import Code

# Tags around what reasoning models think and what tools are called with; some open as <function=search>.
_NAMES = (
    "think|thinking|thought|reasoning|scratchpad|tool|tools|tool_call|tool_calls|tool_response|tool_result|tool_use|"
    "function|function_call|function_calls|invoke|parameters?|arguments"
)
_MARK = re.compile(
    rf"(?P<fence>```+|~~~+)|[<◁](?P<close>/?)(?P<tag>{_NAMES})(?:[\s=:][^<>◁▷]*?)?(?P<alone>/?)[>▷]", re.IGNORECASE
)
# A call that a model wrote as bare JSON: an object with a name in quotes, at the beginning of a piece.
_JSON = re.compile(r"\s*\[?\s*\{\s*\"[^\"]*\"\s*:")
# Lines of agents that were taught to write out what they do. An answer that is announced stays.
_STEP = re.compile(r"\s*(?:Thought|Action|Action Input|Observation)\s*:", re.IGNORECASE)


class Hidden:
    """Remembers which passage goes on."""

    def __init__(self) -> None:
        self._fence = ""
        self._tag = ""
        self._braces = 0
        self._code = Code()

    def glimpse(self, written: str) -> str:
        """Return what would be visible of `written` as the next piece. Nothing is remembered of it."""
        other = copy(self)
        other._code = copy(self._code)
        return other.visible(written).strip()

    def visible(self, written: str) -> str:
        """Return the next piece without what is hidden."""
        kept: list[str] = []
        at = 0
        for mark in _MARK.finditer(written):
            if not self._inside:
                kept.append(written[at : mark.start()])
            at = mark.end()
            self._pass(mark)
        if not self._inside:
            kept.append(written[at:])
        text = self._without_json(" ".join(kept))
        bare = text.strip()
        return "" if bare and self._code.is_code(bare) else text

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
            # Models close what they opened by other names, too: silence to the end would be worse.
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
    """Return whether a closing `inner` belongs inside of `outer` rather than to it."""
    return inner.startswith(("invoke", "parameter", "argument", "function", "tool")) and outer != inner
