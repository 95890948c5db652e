"""The one client of endpoints with OpenAI's chat completions API, for replies, summaries and pictures.

A call that the endpoint refuses is repeated in the way that it takes (`endpoint_features`). The library's errors pass:
each adapter says them in its own sentence.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import httpx2
import openai
import structlog

from bot.llm.chat_wire import read_usage, whole_characters
from bot.llm.endpoint_features import NOTHING, EndpointFeatures
from bot.llm.message_order import in_order
from bot.llm.port import FinishReason
from bot.llm.thoughts import words_of
from voice.endpoint import CONNECT_TIMEOUT_S, open_client

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from bot.llm.port import Usage

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
                told = f"{error} {error.body}"
                refused = self.features.learn(error.status_code, told, sent=sent, in_turn=in_turn)
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
