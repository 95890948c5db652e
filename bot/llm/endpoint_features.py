"""What an endpoint takes of the chat completions API. Pure.

`ENDPOINT_NEEDS` says it of OpenAI, Anthropic, Gemini, Ollama, vLLM and llama.cpp. The last three may have any address.
Such servers and models differ in a few optional fields and in the order of messages, and none says so in advance. One
that refuses a field names it in its error; calls from then on are sent without it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from voice.endpoint_settings import address

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING: Mapping[str, object] = MappingProxyType({})
# Statuses of servers that refuse a field.
REFUSED_STATUSES = frozenset({400, 415, 422, 500, 501})
# From here on a server has failed. If it names tools, it could not read a call of its model: the next may be proper.
FAILED_STATUS = 500
EFFORT, FORM, TEMPERATURE, TOOLS, USAGE = (
    "reasoning_effort",
    "response_format",
    "temperature",
    "tools",
    "stream_options",
)
# How servers name a field in a refusal. Gemini: 'Budget 0 is invalid. This model only works in thinking mode.' Ollama:
# 'gemma does not support tools', vLLM: '"auto" tool choice requires --enable-auto-tool-choice'.
_NAMES = {
    USAGE: re.compile(USAGE),
    TEMPERATURE: re.compile(TEMPERATURE),
    EFFORT: re.compile(r"reasoning.?effort|thinking mode", re.IGNORECASE),
    FORM: re.compile(r"response.?format|json.?schema|grammar", re.IGNORECASE),
    TOOLS: re.compile(r"\btool", re.IGNORECASE),
}
# How much a model may think before it answers aloud, the least first. Models take some of these.
_EFFORTS = ("none", "minimal", "low")
# The types of a form for an answer. The server of llama-cpp-python takes only the second.
_SCHEMA, _OBJECT = "json_schema", "json_object"
# How chat templates (Qwen 3.5, Gemma, Mistral) refuse an order of messages.
_WRONG_ORDER = re.compile(r"must alternate|system message must be|unexpected role|expected last role", re.IGNORECASE)
# Models whose chat template opens the thoughts, so that their answers begin with them (`streamed_answer`).
_OPENED_BY_TEMPLATE = re.compile(r"thinking|qwq|\br1\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EndpointNeeds:
    """The needs of an endpoint, which hold for all of its models.

    `limit_name`: the name of the output limit. `thinking_models`: its models that think for longer than a reply may be
    if they are not told otherwise. `signs_calls`: it takes a tool call back only with the signature that it sent.
    """

    limit_name: str = "max_tokens"
    takes_temperature: bool = True
    thinking_models: re.Pattern[str] | None = None
    signs_calls: bool = False


# Ollama, vLLM and llama.cpp, and others that behave like them.
OWN_SERVER = "any other address"
# Sources: https://platform.openai.com/docs/guides/reasoning, https://platform.claude.com/docs/en/api/openai-sdk,
# https://ai.google.dev/gemini-api/docs/openai and https://ai.google.dev/gemini-api/docs/thought-signatures.
ENDPOINT_NEEDS = {
    "api.openai.com": EndpointNeeds("max_completion_tokens", thinking_models=re.compile(r"o\d|gpt-[5-9](?!.*chat)")),
    "api.anthropic.com": EndpointNeeds(takes_temperature=False),
    "generativelanguage.googleapis.com": EndpointNeeds(thinking_models=re.compile("gemini-"), signs_calls=True),
    # The three need nothing else. What a version or a model of theirs does not take, it refuses.
    OWN_SERVER: EndpointNeeds(),
}


class EndpointFeatures:
    """What one endpoint and model take: what the table says, less what they have refused."""

    def __init__(self, base_url: str, model: str) -> None:
        host = urlsplit(address(base_url)).hostname or ""
        self.needs = ENDPOINT_NEEDS.get(host, ENDPOINT_NEEDS[OWN_SERVER])
        # Whether messages are to be sent in the order that strict chat templates take.
        self.in_turn = False
        # Whether answers begin with thoughts that no tag opens.
        self.thinks_unopened = _OPENED_BY_TEMPLATE.search(model) is not None
        self._refused: set[str] = set() if self.needs.takes_temperature else {TEMPERATURE}
        thinking = self.needs.thinking_models
        self._thinks = thinking is not None and thinking.match(model) is not None
        self._efforts: tuple[str, ...] = _EFFORTS
        self._forms: tuple[str, ...] = (_SCHEMA, _OBJECT)

    @property
    def takes_tools(self) -> bool:
        return TOOLS not in self._refused

    def fields(
        self,
        max_output_tokens: int,
        *,
        schema: Mapping[str, object] | None = None,
        optional: Mapping[str, object] = NOTHING,
    ) -> dict[str, object]:
        """Return the fields of a call beside its model and messages. `schema`: that of a structured answer, which is
        asked for in words alone where the endpoint takes no form. `optional`: fields that it may refuse.
        """
        wanted = dict(optional)
        if self._thinks and self._efforts:
            wanted[EFFORT] = self._efforts[0]
        if schema is not None and self._forms:
            kind = self._forms[0]
            form = {"json_schema": {"name": "answer", "schema": schema}} if kind == _SCHEMA else {"schema": schema}
            wanted[FORM] = {"type": kind, **form}
        taken = {name: value for name, value in wanted.items() if name not in self._refused}
        if not self.takes_tools:
            taken.pop("tool_choice", None)
        return {self.needs.limit_name: max_output_tokens, **taken}

    def learn(self, status: int, message: str, *, sent: Mapping[str, object], in_turn: bool) -> str | None:
        """Learn from a refusal of a call. Returns what was refused; None: it is about something else. The call is to be
        repeated if it was refused, and is then sent differently.

        `sent`: the fields of that very call, `in_turn`: the order of its messages. Other calls may have taught the same
        meanwhile.
        """
        if status not in REFUSED_STATUSES:
            return None
        if not in_turn and _WRONG_ORDER.search(message):
            self.in_turn = True
            return "messages"
        named = next((name for name, words in _NAMES.items() if name in sent and words.search(message)), None)
        if named is None or (named == TOOLS and status >= FAILED_STATUS):
            return None
        refused = sent[named]
        if named == EFFORT:
            self._efforts = tuple(each for each in self._efforts if each != refused)
        elif named == FORM and isinstance(refused, dict):
            self._forms = tuple(each for each in self._forms if each != refused["type"])
        else:
            self._refused.add(named)
        return named

    def thought_too_long(self, sent: Mapping[str, object]) -> bool:
        """Learn that the model thought until its output limit. Returns whether it can be told to think less."""
        self._thinks = True
        return bool(self._efforts) and self._efforts[0] != sent.get(EFFORT)
