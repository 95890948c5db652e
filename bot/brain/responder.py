"""Who finds the words of an answer: a language model, or the embedded responder. One port for both."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.brain.system_prompt import AFTER_TOOL_RESULTS, ANSWER_WITHOUT_TOOLS
from bot.brain.tools.exchanges import ToolExchange
from bot.brain.tools.settings import ToolsSettings
from bot.llm.port import NO_TOOLS, ChatMessage, ChatModelError, ChatRole, FinishReason, OfferedTools, StreamEnd

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from bot.brain.context import ModelContext
    from bot.brain.tools.toolbox import ToolRunner
    from bot.llm.port import ChatModel, StreamItem
    from compaction.budget.messages import MessageToolCall

log = structlog.get_logger()

# Turns are shown to the model as `[21:04] Ada: …`, and small models answer in kind.
_HEADING = re.compile(r"\s*\[\d{1,2}:\d{2}\]\s*(?:[^:\n]{1,60}:\s*)?")
# A heading is decided by here; waiting longer would delay the first word for nothing.
_HEADING_CHARS = 80
# Ends what was said before a tool is called: the voice need not wait for what comes after.
_PAUSE = "\n"


class CutOffError(Exception):
    """The answer ended before its last sentence did: by its cap, or because the provider would not go on."""


class Responder(Protocol):
    """Answers the current turn of a context."""

    def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield the answer piece by piece. Raises `ChatModelError`, also after some pieces, and `CutOffError` at the
        end of one that lacks its last words."""


class ModelResponder:
    """Asks a language model, and runs the tools it calls. Safe to use from many rooms at once."""

    def __init__(self, model: ChatModel, *, max_output_tokens: int, tools: ToolsSettings | None = None) -> None:
        self._model = model
        self._max_output_tokens = max_output_tokens
        self._settings = tools or ToolsSettings()

    async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield what the model says, without the clock time and name it may put before it.

        The model may call tools, for so many steps; while a slow one runs that is told, where nothing was said yet and
        an answer is sure to follow.
        """
        steps: list[ToolExchange] = []
        said = False
        try:
            while True:
                words, ended = "", StreamEnd(FinishReason.STOP)
                async with aclosing(self._stream(context, steps)) as stream:
                    async for piece in stream:
                        if isinstance(piece, StreamEnd):
                            ended = piece
                            continue
                        words += piece
                        yield piece
                said = said or bool(words.strip())
                if not ended.calls or context.tools is None:
                    break
                if len(steps) >= self._settings.max_steps:
                    # A server that takes no notice of being told to answer in words.
                    self._give_up(said=said)
                    break
                if words.strip():
                    yield _PAUSE
                running = asyncio.create_task(_run_all(context.tools, ended.calls), name="tools")
                try:
                    # A word of comfort before nothing at all would be odd.
                    if not (said or context.may_skip) and await self._is_slow(running):
                        said = True
                        yield self._settings.filler + _PAUSE
                    results = await running
                finally:
                    running.cancel()
                steps.append(ToolExchange(ended.calls, results, words))
        finally:
            if context.tools is not None:
                context.tools.keep(context.current.seq, steps)
        if ended.reason in {FinishReason.LENGTH, FinishReason.FILTERED}:
            raise CutOffError(ended.reason.value)

    async def _stream(self, context: ModelContext, steps: Sequence[ToolExchange]) -> AsyncGenerator[StreamItem, None]:
        """Yield one answer of the model, after what its tools have found so far."""
        messages = (*context.messages, *(each for step in steps for each in step.messages()))
        tools = NO_TOOLS
        if context.tools is not None:
            tools = OfferedTools(context.tools.offers, callable_now=len(steps) < self._settings.max_steps)
        if steps:
            told = AFTER_TOOL_RESULTS if tools.callable_now else ANSWER_WITHOUT_TOOLS
            messages = (*messages, ChatMessage(ChatRole.SYSTEM, told))
        stream = self._model.stream(
            messages, max_output_tokens=self._max_output_tokens, enforce_budget=context.enforced, tools=tools
        )
        opening: str | None = ""
        async with aclosing(stream):
            async for piece in stream:
                if isinstance(piece, StreamEnd):
                    if opening and (words := without_heading(opening)):
                        yield words
                    opening = None
                    yield piece
                elif opening is None:
                    yield piece
                else:
                    opening += piece
                    if _may_be_heading(opening):
                        continue
                    words, opening = without_heading(opening), None
                    if words:
                        yield words
        if opening and (words := without_heading(opening)):
            yield words

    async def _is_slow(self, running: asyncio.Task[tuple[str, ...]]) -> bool:
        """Return whether the tools take so long that a listener wonders."""
        if not self._settings.filler:
            return False
        done, _ = await asyncio.wait({running}, timeout=self._settings.filler_after_s)
        return not done

    def _give_up(self, *, said: bool) -> None:
        log.warning("tools_called_without_end", model=self._model.model)
        if not said:
            raise ChatModelError(
                f"The language model {self._model.model} called tools over and over and said nothing. Ask again, or "
                "choose another llm.model.",
                retryable=True,
            )


async def _run_all(tools: ToolRunner, calls: Sequence[MessageToolCall]) -> tuple[str, ...]:
    """Run the calls of one step side by side; return what each found, in their order."""
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(tools.run(call), name=f"tool-{call.name[:40]}") for call in calls]
    return tuple(task.result() for task in running)


def without_heading(text: str) -> str:
    """Return `text` without a clock time and name in front, as turns are headed in the prompt."""
    return text[heading.end() :] if (heading := _HEADING.match(text)) else text


def _may_be_heading(opening: str) -> bool:
    """Return whether more of the stream is needed to tell a heading from an answer."""
    start = opening.lstrip()
    if not start:
        return True
    return start[0] == "[" and ": " not in start and len(start) < _HEADING_CHARS
