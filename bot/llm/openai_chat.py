"""Adapter for endpoints with OpenAI's chat completions API: OpenAI, Anthropic, Gemini, Ollama, vLLM, llama.cpp.

It streams replies, gives whole answers to the compactor (`Completion`), sets deadlines, and turns the library's errors
into plain sentences. `chat_wire` has the JSON of the API, `endpoint_features` what an endpoint takes of it.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Self, cast

import httpx
import openai
import structlog

from bot.llm.answer_text import AnswerText
from bot.llm.chat_wire import read_chunk, response_formats, to_api_message, to_api_tools
from bot.llm.endpoint_errors import translate_error
from bot.llm.endpoint_features import REFUSED_IN_STREAM, REFUSED_STATUSES, EndpointFeatures
from bot.llm.message_order import MessageOrder, in_order
from bot.llm.port import NO_TOOLS, NO_WORDS, ChatModelError, ChatRole, FinishReason, StreamEnd, Usage
from bot.llm.tool_calls import StreamedCalls
from bot.texts.text import Text, sentence_of
from compaction.errors import CompletionError
from compaction.ports import CompletionAnswer
from voice.endpoint import CONNECT_TIMEOUT_S, address, open_client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from types import TracebackType

    from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

    from bot.llm.port import ChatMessage, OfferedTools, StreamItem
    from bot.llm.settings import LlmSettings
    from compaction.budget.messages import MessageToolCall
    from compaction.ports import CompletionRequest

log = structlog.get_logger()

_REPORTED_REASONS = frozenset(reason.value for reason in (FinishReason.LENGTH, FinishReason.FILTERED))

# Why an answer ended without a word, where that is no fault of the tools: without them the same would happen.
_WORDLESS = {
    # It thought for as long as it may, in or beside its answer.
    FinishReason.LENGTH.value: NO_WORDS,
    FinishReason.FILTERED.value: Text(
        "The filter of the language model's provider stopped the answer. Ask in other words."
    ),
}

# Signatures of tool calls that are kept. A call is sent back within the same reply.
MOST_SIGNATURES = 64


class _NoAnswerError(ChatModelError):
    """The endpoint's response contains no answer."""


class _WrongOrderError(ChatModelError):
    """The endpoint refused the order of the messages, at once or, as LM Studio, within its stream."""


