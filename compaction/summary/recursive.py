"""The recursive strategy: a text model rewrites the summary so far and a batch as one paragraph, as spec 1 describes.

A paragraph is kept short in three steps: a token limit below the budget, then one more call that condenses the
paragraph, then a cut after the last sentence that fits. If the paragraph contains names or numbers without a source,
one more call tells the model so. Sentences that still contain some are left out. A paragraph that loses most of its
text in this way is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.errors import SummaryRefusedError
from compaction.language.wording import as_sentence, sentences, whole_sentences, words
from compaction.summary.answer import parse_paragraph
from compaction.summary.extractive import extract_facts
from compaction.summary.fold_prompts import REQUESTED_CHARS
from compaction.summary.grounding import ground_of, turn_ground, ungrounded
from compaction.summary.port import MAX_SUMMARY_CHARS, Fold

if TYPE_CHECKING:
    from compaction.ports import Completion
    from compaction.summary.fold_prompts import RecursivePrompts
    from compaction.summary.grounding import Ground
    from compaction.summary.port import FoldRequest

# At least this share of a paragraph's characters must remain after ungrounded sentences are left out.
_LEAST_GROUNDED = 0.5
_TOO_LONG = f"The last attempt was too long. Say the same in at most {REQUESTED_CHARS * 3 // 4} characters."
_NOT_A_TRANSCRIPT = (
    "The last attempt repeated the turns. Say in other words what they come to, and leave out what doesn't matter."
)
# A paragraph is a transcript if at least this share of it is copied word for word, from at least this many turn parts.
_COPIED_SHARE = 0.7
_LEAST_COPIED = 5
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class _Draft:
    """A paragraph as the model wrote it. `cut`: whether the token limit cut off its end."""

    text: str
    cut: bool


class RecursiveFold:
    """Makes one paragraph with one or more model calls. Each instance is used for one fold."""

    def __init__(
        self, completion: Completion, prompts: RecursivePrompts, request: FoldRequest, *, max_output_tokens: int
    ) -> None:
        self._completion = completion
        self._prompts = prompts
        self._request = request
        self._max_output_tokens = max_output_tokens
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None

    async def fold(self) -> Fold:
        """Return the paragraph. Raises CompletionError and SummaryRefusedError."""
        request = self._request
        ground = _ground(request)
        text = await self._shorten(await self._draft(request))
        wrong = self._wrong(text, ground)
        if wrong:
            text = await self._corrected(text, wrong, ground)
        if is_transcript(text, request):
            raise SummaryRefusedError("The model copied its input.")
        kept = " ".join(each for each in sentences(text) if not ungrounded(each, ground))
        if len(kept) < _LEAST_GROUNDED * len(text):
            raise SummaryRefusedError("Most of the model's paragraph has no source in what was said.")
        paragraph = whole_sentences(kept, MAX_SUMMARY_CHARS) or as_sentence(kept, MAX_SUMMARY_CHARS)
        self._refuse_copy(paragraph)
        return Fold(
            gist=paragraph,
            facts=(),
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
            form=self._prompts.version,
        )

    async def _shorten(self, draft: _Draft) -> str:
        """Shorten a paragraph with at most one more call. The result may still be too long; the caller cuts it."""
        if draft.cut:
            # The paragraph's end is missing, and with it the newest turns. Ask again, with the text so far as the
            # previous summary.
            so_far = whole_sentences(draft.text, MAX_SUMMARY_CHARS) or self._request.previous
            draft = await self._draft(replace(self._request, previous=so_far), correction=_TOO_LONG)
            if draft.cut:
                raise SummaryRefusedError("The model's answer was cut off at its length limit, twice.")
            return draft.text
        if len(draft.text) <= MAX_SUMMARY_CHARS:
            return draft.text
        try:
            shorter = await self._draft(
                replace(self._request, previous=draft.text, turns=(), notes=()), correction=_TOO_LONG
            )
        except SummaryRefusedError:
            return draft.text
        return draft.text if shorter.cut or len(shorter.text) >= len(draft.text) else shorter.text

    def _wrong(self, text: str, ground: Ground) -> str:
        """Return the correction to send to the model, or an empty text if the paragraph is good."""
        if is_transcript(text, self._request):
            return _NOT_A_TRANSCRIPT
        invented = sorted({word for each in sentences(text) for word in ungrounded(each, ground)})
        if not invented:
            return ""
        return f"The last attempt had names or numbers that nobody said: {', '.join(invented)}. Leave them out."

    async def _corrected(self, text: str, wrong: str, ground: Ground) -> str:
        """Ask once more with the correction, and return the better of the two paragraphs."""
        try:
            again = await self._draft(self._request, correction=wrong)
        except SummaryRefusedError:
            return text
        if again.cut or len(again.text) > MAX_SUMMARY_CHARS:
            return text

        def worth(each: str) -> tuple[bool, float]:
            return not is_transcript(each, self._request), _grounded_share(each, ground)

        return max(again.text, text, key=worth)

    async def _draft(self, request: FoldRequest, *, correction: str = "") -> _Draft:
        asked = self._prompts.write(request, max_output_tokens=self._max_output_tokens, correction=correction)
        answer = await self._completion.complete(asked)
        self._prompt_tokens = _sum(self._prompt_tokens, answer.prompt_tokens)
        self._completion_tokens = _sum(self._completion_tokens, answer.completion_tokens)
        return _Draft(
            parse_paragraph(answer, request.turns, labels=self._prompts.labels), cut=answer.finish_reason == "length"
        )

    def _refuse_copy(self, paragraph: str) -> None:
        """Refuse a word-for-word copy of the previous summary if the batch contains new facts."""
        request = self._request
        same = _words(paragraph) == _words(request.previous or "")
        if same and extract_facts(request.turns, request.notes, start=request.start):
            raise SummaryRefusedError("The model copied the previous summary.")


def _ground(request: FoldRequest) -> Ground:
    said = [request.previous or "", *request.roster]
    said += [text for note in request.notes for text in (note.who, note.what)]
    return ground_of(said) | turn_ground(request.turns)


def is_transcript(text: str, request: FoldRequest) -> bool:
    """Return whether a paragraph consists mostly of the turns themselves, copied one after the other, as small models
    do.

    Text that was already in the previous summary does not count as copied.
    """
    told, known = " ".join(words(text)), " ".join(words(request.previous or ""))
    said = [words(part.text) for turn in request.turns for part in turn.parts]
    spoken = [each for each in said if len(each) > 2]
    copied = [each for each in spoken if " ".join(each) in told and " ".join(each) not in known]
    if len(copied) < _LEAST_COPIED:
        return False
    share = sum(map(len, copied)) / len(words(text))
    # A paragraph that was cut off contains only a few of the turns but may still consist entirely of copied text.
    return share >= _COPIED_SHARE or (len(copied) >= _COPIED_SHARE * len(spoken) and share >= _COPIED_SHARE / 2)


def _grounded_share(text: str, ground: Ground) -> float:
    kept = sum(len(each) for each in sentences(text) if not ungrounded(each, ground))
    return kept / max(1, len(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
