"""The summariser that is a function of the caller. Gist and facts of a batch are quotes, as without a model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from compaction.errors import CompletionError
from compaction.language.text import plain
from compaction.model import Turn
from compaction.ports import CompletionAnswer
from compaction.summary.answer import answer_text
from compaction.summary.extractive import ExtractiveSummariser, compose_paragraph
from compaction.summary.llm import count_unsourced, cut_to_sentence
from compaction.summary.port import MAX_SUMMARY_CHARS, Fold, FoldRequest

# Gets the summary so far, empty at first, and the next turns. Returns the new summary, which stands for all of them.
SummaryFunction: TypeAlias = Callable[[str, Sequence[Turn]], Awaitable[str]]


class FunctionSummariser:
    """The summariser behind a `SummaryFunction`. A summary of more than 1,200 characters is cut at a sentence's end.

    At every eighth fold the function gets the best quotes of all that was said as the summary so far, so that errors
    can't add up.
    """

    name = "function"
    model = ""

    def __init__(self, function: SummaryFunction) -> None:
        """Raises TypeError for a plain function: while it waits for a model, nothing else of the program would run."""
        if not any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None)))):  # noqa: B004
            raise TypeError("The summariser is no `async def`. Write one that awaits `asyncio.to_thread(yours, …)`.")
        self._function = function

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the fold of one batch. Raises CompletionError if the function raises, SummaryRefusedError if its
        answer is blank, a refusal or an error text.
        """
        previous = request.previous or ""
        if not previous and request.known:
            previous = await asyncio.to_thread(compose_paragraph, [each.fact for each in request.known])
        try:
            answer = await self._function(previous, request.turns)
        except Exception as exc:
            told = f"The summariser raised {type(exc).__name__}."
            timeout = isinstance(exc, TimeoutError)
            raise CompletionError(told, retryable=True, timeout=timeout, detail=str(exc)) from exc
        # A wrong function may return anything.
        text = answer if isinstance(answer, str) else ""
        paragraph = plain(answer_text(CompletionAnswer(text, None, None, None)))
        quotes = await ExtractiveSummariser().fold(request)
        return replace(
            quotes,
            paragraph=cut_to_sentence(paragraph, MAX_SUMMARY_CHARS),
            prompt_version=self.name,
            unsourced=count_unsourced(paragraph, " ".join([previous, *map(_line, request.turns)])),
        )


def _line(turn: Turn) -> str:
    return " ".join(f"{part.speaker}: {part.text}" for part in turn.parts)
