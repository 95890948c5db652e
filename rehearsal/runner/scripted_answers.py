"""The scripted language model of a scenario. It gives the first answer whose words are in the request. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rehearsal.servers.chat import ScriptedToolCall, ToolCallAnswer
from rehearsal.words import contains_words, normalize_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rehearsal.script.server_specs import AnswerSpec, ModelSpec
    from rehearsal.servers.chat import ChatCall

# A turn in the result of a tool, such as `[21:04] Ada: …`.
_TURN_LINE = re.compile(r"^\[\d\d:\d\d\] [^:\n]{1,60}: (?P<words>.+)$", re.MULTILINE)
NOTHING_FOUND = "nothing"


class ScriptedModel:
    """Answers requests as a scenario's `[servers.model]` says."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec

    def answer(self, call: ChatCall) -> str | ToolCallAnswer:
        """Return the text for a request, or the tool call that must come before the text."""
        asked = next((str(each.get("content")) for each in reversed(call.messages) if each.get("role") == "user"), "")
        spec = self._matching_answer(asked, " ".join(str(each.get("content")) for each in call.messages))
        if spec is None:
            return self._spec.otherwise
        if spec.tool in call.offered and not call.tool_results:
            return ToolCallAnswer((ScriptedToolCall(spec.tool, spec.arguments),))
        looked_for = set(normalize_words(" ".join(map(str, spec.arguments.values()))).split())
        return spec.say.replace("{found}", _best_line(call.tool_results, looked_for))

    def _matching_answer(self, asked: str, sent: str) -> AnswerSpec | None:
        # `knew` is compared literally, because normalisation would remove brackets and other signs of the prompt.
        known = sent.casefold()
        for spec in self._spec.answers:
            if all(contains_words(asked, word) for word in spec.asked) and all(
                word.casefold() in known for word in spec.knew
            ):
                return spec
        return None


def _best_line(results: Iterable[str], looked_for: set[str]) -> str:
    """Return the line of the tool results that shares the most words with the query."""
    lines = [said["words"].rstrip(".") for result in results for said in _TURN_LINE.finditer(result)]
    return max(lines, key=lambda words: len(looked_for & set(normalize_words(words).split())), default=NOTHING_FOUND)
