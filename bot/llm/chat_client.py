"""The one client of endpoints with OpenAI's chat completions API, for replies, summaries and pictures.

A call that the endpoint refuses is repeated in the way that it takes (`endpoint_features`). The library's errors pass:
each adapter says them in its own sentence.

OpenAI takes messages of all roles in any order. vLLM and llama.cpp render them with the model's own chat template, and
many templates refuse what they were not made for: Qwen 3.5 a system message that is not the first, Gemma and Mistral
two messages of one person in a row.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import httpx2
import openai
import structlog

from bot.llm.chat_wire import read_usage, whole_characters
from bot.llm.endpoint_features import NOTHING, EndpointFeatures
from bot.llm.port import ChatRole, FinishReason, Usage
from bot.llm.streamed_answer import words_of
from voice.endpoint import CONNECT_TIMEOUT_S, open_client

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType


_BETWEEN = "\n\n"
# Stands where the order demands a message and nobody said anything. The voice leaves it out if a model copies it.
_NOTHING_SAID = "(silence)"
# Around our own instructions where they stand in a message of the people. Nobody in the room can write these marks:
# `compaction.untrusted_text` breaks them in everything that comes from outside.
_INSTRUCTIONS = "<instructions>\n{text}\n</instructions>"


def in_order(messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return a call's messages with one system message at the beginning, then user and assistant in turn. No word is
    left out.

    What stands in several messages of one role in a row stands in one, with blank lines between. Tool results follow
    their calls. The last message is a user's or a tool's result. System messages after the first other message keep
    their place, between marks: in a user's message, or below the tool result that they follow.
    """
    heading = list(itertools.takewhile(lambda message: message["role"] == ChatRole.SYSTEM, messages))
    ordered = _in_turn(_without_system(messages[len(heading) :]))
    instructions = _BETWEEN.join(str(message["content"]) for message in heading)
    return [{"role": ChatRole.SYSTEM.value, "content": instructions}, *ordered] if instructions else ordered


def _without_system(messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return messages with the system messages among them as marked text of the user, or of the tool result before."""
    placed: list[Mapping[str, object]] = []
    for message in messages:
        marked = _INSTRUCTIONS.format(text=message["content"])
        if message["role"] != ChatRole.SYSTEM:
            placed.append(message)
        elif placed and placed[-1]["role"] == ChatRole.TOOL:
            # A user's message would need an answer to the result before it.
            placed[-1] = {**placed[-1], "content": f"{placed[-1]['content']}{_BETWEEN}{marked}"}
        else:
            placed.append({"role": ChatRole.USER.value, "content": marked})
    return placed


def _in_turn(messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return the messages of people, model and tools so that user and assistant take turns, a user first."""
    ordered: list[Mapping[str, object]] = []
    for message in messages:
        before = ordered[-1] if ordered else None
        if before is not None and _is_joined(before, message):
            ordered[-1] = {**before, **message, "content": f"{before['content']}{_BETWEEN}{message['content']}"}
            continue
        if message["role"] == ChatRole.USER and before is not None and before["role"] == ChatRole.TOOL:
            ordered.append(_silence(ChatRole.ASSISTANT))
        if message["role"] == ChatRole.ASSISTANT and before is None:
            ordered.append(_silence(ChatRole.USER))
        ordered.append(message)
    if ordered and ordered[-1]["role"] == ChatRole.ASSISTANT:
        ordered.append(_silence(ChatRole.USER))
    return ordered


def _is_joined(before: Mapping[str, object], message: Mapping[str, object]) -> bool:
    """Return whether two messages in a row become one: not across tool calls, whose results follow them."""
    return (
        before["role"] == message["role"]
        and message["role"] in {ChatRole.USER, ChatRole.ASSISTANT}
        and "tool_calls" not in before
    )


def _silence(role: ChatRole) -> dict[str, object]:
    return {"role": role.value, "content": _NOTHING_SAID}


log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """An answer that was not streamed, without the model's thoughts. `reason`: why it ended, in the API's words."""

    text: str
    reason: str
    usage: Usage


class ChatClient:
    """One endpoint and one model. An empty `base_url` means OpenAI itself.

    *Ownership*: an async context manager; it owns the HTTP connections and closes them on exit. *Cancellation* ends the
    call in progress. Safe to use from many tasks at once.
    """

    def __init__(self, base_url: str, api_key: str, model: str, *, timeout_s: float) -> None:
        self.model = model
        self.features = EndpointFeatures(base_url, model)
        # No retries: a reply must not wait for them, and the compactor has its own.
        self._client = open_client(base_url, api_key, timeout_s=timeout_s)

    async def __aenter__(self) -> Self:
        # First use imports the library's chat module, which would block the event loop for a second.
        await asyncio.to_thread(lambda: self._client.chat.completions)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    async def create(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        max_output_tokens: int,
        timeout_s: float | None = None,
        stream: bool = False,
        schema: Mapping[str, object] | None = None,
        optional: Mapping[str, object] = NOTHING,
    ) -> tuple[Any, Mapping[str, object]]:
        """Make a call. Returns the library's answer or stream, and the fields that were sent with the messages.

        `timeout_s`: the client's own by default. `schema`, `optional`: see `EndpointFeatures.fields`.
        """
        limit = openai.NOT_GIVEN if timeout_s is None else httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
        while True:
            sent = self.features.fields(max_output_tokens, schema=schema, optional=optional)
            in_turn = self.features.in_turn
            ordered: Any = in_order(messages) if in_turn else messages
            try:
                answer: Any = await self._client.chat.completions.create(
                    model=self.model, messages=ordered, stream=stream, extra_body=sent, timeout=limit
                )
            except openai.APIStatusError as error:
                # Some servers name the field elsewhere than in the error's message.
                described = f"{error} {error.body}"
                refused = self.features.learn(error.status_code, described, sent=sent, in_turn=in_turn)
                if refused is None:
                    raise
                log.warning("endpoint_refused_field", model=self.model, field=refused, status=error.status_code)
            else:
                return answer, sent

    async def ask(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        max_output_tokens: int,
        timeout_s: float | None = None,
        schema: Mapping[str, object] | None = None,
        optional: Mapping[str, object] = NOTHING,
    ) -> WholeAnswer:
        """Return a whole answer. A model that thinks until its output limit is asked again to think less."""
        while True:
            response, sent = await self.create(
                messages,
                max_output_tokens=max_output_tokens,
                timeout_s=timeout_s,
                schema=schema,
                optional=optional,
            )
            choice = response.choices[0]
            reason, written = str(choice.finish_reason or ""), choice.message.content or ""
            if not isinstance(written, str):
                raise TypeError("a whole answer that is no text")
            cut_off = reason == FinishReason.LENGTH
            text = words_of(whole_characters(written), unopened=self.features.thinks_unopened, cut_off=cut_off)
            if cut_off and not text.strip() and self.features.thought_too_long(sent):
                continue
            return WholeAnswer(text, reason, read_usage(getattr(response, "usage", None)))
