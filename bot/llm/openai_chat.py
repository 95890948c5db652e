"""The adapter for every endpoint that speaks OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp.

It streams replies for the brain (`ChatModel`), gives whole answers to the compactor (`Completion`), sets the
deadlines, and turns each of the library's errors into one plain sentence. It decides nothing about content.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

import httpx
import openai
import structlog

from bot.llm.endpoint_errors import translate_error
from bot.llm.port import NO_TOOLS, ChatModelError, ChatRole, FinishReason, StreamEnd, Usage
from bot.llm.tool_calls import CallPiece, StreamedCalls, WrittenCalls
from compaction.errors import CompletionError
from compaction.ports import CompletionAnswer
from voice.endpoint import CONNECT_TIMEOUT_S, address, open_client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from types import TracebackType

    from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

    from bot.llm.port import ChatMessage, OfferedTools, StreamItem
    from bot.settings import LlmSettings
    from compaction.budget.messages import MessageToolCall
    from compaction.ports import CompletionRequest

log = structlog.get_logger()

# Said by servers that refuse a parameter: try again without it.
REFUSED_STATUSES = frozenset({400, 415, 422, 500, 501})
_TOLD_REASONS = frozenset(reason.value for reason in (FinishReason.LENGTH, FinishReason.FILTERED))


# A model that made no sense with tools so often is offered none any more.
MOST_CONFUSED = 3


class _NoAnswerError(ChatModelError):
    """What came was no answer at all, though the endpoint is there."""


class OpenAIChat:
    """One endpoint and one model.

    *Ownership*: an async context manager; it owns the HTTP connections and closes them on exit. *Cancellation*
    hangs up the running call. Safe to use from many tasks at once.
    """

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._base_url = address(settings.base_url)
        self._key = settings.api_key.get_secret_value() if settings.api_key else ""
        # Nothing is tried twice here: a reply is not worth it, and the compactor has its backoff.
        self._client = open_client(settings.base_url, self._key, timeout_s=settings.total_timeout_s)
        # How this endpoint wants the cap named, and the first form of structured output it takes; learnt once.
        self._cap_name = "max_tokens"
        self._tells_usage = True
        self._takes_tools = True
        # How often it made no sense with tools.
        self._confused = 0
        self._format_rung = 0

    async def __aenter__(self) -> Self:
        # The library imports its chat part when it is first touched: a second in which the loop would stand still.
        await asyncio.to_thread(lambda: self._client.chat.completions)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""
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

        Tools never cost the answer: a model that says nothing sensible with them is asked again without.
        """
        body = [_sent(message) for message in messages]
        offered = tools if self._takes_tools else NO_TOOLS
        try:
            async with aclosing(self._stream(body, max_output_tokens, offered, on_usage)) as stream:
                async for piece in stream:
                    yield piece
                return
        except _NoAnswerError as error:
            if not offered.offers:
                raise
            self._confused += 1
            self._takes_tools = self._takes_tools and self._confused < MOST_CONFUSED
            log.warning("tools_confused_model", model=self.model, gives_up=not self._takes_tools, problem=str(error))
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
        understood = heard_anything = called = passed_on = False
        # A stream that stands still is as bad as one that never begins.
        deadline, patience_s = first_deadline, self._settings.first_token_timeout_s
        calls, written, reason = StreamedCalls(), WrittenCalls() if tools.offers else None, ""
        try:
            chunks = response.__aiter__()
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        break
                    understood = True
                    if on_usage is not None and (usage := getattr(chunk, "usage", None)) is not None:
                        on_usage(Usage(usage.prompt_tokens, usage.completion_tokens))
                    piece = _piece_of(chunk)
                    for call in piece.calls:
                        called = True
                        calls.feed(call)
                except Exception as error:
                    raise self._translated(error) from error
                reason = piece.finish_reason or reason
                heard_anything = heard_anything or bool(piece.text or piece.calls)
                if heard_anything:
                    deadline = min(last_deadline, loop.time() + patience_s)
                text = piece.text if written is None else written.feed(piece.text)
                if text:
                    passed_on = passed_on or not text.isspace()
                    handed_on_at = loop.time()
                    yield text
                    # Only waiting for the server counts: whoever speaks the answer takes the next piece when there is
                    # room for it.
                    taken_s = loop.time() - handed_on_at
                    deadline, last_deadline = deadline + taken_s, last_deadline + taken_s
        finally:
            await response.close()
        if not understood:
            # A web page, say: the client reads no event in it and ends in silence.
            raise _NoAnswerError(str(self._translated(ValueError("no event in the stream"))), retryable=True)
        rest, asked = ("", ()) if written is None else written.end()
        # With tools on offer some write the marks of a call and nothing between them: that is no answer either.
        empty_marks = written is not None and not (called or asked or passed_on or rest.strip())
        if not heard_anything or empty_marks:
            raise _NoAnswerError(
                f"The language model {self.model} gave an empty answer. Try again, or choose another llm.model.",
                retryable=True,
            )
        if rest:
            yield rest
        yield self._ended(calls, asked, reason)

    def _ended(self, calls: StreamedCalls, written: tuple[MessageToolCall, ...], reason: str) -> StreamEnd:
        """Return how a stream ended. Raises `ChatModelError` when its calls are none."""
        try:
            asked = calls.calls or written
        except ValueError as error:
            raise self._translated(error) from error
        if asked and reason != FinishReason.LENGTH:
            return StreamEnd(FinishReason.TOOL_CALLS, asked)
        # A call that was cut off has half its arguments: it is none.
        return StreamEnd(FinishReason(reason) if reason in _TOLD_REASONS else FinishReason.STOP)

    async def _open_stream(
        self, body: list[dict[str, object]], max_output_tokens: int, tools: OfferedTools
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        while True:
            usage = {"stream_options": {"include_usage": True}} if self._tells_usage else {}
            offered = _offered(tools) if self._takes_tools else {}
            try:
                return await self._client.chat.completions.create(
                    model=self.model,
                    messages=cast("list[ChatCompletionMessageParam]", body),
                    stream=True,
                    extra_body={self._cap_name: max_output_tokens} | usage | offered,
                )
            except openai.APIStatusError as error:
                if self._renames_cap(error) or self._tells_no_usage(error):
                    continue
                if not offered or not self._refuses_tools(error, learns=tools.callable_now):
                    raise
                tools = NO_TOOLS

    def _renames_cap(self, error: openai.APIStatusError) -> bool:
        """Learn that this endpoint wants `max_completion_tokens`. Return whether a second try is worth it."""
        if error.status_code not in REFUSED_STATUSES:
            return False
        if self._cap_name == "max_tokens" and "max_completion_tokens" in str(error):
            self._cap_name = "max_completion_tokens"
            return True
        return False

    def _tells_no_usage(self, error: openai.APIStatusError) -> bool:
        """Learn that this endpoint doesn't tell what a stream cost. Return whether a second try is worth it."""
        if error.status_code in REFUSED_STATUSES and self._tells_usage and "stream_options" in str(error):
            self._tells_usage = False
            return True
        return False

    def _refuses_tools(self, error: openai.APIStatusError, *, learns: bool) -> bool:
        """Return whether the endpoint minds the tools, so that a try without is worth it.

        It learns from that: at once that a model has none, after some times that something about ours is wrong.
        """
        told = str(error).lower()
        if error.status_code not in REFUSED_STATUSES or "tool" not in told:
            return False
        if learns:
            self._confused = MOST_CONFUSED if "support" in told else self._confused + 1
            self._takes_tools = self._takes_tools and self._confused < MOST_CONFUSED
        log.warning("tools_refused", model=self.model, gives_up=not self._takes_tools, problem=told[:200])
        return True

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`. See `compaction.ports.Completion`.

        A schema is asked for in the first of three forms that the endpoint takes, and else left to the prompt.
        """
        formats = _response_formats(request.schema)
        rung = min(self._format_rung, len(formats) - 1)
        while True:
            try:
                answer = await self._complete_once(request, formats[rung])
            except openai.APIStatusError as error:
                if self._renames_cap(error):
                    continue
                if error.status_code in REFUSED_STATUSES and rung + 1 < len(formats):
                    log.info("structured_output_refused", model=self.model, status=error.status_code, form=rung)
                    rung += 1
                    continue
                raise self._completion_error(error) from error
            except Exception as error:
                raise self._completion_error(error) from error
            if request.schema is not None:
                self._format_rung = rung
            return answer

    async def _complete_once(
        self, request: CompletionRequest, response_format: dict[str, object] | None
    ) -> CompletionAnswer:
        extra: dict[str, object] = {self._cap_name: request.max_output_tokens}
        if response_format is not None:
            extra["response_format"] = response_format
        # Whoever asks has a deadline of its own; that of a spoken reply would cut off a slow local model's summary.
        limit_s = self._settings.completion_timeout_s
        async with asyncio.timeout(limit_s):
            response = await self._client.chat.completions.create(
                model=self.model,
                messages=[
                    {"role": ChatRole.SYSTEM.value, "content": request.system},
                    {"role": ChatRole.USER.value, "content": request.prompt},
                ],
                # The same turns give the same summary, as far as the endpoint can.
                temperature=0,
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
        told = self._translated(error)
        return CompletionError(str(told), retryable=told.retryable, timeout=told.timeout)


def _sent(message: ChatMessage) -> dict[str, object]:
    """Return a message as the API takes it."""
    sent: dict[str, object] = {"role": message.role.value, "content": message.content}
    if message.tool_calls:
        sent["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one streamed chunk holds."""

    text: str = ""
    calls: tuple[CallPiece, ...] = ()
    finish_reason: str = ""


def _piece_of(chunk: object) -> _Piece:
    """Return what one streamed chunk holds; raise when the server reports an error inside the stream."""
    choices = getattr(chunk, "choices", None)
    if choices is None:
        raise ValueError("a streamed chunk without choices")
    if not choices:
        return _Piece()
    delta = choices[0].delta
    calls = getattr(delta, "tool_calls", None) or ()
    return _Piece(
        text=_text(getattr(delta, "content", None)),
        calls=tuple(_call_piece(call) for call in calls),
        finish_reason=_text(getattr(choices[0], "finish_reason", None)),
    )


def _call_piece(call: object) -> CallPiece:
    index, function = getattr(call, "index", None), getattr(call, "function", None)
    return CallPiece(
        index=index if isinstance(index, int) else 0,
        id=_text(getattr(call, "id", None)),
        name=_text(getattr(function, "name", None)),
        arguments=_text(getattr(function, "arguments", None)),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _offered(tools: OfferedTools) -> dict[str, object]:
    """Return the tools as the API takes them."""
    if not tools.offers:
        return {}
    told = [
        {
            "type": "function",
            "function": {"name": offer.name, "description": offer.description, "parameters": dict(offer.parameters)},
        }
        for offer in tools.offers
    ]
    return {"tools": told, "tool_choice": "auto" if tools.callable_now else "none"}


def _response_formats(schema: dict[str, object] | None) -> list[dict[str, object] | None]:
    """Return the ways to ask for structured output, most exact and most local first.

    llama.cpp's server takes `json_object` with a schema and answers 500 to `json_schema`; OpenAI itself is the
    other way round; a plain `json_object` and, at last, the prompt alone serve the rest.
    """
    if schema is None:
        return [None]
    return [
        {"type": "json_object", "schema": schema},
        {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
        {"type": "json_object"},
        None,
    ]
