"""Adapter for endpoints with OpenAI's chat completions API: OpenAI, Anthropic, Gemini, Ollama, vLLM, llama.cpp.

It streams replies and gives whole answers to the compactor, sets deadlines, and turns the library's errors into plain
sentences. `chat_client` makes the calls, `chat_wire` has the JSON of the API.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import httpx2
import openai
import structlog

from bot.llm.chat_client import ChatClient
from bot.llm.chat_wire import read_chunk, read_usage, to_api_messages, to_api_tools
from bot.llm.endpoint_errors import translate_error
from bot.llm.endpoint_features import FAILED_STATUS, TEMPERATURE, TOOLS, USAGE
from bot.llm.port import (
    NO_ANSWER,
    NO_TOOLS,
    NO_WORDS,
    ChatMessage,
    ChatModelError,
    ChatRole,
    EndpointItem,
    FilteredError,
    FinishReason,
    OfferedTools,
    StreamEnd,
)
from bot.llm.settings import USUAL_LIMITS, AnswerLimits, LlmSettings
from bot.llm.streamed_answer import MOST_CHARS_PER_TOKEN, StreamedAnswer
from bot.texts.text import OperatorText, sentence_of
from compaction.errors import CompletionError
from compaction.ports import CompletionAnswer, CompletionRequest
from voice.endpoint_settings import address

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence


log = structlog.get_logger()

# Signed tool calls of all rooms that are remembered. A room sends back those of its last few questions.
MOST_SIGNATURES = 1_024

# Events of a stream that are read before the event loop may do something else. A server may send thousands at once,
# which take a second.
EVENTS_AT_ONCE = 50


class _NoAnswerError(ChatModelError):
    """The endpoint's response contains no answer."""


class _ThoughtTooLongError(ChatModelError):
    """The model thought until its output limit, in or beside its answer. `sent`: the fields of the call."""

    def __init__(self, sent: Mapping[str, object]) -> None:
        super().__init__(NO_WORDS, retryable=True)
        self.sent = sent


