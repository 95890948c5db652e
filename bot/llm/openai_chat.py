"""Adapter for endpoints with OpenAI's chat completions API: OpenAI, Anthropic, Gemini, Ollama, vLLM, llama.cpp.

It streams replies, gives whole answers to the compactor (`Completion`), sets deadlines, and turns the library's errors
into plain sentences.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

import httpx
import openai
import structlog

from bot.llm.endpoint_errors import translate_error
from bot.llm.port import NO_TOOLS, ChatModelError, ChatRole, FinishReason, StreamEnd, Usage
from bot.llm.tool_calls import CallPiece, StreamedCalls, WrittenCalls
from bot.texts.text import Text, sentence_of
from compaction.errors import CompletionError
from compaction.ports import CompletionAnswer
from voice.endpoint import CONNECT_TIMEOUT_S, address, open_client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from types import TracebackType

    from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

    from bot.llm.port import ChatMessage, OfferedTools, StreamItem
    from bot.llm.settings import LlmSettings
    from compaction.budget.messages import MessageToolCall
    from compaction.ports import CompletionRequest

log = structlog.get_logger()

# Statuses of servers that refuse a parameter. The call is repeated without it.
REFUSED_STATUSES = frozenset({400, 415, 422, 500, 501})
_REPORTED_REASONS = frozenset(reason.value for reason in (FinishReason.LENGTH, FinishReason.FILTERED))


# A model that misused tools this often gets none any more.
MOST_TOOL_FAILURES = 3

# Signatures of tool calls that are kept. A call is sent back within the same reply.
MOST_SIGNATURES = 64


class _NoAnswerError(ChatModelError):
    """The endpoint's response contains no answer."""


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
        # Features of this endpoint, learnt from its refusals: the name of the output limit, usage reports, tools, and
        # forms of structured output.
        self._limit_name = "max_tokens"
        self._reports_usage = True
        self._takes_temperature = True
        self._supports_tools = True
        self._plain_schemas = False
        self._tool_failures = 0
        # What the endpoint sent with a tool call and wants back with it, by the call's id. Gemini 3 refuses a call
        # without its signature: https://ai.google.dev/gemini-api/docs/thought-signatures
        self._signatures: dict[str, object] = {}
        self._format_index = 0

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

        A model that gives no usable answer with tools is asked again without them.
        """
        body = [_to_api_message(message, self._signatures) for message in messages]
        offered = tools if self._supports_tools else NO_TOOLS
        try:
            async with aclosing(self._stream(body, max_output_tokens, offered, on_usage)) as stream:
                async for piece in stream:
                    yield piece
                return
        except _NoAnswerError as error:
            if not offered.offers:
                raise
            self._tool_failures += 1
            self._supports_tools = self._supports_tools and self._tool_failures < MOST_TOOL_FAILURES
            log.warning("tools_misused", model=self.model, disabled=not self._supports_tools, problem=error)
        async with aclosing(self._stream(body, max_output_tokens, NO_TOOLS, on_usage)) as stream:
            async for piece in stream:
                yield piece

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
        try:
            async with asyncio.timeout_at(first_deadline):
                response = await self._open_stream(body, max_output_tokens, tools)
        except Exception as error:
            raise self._translated(error) from error
        event_received = answer_begun = called = passed_on = False
        # The same limit holds for pauses within the stream.
        deadline, pause_limit_s = first_deadline, self._settings.first_token_timeout_s
        calls, written, reason = StreamedCalls(), WrittenCalls() if tools.offers else None, ""
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
                    piece = _read_chunk(chunk)
                    for call, signature in piece.calls:
                        called = True
                        calls.feed(call)
                        signatures.append(signature)
                except Exception as error:
                    raise self._translated(error) from error
                reason = piece.finish_reason or reason
                answer_begun = answer_begun or bool(piece.text or piece.calls)
                if answer_begun:
                    deadline = min(last_deadline, loop.time() + pause_limit_s)
                text = piece.text if written is None else written.feed(piece.text)
                if text:
                    passed_on = passed_on or not text.isspace()
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
        rest, asked = ("", ()) if written is None else written.end()
        # Some models write the tags of a tool call with nothing between them. Such a response is not an answer either.
        empty_marks = written is not None and not (called or asked or passed_on or rest.strip())
        if not answer_begun or empty_marks:
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
        self, body: list[dict[str, object]], max_output_tokens: int, tools: OfferedTools
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        while True:
            usage = {"stream_options": {"include_usage": True}} if self._reports_usage else {}
            offered = _to_api_tools(tools, plain=self._plain_schemas) if self._supports_tools else {}
            try:
                return await self._client.chat.completions.create(
                    model=self.model,
                    messages=cast("list[ChatCompletionMessageParam]", body),
                    stream=True,
                    extra_body={self._limit_name: max_output_tokens} | usage | offered,
                )
            except openai.APIStatusError as error:
                if self._renames_limit(error) or self._refuses_usage(error) or self._refuses_schema_words(error):
                    continue
                if not offered or not self._refuses_tools(error, learns=tools.callable_now):
                    raise
                tools = NO_TOOLS

    def _renames_limit(self, error: openai.APIStatusError) -> bool:
        """Remember if the endpoint wants `max_completion_tokens`. Return whether to repeat the call."""
        if error.status_code not in REFUSED_STATUSES:
            return False
        if self._limit_name == "max_tokens" and "max_completion_tokens" in str(error):
            self._limit_name = "max_completion_tokens"
            return True
        return False

    def _refuses_usage(self, error: openai.APIStatusError) -> bool:
        """Remember if the endpoint can't report the usage of a stream. Return whether to repeat the call."""
        if error.status_code in REFUSED_STATUSES and self._reports_usage and "stream_options" in str(error):
            self._reports_usage = False
            return True
        return False

    def _refuses_schema_words(self, error: openai.APIStatusError) -> bool:
        """Remember if the endpoint knows only a part of JSON schema, as Gemini. Return whether to repeat the call."""
        if error.status_code in REFUSED_STATUSES and not self._plain_schemas and "Unknown name" in str(error):
            self._plain_schemas = True
            return True
        return False

    def _refuses_temperature(self, error: openai.APIStatusError) -> bool:
        """Remember if the model has no temperature, as later ones of OpenAI and Anthropic. Return whether to repeat."""
        if error.status_code in REFUSED_STATUSES and self._takes_temperature and "temperature" in str(error):
            self._takes_temperature = False
            return True
        return False

    def _refuses_tools(self, error: openai.APIStatusError, *, learns: bool) -> bool:
        """Return whether the endpoint refuses the tools, so that the call is repeated without them.

        A model without tool support gets no tools from then on. After other refusals that happens only if they repeat.
        """
        message = str(error).lower()
        if error.status_code not in REFUSED_STATUSES or "tool" not in message:
            return False
        if learns:
            self._tool_failures = MOST_TOOL_FAILURES if "support" in message else self._tool_failures + 1
            self._supports_tools = self._supports_tools and self._tool_failures < MOST_TOOL_FAILURES
        log.warning("tools_refused", model=self.model, disabled=not self._supports_tools, status=error.status_code)
        return True

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`. See `compaction.ports.Completion`.

        A schema is requested in the first of three forms that the endpoint accepts, or else only by the prompt.
        """
        formats = _response_formats(request.schema)
        index = min(self._format_index, len(formats) - 1)
        while True:
            try:
                answer = await self._complete_once(request, formats[index])
            except openai.APIStatusError as error:
                if self._renames_limit(error) or self._refuses_temperature(error):
                    continue
                if error.status_code in REFUSED_STATUSES and index + 1 < len(formats):
                    log.info("structured_output_refused", model=self.model, status=error.status_code, form=index)
                    index += 1
                    continue
                raise self._completion_error(error) from error
            except Exception as error:
                raise self._completion_error(error) from error
            if request.schema is not None:
                self._format_index = index
            return answer

    async def _complete_once(
        self, request: CompletionRequest, response_format: dict[str, object] | None
    ) -> CompletionAnswer:
        extra: dict[str, object] = {self._limit_name: request.max_output_tokens}
        if response_format is not None:
            extra["response_format"] = response_format
        # The caller has its own deadline. The deadline of a reply would cut off the summary of a slow local model.
        limit_s = self._settings.completion_timeout_s
        async with asyncio.timeout(limit_s):
            response = await self._client.chat.completions.create(
                model=self.model,
                messages=[
                    {"role": ChatRole.SYSTEM.value, "content": request.system},
                    {"role": ChatRole.USER.value, "content": request.prompt},
                ],
                # As deterministic as the endpoint can be.
                temperature=0 if self._takes_temperature else openai.omit,
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


def _to_api_message(message: ChatMessage, signatures: Mapping[str, object]) -> dict[str, object]:
    sent: dict[str, object] = {"role": message.role.value, "content": message.content}
    if message.tool_calls:
        sent["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            | ({"extra_content": signatures[call.id]} if call.id in signatures else {})
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


@dataclass(frozen=True, slots=True)
class _Piece:
    """The content of one streamed chunk."""

    text: str = ""
    # Each with what the endpoint sent beside it.
    calls: tuple[tuple[CallPiece, object], ...] = ()
    finish_reason: str = ""


def _read_chunk(chunk: object) -> _Piece:
    """Read one streamed chunk. Raises ValueError if it is an error report of the server."""
    choices = getattr(chunk, "choices", None)
    if choices is None:
        raise ValueError("a streamed chunk without choices")
    if not choices:
        return _Piece()
    delta = choices[0].delta
    calls = getattr(delta, "tool_calls", None) or ()
    return _Piece(
        text=_text(getattr(delta, "content", None)),
        calls=tuple((_call_piece(call), getattr(call, "extra_content", None)) for call in calls),
        finish_reason=_text(getattr(choices[0], "finish_reason", None)),
    )


def _call_piece(call: object) -> CallPiece:
    index, function = getattr(call, "index", None), getattr(call, "function", None)
    return CallPiece(
        index=index if isinstance(index, int) else None,
        id=_text(getattr(call, "id", None)),
        name=_text(getattr(function, "name", None)),
        arguments=_text(getattr(function, "arguments", None)),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


# Words of JSON schema that Gemini does not know. Arguments are checked against the whole schema when they come.
_UNCOMMON_WORDS = frozenset({"additionalProperties", "const", "$schema", "$defs", "pattern", "exclusiveMinimum"})
_LENGTHS = frozenset({"maxLength", "minLength"})


def _to_api_tools(tools: OfferedTools, *, plain: bool = False) -> dict[str, object]:
    if not tools.offers:
        return {}
    functions = [
        {
            "type": "function",
            "function": {
                "name": offer.name,
                "description": offer.description,
                "parameters": _without(offer.parameters, _LENGTHS | _UNCOMMON_WORDS if plain else _LENGTHS),
            },
        }
        for offer in tools.offers
    ]
    return {"tools": functions, "tool_choice": "auto" if tools.callable_now else "none"}


def _without(schema: object, words: frozenset[str]) -> object:
    """Return a JSON schema without these words, which are checked when the arguments come.

    Lengths of texts are never sent: llama.cpp makes a grammar of a schema, and refuses it (some versions end) if a text
    may have some 2,000 characters: https://github.com/ggml-org/llama.cpp/issues/27087.
    """
    if isinstance(schema, Mapping):
        return {
            # A property may have such a name; then its value is a schema, and no number.
            name: {key: _without(each, words) for key, each in value.items()}
            if name == "properties" and isinstance(value, Mapping)
            else _without(value, words)
            for name, value in schema.items()
            if name not in words
        }
    return [_without(each, words) for each in schema] if isinstance(schema, list | tuple) else schema


def _response_formats(schema: dict[str, object] | None) -> list[dict[str, object] | None]:
    """Return the ways to request structured output, in the order to try them.

    llama.cpp accepts `json_object` with a schema and answers 500 to `json_schema`; OpenAI does the opposite. Other
    servers accept a plain `json_object` or none of them.
    """
    if schema is None:
        return [None]
    return [
        {"type": "json_object", "schema": schema},
        {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
        {"type": "json_object"},
        None,
    ]
