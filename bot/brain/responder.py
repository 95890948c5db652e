"""The port of the responder, which writes replies, and its implementation by a language model with tools.

`bot.brain.embedded` has the other implementation, which needs no model, and stands in for one that is away.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.background_task import owned_task
from bot.brain.system_prompt import AFTER_TOOL_RESULTS, ANSWER_WITHOUT_TOOLS
from bot.brain.tools.frozen_calls import FrozenCall
from bot.brain.tools.toolbox import ToolExchange
from bot.llm.port import (
    NO_ANSWER,
    ChatMessage,
    ChatModel,
    ChatModelError,
    ChatRole,
    FilteredError,
    FinishReason,
    OfferedTools,
    StreamEnd,
    StreamItem,
)
from bot.texts.text import OperatorText, Text, in_language

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from bot.brain.context import ModelContext

log = structlog.get_logger()

# Said for a call that waits.
PRESS_FIRST = Text("I will do that when you press Do it in the chat of my voice channel.")
# Said for a call that goes on behind the talk.
GOES_ON = Text("This takes longer. I go on, and then I tell you the result.")
# Said while a tool takes longer than a shorter pause, once a reply.
FILLER = Text("Let me look.")
FILLER_AFTER_S = 1.0
# How often the model may call tools and read the results in one reply. The listeners wait for each.
MAX_STEPS = 2
# Yielded before a tool runs, so that the voice speaks the text so far.
_SENTENCE_END = "\n"


class CutOffError(Exception):
    """The model stopped in mid-sentence: at the output limit, or because the provider filtered the rest."""


class WithoutModel(str):
    """A piece of a reply that something else writes while the model is away."""


class Responder(Protocol):
    """Writes the reply to the current turn of a context."""

    def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield the reply piece by piece. Raises `ChatModelError`, also after some pieces, and `CutOffError` at the end
        if the reply is incomplete."""


class ModelResponder:
    """Asks a language model and runs the tools that it calls. Safe to use from many rooms at once."""

    def __init__(self, model: ChatModel, *, max_output_tokens: int, filler_after_s: float = FILLER_AFTER_S) -> None:
        self._model = model
        self._max_output_tokens = max_output_tokens
        self._filler_after_s = filler_after_s

    async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield the reply. The model may call tools for a limited number of steps.

        A call that waits for the asker's press or goes on behind the talk is told in a fixed sentence; if nothing else
        was called, that ends the reply. While a slow tool runs, the filler sentence is yielded, provided that nothing
        was said yet, the answer is spoken, and a reply is sure to follow. With it the reply begins to sound, so its
        time limit ends.
        """
        steps: list[ToolExchange] = []
        spoke = False
        try:
            while True:
                text, end = "", StreamEnd(FinishReason.STOP)
                async with aclosing(self._stream(context, steps)) as stream:
                    async for piece in stream:
                        if isinstance(piece, StreamEnd):
                            end = piece
                            continue
                        text += piece
                        yield piece
                spoke = spoke or bool(text.strip())
                if not end.calls:
                    break
                if len(steps) >= MAX_STEPS:
                    # The server called a tool although no more calls were allowed.
                    log.warning("tool_step_limit_exceeded", model=self._model.model)
                    if not spoke:
                        raise ChatModelError(
                            OperatorText(
                                "The language model {model} called tools over and over and said nothing. If it does "
                                "that often, choose another llm.model.",
                                NO_ANSWER,
                                model=self._model.model,
                            ),
                            retryable=True,
                        )
                    break
                if text.strip():
                    yield _SENTENCE_END
                async with owned_task(context.tools.run_all(end.calls), name="tools") as running:
                    # A reader waits without one, and none goes before a reply that may be skipped.
                    if not (spoke or context.may_skip or context.tools.is_written):
                        # Longer, silence would seem no answer.
                        await asyncio.wait({running}, timeout=self._filler_after_s)
                        if not running.done():
                            spoke = True
                            yield _said(FILLER, context)
                    results = await running
                steps.append(ToolExchange(end.calls, results, text))
                waiting = [result for result in results if isinstance(result, FrozenCall)]
                for sentence in dict.fromkeys(PRESS_FIRST if call.tool.asks else GOES_ON for call in waiting):
                    spoke = True
                    yield _said(sentence, context)
                if len(waiting) == len(results):
                    break
        finally:
            context.tools.record(context.current.seq, steps)
        if end.reason in {FinishReason.LENGTH, FinishReason.FILTERED}:
            raise CutOffError(end.reason.value)

    def _stream(self, context: ModelContext, steps: Sequence[ToolExchange]) -> AsyncGenerator[StreamItem, None]:
        messages = (*context.messages, *(each for step in steps for each in step.messages()))
        tools = OfferedTools(context.tools.offers, callable_now=len(steps) < MAX_STEPS)
        if steps:
            instruction = AFTER_TOOL_RESULTS if tools.callable_now else ANSWER_WITHOUT_TOOLS
            messages = (*messages, ChatMessage(ChatRole.SYSTEM, instruction))
        return self._model.stream(
            messages,
            max_output_tokens=self._max_output_tokens,
            enforce_budget=context.enforced,
            tools=tools,
            on_sent=context.on_sent,
        )


class ModelOrMemory:
    """Lets something else answer if the model fails before its first word. One per room.

    `new_stand_in`: makes what answers while the model is away, from a time on (UTC epoch seconds).
    """

    def __init__(self, model: Responder, new_stand_in: Callable[[float], Responder]) -> None:
        self._model = model
        self._new_stand_in = new_stand_in
        # Until the model answers again.
        self._stand_in: Responder | None = None

    async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield the reply. A failure is raised if nothing else may answer (`ModelContext.on_away`), if a tool has run,
        of which memory knows nothing, or if the model is there and only its filter refused.
        """
        begun = False
        try:
            async with aclosing(self._model.respond(context)) as answer:
                async for piece in answer:
                    self._stand_in, begun = None, True
                    yield piece
            return
        except ChatModelError as error:
            if begun or context.tools.used or context.on_away is None or isinstance(error, FilteredError):
                raise
            log.warning("answered_without_model", problem=error)
            context.on_away(error)
        self._stand_in = self._stand_in or self._new_stand_in(context.now)
        async for piece in self._stand_in.respond(context):
            yield WithoutModel(piece)


def _said(sentence: str, context: ModelContext) -> str:
    """Return a fixed sentence in the language of the question, or that of the channel; an operator's own as it is."""
    return in_language(sentence, context.language or context.channel_language) + _SENTENCE_END
