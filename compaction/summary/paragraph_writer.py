"""The paragraph that a text model writes of the whole session: checked, and asked for once more if it has a fault.

A paragraph that is a little too long loses asides instead. The second call names the fault; what is too long both times
is cut after the last sentence that fits. The `recursive` strategy (spec 1) is the paragraph alone.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.errors import CompletionError, SummaryRefusedError
from compaction.language.text import ends_a_sentence, whole_sentences
from compaction.summary.answer import parse_paragraph
from compaction.summary.asides import without_asides
from compaction.summary.paragraph_checks import Fault
from compaction.summary.port import MAX_SUMMARY_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from compaction.model import Turn
    from compaction.ports import Completion, CompletionAnswer, CompletionRequest
    from compaction.summary.fold_prompts import RecursivePrompts
    from compaction.summary.paragraph_checks import ParagraphCheck

# What is left of the time after the last call: the caller's limit began before this one, and the answer is checked.
_SPARE_SHARE = 0.02
_CUT_OFF = Fault("The model's summary was cut off at its length limit.", "It has no end. Say it in fewer words.")


class Calls:
    """The calls of one fold, their tokens, and how long there is for them (None: as long as the caller waits)."""

    def __init__(self, completion: Completion, *, within_s: float | None) -> None:
        self._completion = completion
        self._loop = asyncio.get_running_loop()
        self._until = None if within_s is None else self._loop.time() + within_s * (1 - _SPARE_SHARE)
        self._longest_s = 0.0
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None

    async def ask(self, request: CompletionRequest) -> CompletionAnswer:
        """Return the answer. Raises CompletionError."""
        begun = self._loop.time()
        answer = await self._completion.complete(request)
        self._longest_s = max(self._longest_s, self._loop.time() - begun)
        self.prompt_tokens = _sum(self.prompt_tokens, answer.prompt_tokens)
        self.completion_tokens = _sum(self.completion_tokens, answer.completion_tokens)
        return answer

    async def ask_in_time(self, request: CompletionRequest) -> CompletionAnswer | None:
        """Return the answer, or None if it doesn't come before the deadline. Raises CompletionError.

        Nothing is asked if a call as long as the longest one so far would not end before the deadline.
        """
        if self._until is None:
            return await self.ask(request)
        if self._loop.time() + self._longest_s >= self._until:
            return None
        try:
            async with asyncio.timeout_at(self._until):
                return await self.ask(request)
        except TimeoutError:
            return None


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A checked paragraph; empty with a `problem` if the model's can't be used."""

    text: str
    problem: str = ""


class ParagraphWriter:
    """Settles the paragraph of one fold. `sections`: makes what a call for the paragraph alone tells.

    `turns`: the batch.
    """

    def __init__(
        self,
        calls: Calls,
        prompts: RecursivePrompts,
        sections: Callable[[], Mapping[str, str]],
        turns: Sequence[Turn],
        *,
        max_output_tokens: int,
    ) -> None:
        self._calls = calls
        self._prompts = prompts
        self._sections = sections
        self._turns = turns
        self._max_output_tokens = max_output_tokens

    async def settle(self, first: str, problem: str, check: ParagraphCheck) -> Paragraph:
        """Return the first paragraph if it passes, else one that was asked for again, else none.

        `problem`: why there is no first one. Of paragraphs that are only too long, what fits without some asides is
        tried, and after the second call the sentences that fit.
        Raises nothing: the facts of a good answer outlast a paragraph that fails.
        """
        fault = check.fault(first) if first or not problem else Fault(problem, problem)
        if fault is None:
            return Paragraph(first)
        if (shorter := without_asides(first, MAX_SUMMARY_CHARS)) and check.fault(shorter) is None:
            return Paragraph(shorter)
        try:
            again = await self._again(first, fault)
        except (CompletionError, SummaryRefusedError):
            again = ""
        tried = (without_asides(again, MAX_SUMMARY_CHARS), *map(_that_fits, (again, first)))
        kept = next((text for text in tried if text and check.fault(text) is None), "")
        return Paragraph(kept, "" if kept else fault.problem)

    async def write(self, check: ParagraphCheck) -> Paragraph:
        """Return the paragraph alone, as `recursive` does. Raises CompletionError and SummaryRefusedError."""
        answer = await self._calls.ask(self._prompts.write(self._sections(), max_output_tokens=self._max_output_tokens))
        draft = self._parsed(answer)
        if answer.finish_reason == "length" and not ends_a_sentence(draft):
            # Its end is missing, and with it the newest turns: it can't be kept as it is.
            paragraph = await self.settle("", _CUT_OFF.problem, check)
        else:
            paragraph = await self.settle(draft, "", check)
        if not paragraph.text:
            raise SummaryRefusedError(paragraph.problem)
        return paragraph

    async def _again(self, attempt: str, fault: Fault) -> str:
        """Return the model's second attempt; empty if there is no time for one, or it was cut off."""
        answer = await self._calls.ask_in_time(
            self._prompts.write(
                self._sections(), max_output_tokens=self._max_output_tokens, fault=fault, attempt=attempt
            )
        )
        return "" if answer is None or answer.finish_reason == "length" else self._parsed(answer)

    def _parsed(self, answer: CompletionAnswer) -> str:
        return parse_paragraph(answer, self._turns, labels=self._prompts.labels)


def _that_fits(text: str) -> str:
    return text if len(text) <= MAX_SUMMARY_CHARS else whole_sentences(text, MAX_SUMMARY_CHARS)


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
