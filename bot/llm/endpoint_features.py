"""Learns from an endpoint's refusals which parameters of the chat completions API it takes. Pure.

OpenAI-compatible servers differ in what they know, and none says so in advance. One that refuses a parameter names it
in its error; the call is then repeated without it, and later calls leave it out too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.llm.endpoint_errors import FILTER_CODES
from bot.llm.message_order import MessageOrder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.llm.port import OfferedTools, ToolOffer
    from bot.llm.thoughts import Thoughts

# Statuses of servers that refuse a parameter.
REFUSED_STATUSES = frozenset({400, 415, 422, 500, 501})
# OpenRouter's if no provider of the model takes what was sent: 'No endpoints found that support tool use.' Others have
# it for a model that they do not know.
_NOT_FOUND = 404
# Those of them that a server has for its own failures too.
_FAILED_STATUSES = frozenset({500, 501})
# Stands for the status of a refusal that comes within a stream, which has none.
REFUSED_IN_STREAM = 400
# A model that misused or refused tools this often gets none any more.
_MOST_TOOL_FAILURES = 3
# How endpoints say that a model takes no tools. Groq quotes a malformed call, and with it what people asked about.
_TAKES_NO_TOOLS = re.compile(
    r"(not|n't|that) support\b.{0,40}\btool|unsupported\b.{0,40}\btool|\btool.{0,40}\b(not |un)supported", re.IGNORECASE
)
# How OpenAI refuses one tool, and with it the call: "Invalid schema for function 'hub_put': In context=() …"
_REFUSED_SCHEMA = re.compile(r"invalid schema for function '([\w-]+)'", re.IGNORECASE)
# How chat templates and Mistral's service refuse an order of messages.
_WRONG_ORDER = re.compile(r"must alternate|system message must be|unexpected role|expected last role", re.IGNORECASE)
# How they refuse every system message: the templates of Gemma 2 and of old models of Mistral, Gemini's API with Gemma.
_NO_SYSTEM = re.compile(
    r"system role (is )?not supported|only user and assistant roles are|developer instruction is not enabled",
    re.IGNORECASE,
)
# How much a model may think before it answers aloud, the least first. OpenAI's models take some of these, and think for
# longer than a reply may be if they are not told: https://platform.openai.com/docs/guides/reasoning
_EFFORTS = ("none", "minimal", "low")
_EFFORT = "reasoning_effort"
# How servers name it in a refusal. Gemini: 'Budget 0 is invalid. This model only works in thinking mode.' OpenRouter:
# 'Reasoning is mandatory for this endpoint and cannot be disabled.'
_NAMES_EFFORT = re.compile(r"reasoning.?effort|thinking mode|reasoning is (mandatory|required)", re.IGNORECASE)
_EFFORTS_TAKEN = "Supported values are"
# Kimi: 'reasoning_content is missing', DeepSeek: 'The `reasoning_content` … must be passed back'.
_MISSES_THOUGHTS = re.compile(r"reasoning_content\b.*\b(missing|passed back)\b", re.IGNORECASE | re.DOTALL)
# Models whose chat template may open the thoughts, so that their answers begin with them (`thoughts`).
_THINKING = re.compile(r"thinking|qwq|\br1\b", re.IGNORECASE)


class EndpointFeatures:
    """What one endpoint is known to take. Assumes everything until it is refused.

    `model`: the model's name. The methods get an error's status and message. They return whether the call is to be
    repeated, because the error was about that parameter. `sent`: the fields of that very call. Other calls may have
    taught something else meanwhile; then it is repeated too.
    """

    def __init__(self, model: str = "") -> None:
        # The name of the output limit; later models of OpenAI know only `max_completion_tokens`.
        self.limit_name = "max_tokens"
        self.reports_usage = True
        self.takes_temperature = True
        self.supports_tools = True
        # Tools with schemas that the endpoint does not take, by name.
        self._refused_tools: dict[str, ToolOffer] = {}
        # Whether schemas are to be sent in the common words only.
        self.plain_schemas = False
        # Whether the model takes its own tool calls back.
        self.takes_own_calls = True
        # The order in which messages are to be sent.
        self.order = MessageOrder.ANY
        # Whether answers are known, or here guessed, to begin with thoughts that no tag opens.
        self.thinks_unopened = _THINKING.search(model) is not None
        # Which of `chat_wire.response_formats` worked last.
        self.format_index = 0
        self._tool_failures = 0
        # Whether the model thinks before it answers, and the efforts that it may take. An empty one before the others:
        # none is sent for as long as the model has words without.
        self._thinks = False
        self._efforts: tuple[str, ...] = _EFFORTS
        # Whether none of them is sent because of a refusal that did not name it, until an answer shows what is so.
        self._effort_left_out = False
        # Whether the model has taken one.
        self._effort_taken = False

    @property
    def effort(self) -> str:
        """Return how much the model is told to think; empty if it does not think or cannot be told."""
        return self._efforts[0] if self._thinks and self._efforts and not self._effort_left_out else ""

    def limits(self, max_output_tokens: int) -> dict[str, object]:
        """Return the fields of a call that limit its answer and the thoughts before it."""
        effort = {_EFFORT: self.effort} if self.effort else {}
        return {self.limit_name: max_output_tokens, **effort}

    def renames_limit(self, status: int, message: str, *, sent: Mapping[str, object]) -> bool:
        """Learn that the output limit is called `max_completion_tokens`, as of models that think."""
        if status in REFUSED_STATUSES and "max_tokens" in sent and "max_completion_tokens" in message:
            self.limit_name = "max_completion_tokens"
            self._thinks = True
            return True
        return False

    def thought_too_long(self, sent: Mapping[str, object]) -> bool:
        """Learn that the model thought until its output limit. Return whether it can be told to think less."""
        self._thinks = True
        if _EFFORT not in sent and not self._effort_left_out:
            self._efforts = tuple(filter(None, self._efforts))
        return bool(self.effort) and self.effort != sent.get(_EFFORT)

    def takes_effort(self, sent: Mapping[str, object]) -> None:
        """Learn from an answer that the effort that was sent is taken, or that the one that was left out is not."""
        if sent.get(_EFFORT, "") != self.effort:
            return
        if self._effort_left_out:
            self._efforts, self._effort_left_out = ("", *self._efforts[1:]), False
        self._effort_taken = self._effort_taken or bool(self.effort)

    def refuses_effort(self, status: int, message: str, *, sent: Mapping[str, object], by_name: bool = False) -> bool:
        """Learn that the model does not take this effort of thinking. Not all servers name it, so until the model has
        taken one, a refusal may mean it that means nothing else. That guess was wrong if the call is refused without
        it too. `by_name`: only if the message names it.
        """
        if _EFFORT not in sent:
            self._effort_left_out = self._effort_left_out and by_name
            return False
        named = _NAMES_EFFORT.search(message) is not None
        if status not in REFUSED_STATUSES or not (named or (not by_name and _may_mean_a_parameter(status, message))):
            return False
        if sent[_EFFORT] != self.effort:
            return True
        if named:
            self._drop_effort(message.partition(_EFFORTS_TAKEN)[2])
        elif self._effort_taken:
            return False
        else:
            self._effort_left_out = True
        return True

    def _drop_effort(self, taken: str) -> None:
        """Drop the effort that was refused by name. `taken`: the names of those that the model takes, if it told."""
        refused = self.effort
        self._efforts = tuple(each for each in self._efforts if each != refused and (not taken or f"'{each}'" in taken))

    def refuses_usage(self, status: int, message: str, *, sent: Mapping[str, object]) -> bool:
        """Learn that the usage of a stream is not reported."""
        if status in REFUSED_STATUSES and "stream_options" in sent and "stream_options" in message:
            self.reports_usage = False
            return True
        return False

    def refuses_schema_words(self, status: int, message: str, *, sent_plain: bool) -> bool:
        """Learn that the endpoint knows only a part of JSON schema, as Gemini. `sent_plain`: the call had no more."""
        if status in REFUSED_STATUSES and not sent_plain and "Unknown name" in message:
            self.plain_schemas = True
            return True
        return False

    def refuses_order(self, status: int, message: str, *, sent: MessageOrder) -> bool:
        """Learn that the model's chat template does not take messages of any role anywhere, or no system message.

        `sent`: the order in which this call was sent. Other calls may have taught a stricter one meanwhile. A template
        that refuses even one system message and turns counts that message as a turn, as old ones of Mistral do.
        """
        if status not in REFUSED_STATUSES:
            return False
        if _NO_SYSTEM.search(message):
            wanted = MessageOrder.NO_SYSTEM
        elif _WRONG_ORDER.search(message):
            wanted = MessageOrder(min(sent + 1, MessageOrder.NO_SYSTEM))
        else:
            return False
        self.order = max(self.order, wanted)
        return wanted > sent

    def refuses_own_calls(self, status: int, message: str, *, sent: bool) -> bool:
        """Learn that the model takes a tool call back only with its thoughts before it, which nobody keeps. Those of
        Kimi and DeepSeek do. `sent`: whether there was a call.
        """
        if status in REFUSED_STATUSES and sent and _MISSES_THOUGHTS.search(message):
            self.takes_own_calls = False
            return True
        return False

    def refuses_temperature(self, status: int, message: str, *, sent: Mapping[str, object]) -> bool:
        """Learn that the model has no temperature, as later ones of OpenAI and Anthropic."""
        if status in REFUSED_STATUSES and "temperature" in sent and "temperature" in message:
            self.takes_temperature = False
            return True
        return False

    def taken(self, tools: OfferedTools) -> OfferedTools:
        """Return the tools that the endpoint may take."""
        if not self.supports_tools:
            return replace(tools, offers=())
        return replace(tools, offers=tuple(each for each in tools.offers if self._refused_tools.get(each.name) != each))

    def refused_tool(self, status: int, message: str, *, sent: OfferedTools) -> ToolOffer | None:
        """Learn that the endpoint does not take the schema of one tool, and return that tool; None if the error is not
        about one. Described anew, it is offered again.
        """
        found = _REFUSED_SCHEMA.search(message) if status in REFUSED_STATUSES else None
        refused = next((each for each in sent.offers if found is not None and each.name == found[1]), None)
        if refused is not None:
            self._refused_tools[refused.name] = refused
        return refused

    def refuses_tools(self, status: int, message: str, *, callable_now: bool) -> bool:
        """Learn that the tools are refused. Without `callable_now` they were only shown, and nothing is learnt.

        A model without tool support gets no tools from then on. After other refusals that happens only if they repeat.
        """
        unsupported = _TAKES_NO_TOOLS.search(message) is not None
        if "tool" not in message.lower() or not (status in REFUSED_STATUSES or (status == _NOT_FOUND and unsupported)):
            return False
        if callable_now:
            self._count_tool_failures(_MOST_TOOL_FAILURES if unsupported else 1)
        return True

    def learn_thoughts(self, thoughts: Thoughts) -> None:
        """Learn from an answer whether answers begin with thoughts that no tag opens."""
        self.thinks_unopened = (self.thinks_unopened or thoughts.closed_unopened) and not thoughts.was_answer

    def misused_tools(self) -> None:
        """Count an answer with tools that was none."""
        self._count_tool_failures(1)

    def used_tools(self) -> None:
        """Forget the failures before a proper call: the model knows tools, so they were accidents."""
        self._tool_failures = 0

    def _count_tool_failures(self, count: int) -> None:
        self._tool_failures += count
        self.supports_tools = self.supports_tools and self._tool_failures < _MOST_TOOL_FAILURES


def _may_mean_a_parameter(status: int, message: str) -> bool:
    """Return whether a refusal that names no parameter may be about one: a failure of the server is not, nor is a
    refusal of what was said.
    """
    return status not in _FAILED_STATUSES and not any(f"'{code}'" in message for code in FILTER_CODES)
