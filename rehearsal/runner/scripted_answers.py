"""What the scripted language model of a scenario answers: the first answer whose words were asked for. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rehearsal.servers.chat import ScriptedToolCall, ToolCallAnswer
from rehearsal.words import contains_words, normalize_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rehearsal.script.server_specs import AnswerSpec, ModelSpec
    from rehearsal.servers.chat import ChatCall

# How turns are headed in what a tool tells: `[21:04] Ada: …`.
_SAID = re.compile(r"^\[\d\d:\d\d\] [^:\n]{1,60}: (?P<words>.+)$", re.MULTILINE)
NOTHING_FOUND = "nothing"


class ScriptedModel:
    """Answers requests by a scenario's `[servers.model]`."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec

    def answer(self, call: ChatCall) -> str | ToolCallAnswer:
        """Return the words for a request, or the tool that is to be called before."""
        asked = next((str(each.get("content")) for each in reversed(call.messages) if each.get("role") == "user"), "")
        found = self._found(asked, " ".join(str(each.get("content")) for each in call.messages))
        if found is None:
            return self._spec.otherwise
        if found.tool in call.offered and not call.tool_results:
            return ToolCallAnswer((ScriptedToolCall(found.tool, found.arguments),))
        looked_for = set(normalize_words(" ".join(map(str, found.arguments.values()))).split())
        return found.say.replace("{found}", _told(call.tool_results, looked_for))

    def _found(self, asked: str, sent: str) -> AnswerSpec | None:
        # What is sent has brackets and signs around its words, which normalised text has not.
        known = sent.casefold()
        for spec in self._spec.answers:
            if all(contains_words(asked, word) for word in spec.asked) and all(
                word.casefold() in known for word in spec.knew
            ):
                return spec
        return None


def _told(results: Iterable[str], looked_for: set[str]) -> str:
    """Return the words that somebody said, of those that tools told the ones that are most about what was wanted."""
    told = [said["words"].rstrip(".") for result in results for said in _SAID.finditer(result)]
    return max(told, key=lambda words: len(looked_for & set(normalize_words(words).split())), default=NOTHING_FOUND)