class OpenAIChat:
    """One endpoint and one model.

    *Ownership*: an async context manager; it owns the HTTP connections and closes them on exit. *Cancellation*
    ends the call in progress. Safe to use from many tasks at once.
    """

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._base_url = address(settings.base_url)
        self._key = settings.api_key.get_secret_value() if settings.api_key else ""
        # No retries: a reply must not wait for them, and the compactor has its own.
        self._client = open_client(settings.base_url, self._key, timeout_s=settings.total_timeout_s)
        self._features = EndpointFeatures(settings.model)
        # What the endpoint sent with a tool call and wants back with it, by the call's id. Gemini 3 refuses a call
        # without its signature: https://ai.google.dev/gemini-api/docs/thought-signatures
        self._signatures: dict[str, object] = {}

    async def __aenter__(self) -> Self:
        # First use imports the library's chat module, which would block the event loop for a second.
        await asyncio.to_thread(lambda: self._client.chat.completions)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    @property
    def model(self) -> str:
        return self._settings.model

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        tools: OfferedTools = NO_TOOLS,
        on_usage: Callable[[Usage], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer piece by piece. Raises `ChatModelError`. See `ModelEndpoint.stream`.

        A model that gives no usable answer with tools is asked again without them, and one that does not take the
        order of the messages is asked again in a stricter order.
        """
        body = [to_api_message(message, self._signatures) for message in messages]
        offered = tools if self._features.supports_tools else NO_TOOLS
        while True:
            try:
                async with aclosing(self._stream(body, max_output_tokens, offered, on_usage)) as stream:
                    async for piece in stream:
                        yield piece
                    return
            except _WrongOrderError as error:
                log.info("message_order_refused", model=self.model, problem=error)
            except _NoAnswerError as error:
                if not offered.offers:
                    raise
                if offered.callable_now:
                    self._features.misused_tools()
                disabled = not self._features.supports_tools
                log.warning("tools_misused", model=self.model, disabled=disabled, problem=error)
                offered = NO_TOOLS

    async def _stream(
        self,
        body: list[dict[str, object]],
        max_output_tokens: int,
        tools: OfferedTools,
        on_usage: Callable[[Usage], None] | None,
    ) -> AsyncGenerator[StreamItem, None]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        first_deadline = started + self._settings.first_token_timeout_s
        last_deadline = started + self._settings.total_timeout_s
        order = self._features.order
        try:
            async with asyncio.timeout_at(first_deadline):
                response = await self._open_stream(body, order, max_output_tokens, tools)
        except _WrongOrderError:
            raise
        except Exception as error:
            raise self._translated(error) from error
        event_received = answer_begun = called = False
        # The same limit holds for pauses within the stream.
        deadline, pause_limit_s = first_deadline, self._settings.first_token_timeout_s
        calls, reason = StreamedCalls(), ""
        words = AnswerText(has_tools=bool(tools.offers), unopened=self._features.thinks_unopened)
        signatures: list[object] = []
        try:
            chunks = response.__aiter__()
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        break
                    event_received = True
                    if on_usage is not None and (usage := getattr(chunk, "usage", None)) is not None:
                        on_usage(Usage(usage.prompt_tokens, usage.completion_tokens))
                    piece = read_chunk(chunk)
                    for call, signature in piece.calls:
                        called = True
                        calls.feed(call)
                        signatures.append(signature)
                except Exception as error:
                    translated = self._translated(error)
                    if not answer_begun and self._features.refuses_order(REFUSED_IN_STREAM, str(error), sent=order):
                        raise _WrongOrderError(sentence_of(translated), retryable=True) from error
                    raise translated from error
                reason = piece.finish_reason or reason
                answer_begun = answer_begun or bool(piece.text or piece.calls)
                if answer_begun:
                    deadline = min(last_deadline, loop.time() + pause_limit_s)
                text = words.feed(piece.text)
                # At once: whoever hears thoughts interrupts them.
                self._features.learn_thoughts(words.thoughts)
                if text:
                    handed_on_at = loop.time()
                    yield text
                    # The deadlines count only time spent waiting for the server, not for the voice to take a piece.
                    taken_s = loop.time() - handed_on_at
                    deadline, last_deadline = deadline + taken_s, last_deadline + taken_s
        finally:
            await response.close()
        if not event_received:
            # For example a web page, in which the client finds no event.
            raise _NoAnswerError(sentence_of(self._translated(ValueError("no event in the stream"))), retryable=True)
        rest, asked = words.end(cut_off=reason == FinishReason.LENGTH)
        self._features.learn_thoughts(words.thoughts)
        wordless = not (called or asked or words.spoke)
        if wordless and reason in _WORDLESS:
            raise ChatModelError(_WORDLESS[reason], retryable=True)
        # Some models write the tags of a tool call with nothing between them. Such a response is not an answer either.
        if not answer_begun or (wordless and tools.offers):
            raise _NoAnswerError(
                Text(
                    "The language model {model} gave an empty answer. Try again, or choose another llm.model.",
                    model=self.model,
                ),
                retryable=True,
            )
        if rest:
            yield rest
        end = self._ended(calls, asked, reason)
        self._keep_signatures(end, signatures)
        if end.calls:
            self._features.used_tools()
        yield end

    def _ended(self, calls: StreamedCalls, written: tuple[MessageToolCall, ...], reason: str) -> StreamEnd:
        """Build the end of a stream. Raises `ChatModelError` if its tool calls are malformed."""
        try:
            asked = calls.calls or written
        except ValueError as error:
            raise self._translated(error) from error
        if asked and reason != FinishReason.LENGTH:
            return StreamEnd(FinishReason.TOOL_CALLS, asked)
        # A call that was cut off is incomplete and dropped.
        return StreamEnd(FinishReason(reason) if reason in _REPORTED_REASONS else FinishReason.STOP)

    def _keep_signatures(self, end: StreamEnd, signatures: Sequence[object]) -> None:
        """Remember what came with each call. Only calls that came whole have a signature."""
        if len(signatures) != len(end.calls):
            return
        for call, signature in zip(end.calls, signatures, strict=True):
            if signature is not None:
                self._signatures[call.id] = signature
        while len(self._signatures) > MOST_SIGNATURES:
            del self._signatures[next(iter(self._signatures))]

    async def _open_stream(
        self, body: list[dict[str, object]], order: MessageOrder, max_output_tokens: int, tools: OfferedTools
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        features, messages = self._features, _sent(body, order)
        while True:
            usage = {"stream_options": {"include_usage": True}} if features.reports_usage else {}
            offered = to_api_tools(tools, plain=features.plain_schemas) if features.supports_tools else {}
            try:
                return await self._client.chat.completions.create(
                    model=self.model,
                    messages=messages,
                    stream=True,
                    extra_body={features.limit_name: max_output_tokens} | usage | offered,
                )
            except openai.APIStatusError as error:
                refusal = error.status_code, str(error)
                if (
                    features.renames_limit(*refusal)
                    or features.refuses_usage(*refusal)
                    or features.refuses_schema_words(*refusal)
                ):
                    continue
                if features.refuses_order(*refusal, sent=order):
                    raise _WrongOrderError(sentence_of(self._translated(error)), retryable=True) from error
                if not offered or not features.refuses_tools(*refusal, callable_now=tools.callable_now):
                    raise
                log.warning(
                    "tools_refused", model=self.model, disabled=not features.supports_tools, status=error.status_code
                )
                tools = NO_TOOLS

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`. See `compaction.ports.Completion`.

        A schema is requested in the first of three forms that the endpoint accepts, or else only by the prompt.
        """
        formats = response_formats(request.schema)
        index = min(self._features.format_index, len(formats) - 1)
        while True:
            order = self._features.order
            try:
                answer = await self._complete_once(request, formats[index], order)
            except openai.APIStatusError as error:
                refusal = error.status_code, str(error)
                if (
                    self._features.renames_limit(*refusal)
                    or self._features.refuses_temperature(*refusal)
                    or self._features.refuses_order(*refusal, sent=order)
                ):
                    continue
                if error.status_code in REFUSED_STATUSES and index + 1 < len(formats):
                    log.info("structured_output_refused", model=self.model, status=error.status_code, form=index)
                    index += 1
                    continue
                raise self._completion_error(error) from error
            except Exception as error:
                raise self._completion_error(error) from error
            if request.schema is not None:
                self._features.format_index = index
            return answer

    async def _complete_once(
        self, request: CompletionRequest, response_format: dict[str, object] | None, order: MessageOrder
    ) -> CompletionAnswer:
        extra: dict[str, object] = {self._features.limit_name: request.max_output_tokens}
        if response_format is not None:
            extra["response_format"] = response_format
        asked = [
            {"role": ChatRole.SYSTEM.value, "content": request.system},
            {"role": ChatRole.USER.value, "content": request.prompt},
        ]
        # The caller has its own deadline. The deadline of a reply would cut off the summary of a slow local model.
        limit_s = self._settings.completion_timeout_s
        async with asyncio.timeout(limit_s):
            response = await self._client.chat.completions.create(
                model=self.model,
                messages=_sent(asked, order),
                # As deterministic as the endpoint can be.
                temperature=0 if self._features.takes_temperature else openai.omit,
                extra_body=extra,
                timeout=httpx.Timeout(limit_s, connect=CONNECT_TIMEOUT_S),
            )
        choices = getattr(response, "choices", None)
        if not choices or choices[0].message is None:
            raise ValueError("no choices in the answer")
        usage = response.usage
        return CompletionAnswer(
            text=choices[0].message.content or "",
            finish_reason=choices[0].finish_reason,
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
        )

    def _translated(self, error: Exception) -> ChatModelError:
        return translate_error(error, model=self.model, where=self._base_url, key=self._key)

    def _completion_error(self, error: Exception) -> CompletionError:
        translated = self._translated(error)
        return CompletionError(sentence_of(translated), retryable=translated.retryable, timeout=translated.timeout)


def _sent(messages: Sequence[Mapping[str, object]], order: MessageOrder) -> list[ChatCompletionMessageParam]:
    """Return the messages of a call as the library takes them."""
    return cast("list[ChatCompletionMessageParam]", in_order(messages, order))
