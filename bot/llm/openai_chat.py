"""Adapter for endpoints with OpenAI's chat completions API: OpenAI, Anthropic, Gemini, Ollama, vLLM, llama.cpp.

It streams replies, sets deadlines, and turns the library's errors into plain sentences; `openai_completion` gives whole
answers. `chat_wire` has the JSON of the API, `endpoint_features` what an endpoint takes of it.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Self

import httpx2
import openai
import structlog

from bot.llm.chat_wire import OwnCall, read_chunk, read_usage, to_api_messages, to_api_tools
from bot.llm.endpoint_errors import refusal_of, require_no_failure, translate_error
from bot.llm.endpoint_features import REFUSED_IN_STREAM, EndpointFeatures
from bot.llm.message_order import in_order
from bot.llm.openai_completion import OpenAICompletion
from bot.llm.port import FILTERED, NO_TOOLS, NO_WORDS, ChatModelError, FinishReason, StreamEnd
from bot.llm.streamed_answer import StreamDeadlines, StreamedAnswer
from bot.texts.text import Text, sentence_of
from voice.endpoint import open_client
from voice.endpoint_settings import address, without_secrets

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
    from types import TracebackType

    from openai.types.chat import ChatCompletionChunk

    from bot.llm.chat_wire import ChunkContent
    from bot.llm.message_order import MessageOrder
    from bot.llm.port import ChatMessage, OfferedTools, StreamItem, Usage
    from bot.llm.settings import LlmSettings
    from compaction.ports import CompletionAnswer, CompletionRequest

log = structlog.get_logger()

_REPORTED_REASONS = frozenset(reason.value for reason in (FinishReason.LENGTH, FinishReason.FILTERED))

# How Groq, which reads the calls itself, ends the stream of an answer with a malformed one.
_MALFORMED_CALL = "tool_use_failed"

# Tool calls of all rooms that are remembered. A room sends back those of its last few questions.
MOST_OWN_CALLS = 1_024

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


class _WrongOrderError(ChatModelError):
    """The endpoint refused the order of the messages, at once or, as LM Studio, within its stream."""


class _OwnCallsRefusedError(ChatModelError):
    """The endpoint refused tool calls that its model has made."""


class OpenAIChat:
    """One endpoint and one model.

    *Ownership*: an async context manager; it owns the HTTP connections and closes them on exit. *Cancellation*
    ends the call in progress. Safe to use from many tasks at once.
    """

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._where = without_secrets(address(settings.base_url))
        self._key = settings.api_key.get_secret_value() if settings.api_key else ""
        # No retries: a reply must not wait for them, and the compactor has its own.
        self._client = open_client(settings.base_url, self._key, timeout_s=settings.total_timeout_s)
        self._features = EndpointFeatures(settings.model)
        self._completion = OpenAICompletion(self._client, settings, self._features, translate=self._translated)
        # The last tool calls that this model made, by id. Gemini 3 wants the signatures back that it sent with them:
        # https://ai.google.dev/gemini-api/docs/thought-signatures
        self._own_calls: dict[str, OwnCall] = {}

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

        A model that gives no usable answer with tools is asked again without them, one that does not take the order of
        the messages in a stricter order, one that does not take its own tool calls with what they found as data, and
        one that thinks for too long to think less.
        """
        offered = tools if self._features.supports_tools else NO_TOOLS
        while True:
            body = to_api_messages(messages, self._own_calls if self._features.takes_own_calls else {})
            try:
                async with aclosing(self._stream(body, max_output_tokens, offered, on_usage)) as stream:
                    async for piece in stream:
                        yield piece
                    return
            except _WrongOrderError as error:
                log.info("message_order_refused", model=self.model, problem=error)
            except _OwnCallsRefusedError as error:
                log.info("own_tool_calls_refused", model=self.model, problem=error)
            except _ThoughtTooLongError as error:
                if not self._features.thought_too_long(error.sent):
                    raise
                log.info("model_thought_too_long", model=self.model, problem=error)
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
        now = asyncio.get_running_loop().time
        settings, order = self._settings, self._features.order
        deadlines = StreamDeadlines(
            now(), first_token_s=settings.first_token_timeout_s, total_s=settings.total_timeout_s
        )
        response, sent = await self._open_in_time(body, order, max_output_tokens, tools, by=deadlines.next_at)
        answer = StreamedAnswer(
            has_tools=bool(tools.offers),
            unopened=self._features.thinks_unopened,
            max_output_tokens=max_output_tokens,
        )
        events = 0
        try:
            chunks = response.__aiter__()
            while (
                content := await self._next_content(chunks, answer, order, on_usage, by=deadlines.next_at)
            ) is not None:
                events += 1
                if events % EVENTS_AT_ONCE == 0:
                    # Reading waits for nothing while there are some.
                    await asyncio.sleep(0)
                text = answer.take_words(content)
                if answer.began:
                    deadlines.on_piece(now())
                # At once: whoever hears thoughts interrupts them.
                self._features.learn_thoughts(answer.thoughts)
                if text:
                    handed_on_at = now()
                    yield text
                    deadlines.postpone(now() - handed_on_at)
                if answer.is_over:
                    break
        finally:
            await response.close()
        if not events:
            # For example a web page, in which the client finds no event.
            raise _NoAnswerError(sentence_of(self._translated(ValueError("no event in the stream"))), retryable=True)
        rest = answer.end()
        self._features.learn_thoughts(answer.thoughts)
        self._require_answer(answer, tools, sent)
        if rest:
            yield rest
        end = self._ended(answer)
        self._remember_calls(end, answer.signatures)
        if end.calls:
            self._features.used_tools()
        yield end

    async def _open_in_time(
        self,
        body: list[dict[str, object]],
        order: MessageOrder,
        max_output_tokens: int,
        tools: OfferedTools,
        *,
        by: float,
    ) -> tuple[openai.AsyncStream[ChatCompletionChunk], Mapping[str, object]]:
        try:
            async with asyncio.timeout_at(by):
                return await self._open_stream(body, order, max_output_tokens, tools)
        except (_WrongOrderError, _OwnCallsRefusedError):
            raise
        except Exception as error:
            raise self._translated(error) from error

    async def _next_content(
        self,
        chunks: AsyncIterator[ChatCompletionChunk],
        answer: StreamedAnswer,
        order: MessageOrder,
        on_usage: Callable[[Usage], None] | None,
        *,
        by: float,
    ) -> ChunkContent | None:
        """Return what comes next, its calls already taken up by `answer`; None at the end of the stream."""
        try:
            async with asyncio.timeout_at(by):
                chunk = await anext(chunks, None)
            if chunk is None:
                return None
            if on_usage is not None and (usage := getattr(chunk, "usage", None)) is not None:
                on_usage(read_usage(usage))
            content = read_chunk(chunk)
            require_no_failure(content.finish_reason, self._client.base_url)
            answer.take_calls(content)
        except Exception as error:
            translated = self._translated(_of_connection(error))
            if not answer.began and self._features.refuses_order(REFUSED_IN_STREAM, str(error), sent=order):
                raise _WrongOrderError(sentence_of(translated), retryable=True) from error
            if not answer.spoke and getattr(error, "code", None) == _MALFORMED_CALL:
                raise _NoAnswerError(sentence_of(translated), retryable=True) from error
            raise translated from error
        return content

    def _require_answer(self, answer: StreamedAnswer, tools: OfferedTools, sent: Mapping[str, object]) -> None:
        """Raise `ChatModelError` if an answer that has ended is none. `sent`: the fields of the call."""
        # These are no fault of the tools: without them the same would happen.
        if answer.wordless and answer.reason == FinishReason.LENGTH:
            raise _ThoughtTooLongError(sent)
        if answer.wordless and answer.reason == FinishReason.FILTERED:
            raise ChatModelError(FILTERED, retryable=True)
        # Some models write the tags of a tool call with nothing between them. Such a response is not an answer either.
        if not answer.began or (answer.wordless and tools.offers):
            raise _NoAnswerError(
                Text(
                    "The language model {model} gave an empty answer. Try again, or choose another llm.model.",
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
        return StreamEnd(FinishReason(answer.reason) if answer.reason in _REPORTED_REASONS else FinishReason.STOP)

    def _remember_calls(self, end: StreamEnd, signatures: Sequence[object]) -> None:
        """Remember the calls, and what came with each. Only calls that came whole have a signature."""
        if len(signatures) != len(end.calls):
            signatures = [None] * len(end.calls)
        signed = any(signature is not None for signature in signatures)
        for call, signature in zip(end.calls, signatures, strict=True):
            self._own_calls[call.id] = OwnCall(signature, in_signed_step=signed)
        while len(self._own_calls) > MOST_OWN_CALLS:
            del self._own_calls[next(iter(self._own_calls))]

    async def _open_stream(
        self, body: list[dict[str, object]], order: MessageOrder, max_output_tokens: int, tools: OfferedTools
    ) -> tuple[openai.AsyncStream[ChatCompletionChunk], Mapping[str, object]]:
        """Return the stream of the answer, and the fields of the call that opened it."""
        features, messages = self._features, in_order(body, order)
        while True:
            usage = {"stream_options": {"include_usage": True}} if features.reports_usage else {}
            plain = features.plain_schemas
            taken = features.taken(tools)
            offered = to_api_tools(taken, plain=plain)
            sent = features.limits(max_output_tokens) | usage | offered
            try:
                response = await self._client.chat.completions.create(
                    model=self.model,
                    messages=messages,
                    stream=True,
                    extra_body=sent,
                )
            except openai.APIStatusError as error:
                refusal = refusal_of(error)
                if (
                    features.renames_limit(*refusal, sent=sent)
                    or features.refuses_usage(*refusal, sent=sent)
                    or features.refuses_schema_words(*refusal, sent_plain=plain)
                ):
                    continue
                if (tool := features.refused_tool(*refusal, sent=taken)) is not None:
                    log.warning(
                        "tool_schema_refused", model=self.model, tool=tool.name, problem=self._translated(error)
                    )
                    continue
                if features.refuses_own_calls(*refusal, sent=any("tool_calls" in message for message in body)):
                    raise _OwnCallsRefusedError(sentence_of(self._translated(error)), retryable=True) from error
                if features.refuses_order(*refusal, sent=order):
                    raise _WrongOrderError(sentence_of(self._translated(error)), retryable=True) from error
                if features.refuses_effort(*refusal, sent=sent, by_name=True):
                    continue
                if not offered or not features.refuses_tools(*refusal, callable_now=tools.callable_now):
                    if features.refuses_effort(*refusal, sent=sent):
                        continue
                    raise
                log.warning(
                    "tools_refused", model=self.model, disabled=not features.supports_tools, status=error.status_code
                )
                tools = NO_TOOLS
            else:
                features.takes_effort(sent)
                return response, sent

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`. See `compaction.ports.Completion`."""
        return await self._completion.complete(request)

    def _translated(self, error: Exception) -> ChatModelError:
        return translate_error(error, model=self.model, where=self._where, key=self._key)


def _of_connection(error: Exception) -> Exception:
    """Return what happened to the connection of a stream: the library reports it as if nobody had answered."""
    cause = error.__cause__
    return cause if isinstance(error, openai.APIConnectionError) and isinstance(cause, httpx2.HTTPError) else error
