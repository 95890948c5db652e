"""What the scripted language model of a scenario answers: the first answer whose words were asked for. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rehearsal.evidence import holds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rehearsal.props import AnswerSpec, ModelSpec
    from rehearsal.servers.chat import ChatCall

# How turns are headed in what a tool tells: `[21:04] Ada: …`.
_SAID = re.compile(r"^\[\d\d:\d\d\] [^:\n]{1,60}: (?P<words>.+)$", re.MULTILINE)
NOTHING_FOUND = "nothing"


class Script:
    """Answers requests by a scenario's `[servers.model]`."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec

    def answer(self, call: ChatCall) -> str:
        """Return the words for a request."""
        found = self.found(call.messages)
        if found is None:
            return self._spec.otherwise
        return found.say.replace("{found}", _told(call.messages))

    def found(self, messages: Sequence[Mapping[str, Any]]) -> AnswerSpec | None:
        """Return the answer that fits what was said last, if any."""
        asked = next((str(each.get("content")) for each in reversed(messages) if each.get("role") == "user"), "")
        return next((spec for spec in self._spec.answers if all(holds(asked, word) for word in spec.asked)), None)


def _told(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the words of the first turn that a tool told."""
    for each in messages:
        if each.get("role") == "tool" and (said := _SAID.search(str(each.get("content")))):
            return said["words"].rstrip(".")
    return NOTHING_FOUND