class OpenAIChat(ChatClient):
    """One endpoint and one model, for replies and summaries."""

    def __init__(self, settings: LlmSettings, limits: AnswerLimits = USUAL_LIMITS) -> None:
        self._limits = limits
        self._where = address(settings.base_url)
        self._key = settings.api_key.get_secret_value() if settings.api_key else ""
        super().__init__(settings.base_url, self._key, settings.model, timeout_s=limits.total_s)
        # What Gemini sent with the last tool calls, by their ids, and wants back with them.
        self._signatures: dict[str, object] = {}

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        tools: OfferedTools = NO_TOOLS,
    ) -> AsyncGenerator[EndpointItem, None]:
        """Yield the answer piece by piece. Raises `ChatModelError`. See `ModelEndpoint.stream`.

        A model that gives no usable answer with tools is asked again without them, and one that thinks for too long to
        think less.
        """
        signatures = self._signatures if self.features.needs.signs_calls else None
        body = to_api_messages(messages, signatures)
        offered = tools if self.features.takes_tools else NO_TOOLS
        while True:
            try:
                async with aclosing(self._stream(body, max_output_tokens, offered)) as stream:
                    async for piece in stream:
                        yield piece
                    return
            except _ThoughtTooLongError as error:
                if not self.features.thought_too_long(error.sent):
                    raise
                log.info("model_thought_too_long", model=self.model, problem=error)
            except _NoAnswerError as error:
                if not offered.offers:
                    raise
                log.warning("tools_misused", model=self.model, problem=error)
                offered = NO_TOOLS

    async def _stream(
        self, body: list[dict[str, object]], max_output_tokens: int, tools: OfferedTools
    ) -> AsyncGenerator[EndpointItem, None]:
        now = asyncio.get_running_loop().time
        began_at = now()
        response, sent = await self._open_in_time(body, max_output_tokens, tools)
        answer = StreamedAnswer(
            has_tools=bool(tools.offers),
            unopened=self.features.thinks_unopened,
            max_output_tokens=max_output_tokens,
        )
        # Only the time spent waiting for the server counts, not what the voice takes for a piece. Once the answer has
        # begun, a pause within it may be as long as the wait for its beginning.
        waited_s = now() - began_at
        pause_s, left_s = self._limits.first_token_s - waited_s, self._limits.total_s - waited_s
        events = 0
        try:
            chunks = aiter(response)
            while not answer.is_over:
                asked_at = now()
                try:
                    async with asyncio.timeout(min(pause_s, left_s)):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        break
                    text = answer.take(read_chunk(chunk))
                except Exception as error:
                    raise self._translated(_of_connection(error)) from error
                waited_s = now() - asked_at
                left_s -= waited_s
                pause_s = self._limits.first_token_s if answer.began else pause_s - waited_s
                events += 1
                if events % EVENTS_AT_ONCE == 0:
                    # Reading waits for nothing while there are some.
                    await asyncio.sleep(0)
                if text:
                    yield text
                if (usage := getattr(chunk, "usage", None)) is not None:
                    yield read_usage(usage)
        finally:
            await response.close()
        if not events:
            # For example a web page, in which the client finds no event.
            raise _NoAnswerError(sentence_of(self._translated(ValueError("no event in the stream"))), retryable=True)
        rest = answer.end()
        if answer.thoughts.was_answer:
            self.features.thinks_unopened = False
        self._require_answer(answer, tools, sent)
        if rest:
            yield rest
        end = self._ended(answer)
        if self.features.needs.signs_calls:
            self._remember_signatures(end, answer.signatures)
        yield end

    async def _open_in_time(
        self, body: list[dict[str, object]], max_output_tokens: int, tools: OfferedTools
    ) -> tuple[openai.AsyncStream[Any], Mapping[str, object]]:
        """Return the stream of the answer, and the fields of the call that opened it."""
        optional = {USAGE: {"include_usage": True}} | to_api_tools(tools)
        try:
            async with asyncio.timeout(self._limits.first_token_s):
                return await self.create(body, max_output_tokens=max_output_tokens, stream=True, optional=optional)
        except Exception as error:
            translated = self._translated(error)
            status = getattr(error, "status_code", 0)
            if tools.offers and status >= FAILED_STATUS and TOOLS.removesuffix("s") in str(error).lower():
                # For example Ollama's if it cannot read the call that its model has written.
                raise _NoAnswerError(sentence_of(translated), retryable=True) from error
            raise translated from error

    def _require_answer(self, answer: StreamedAnswer, tools: OfferedTools, sent: Mapping[str, object]) -> None:
        """Raise `ChatModelError` if an answer that has ended is none. `sent`: the fields of the call."""
        # These are no fault of the tools: without them the same would happen.
        if answer.wordless and answer.reason == FinishReason.LENGTH and not answer.held:
            raise _ThoughtTooLongError(sent)
        if answer.wordless and answer.reason == FinishReason.FILTERED:
            raise FilteredError
        # Some models write a tool call as text, or its tags with nothing between them. That is no answer either.
        if not answer.began or (answer.wordless and tools.offers):
            raise _NoAnswerError(
                OperatorText(
                    "The language model {model} gave an empty answer. Try again, or choose another llm.model.",
                    NO_ANSWER,
                    model=self.model,
                ),
                retryable=True,
            )

    def _ended(self, answer: StreamedAnswer) -> StreamEnd:
        """Build the end of a stream. Raises `ChatModelError` if its tool calls are malformed."""
        try:
            asked = answer.calls
        except ValueError as error:
            raise self._translated(error) from error
        if asked and answer.reason != FinishReason.LENGTH:
            return StreamEnd(FinishReason.TOOL_CALLS, asked)
        # A call that was cut off is incomplete and dropped.
        is_cut = answer.reason in {FinishReason.LENGTH, FinishReason.FILTERED}
        return StreamEnd(FinishReason(answer.reason) if is_cut else FinishReason.STOP)

    def _remember_signatures(self, end: StreamEnd, signatures: Sequence[object]) -> None:
        """Remember what came with each call. Only calls that came whole have a signature."""
        if len(signatures) != len(end.calls):
            return
        self._signatures.update((call.id, signature) for call, signature in zip(end.calls, signatures, strict=True))
        while len(self._signatures) > MOST_SIGNATURES:
            del self._signatures[next(iter(self._signatures))]

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`. See `compaction.ports.Completion`."""
        asked: list[dict[str, object]] = [
            {"role": ChatRole.SYSTEM.value, "content": request.system},
            {"role": ChatRole.USER.value, "content": request.prompt},
        ]
        # The caller has its own deadline. The deadline of a reply would cut off the summary of a slow local model.
        limit_s = self._limits.completion_s
        try:
            async with asyncio.timeout(limit_s):
                answer = await self.ask(
                    asked,
                    max_output_tokens=request.max_output_tokens,
                    timeout_s=limit_s,
                    schema=request.schema,
                    # As deterministic as the endpoint can be.
                    optional={TEMPERATURE: 0},
                )
        except Exception as error:
            translated = self._translated(error)
            raise CompletionError(
                sentence_of(translated), retryable=translated.retryable, timeout=translated.timeout
            ) from error
        most_chars = MOST_CHARS_PER_TOKEN * request.max_output_tokens
        return CompletionAnswer(
            text=answer.text[:most_chars],
            finish_reason=answer.reason if len(answer.text) <= most_chars else FinishReason.LENGTH,
            prompt_tokens=answer.usage.prompt_tokens,
            completion_tokens=answer.usage.completion_tokens,
        )

    def _translated(self, error: Exception) -> ChatModelError:
        return translate_error(error, model=self.model, where=self._where, key=self._key)


def _of_connection(error: Exception) -> Exception:
    """Return what happened to the connection of a stream: the library reports it as if nobody had answered."""
    cause = error.__cause__
    return cause if isinstance(error, openai.APIConnectionError) and isinstance(cause, httpx2.HTTPError) else error
