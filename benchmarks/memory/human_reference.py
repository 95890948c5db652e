"""Compares what a system remembers with summaries and questions that people wrote about the same conversation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.memory.fact_retrieval import fit_summary_size
from benchmarks.memory.text_matching import mentions, read_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.memory.conversation import RecordedConversation, ReferenceQuestion
    from benchmarks.memory.retrieval import Retriever

_QUOTES = 10
_TOKEN = re.compile(r"\w+")
_CAPITAL = re.compile(r"(?<!\w)[A-ZÀ-Þ][\w'’-]+(?:\s+[A-ZÀ-Þ][\w'’-]+)*")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# Frequent words in answers that carry no information.
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+", "a an the of in on at to and or for with by from is are was were be her his their its it they she he"
    )
)


@dataclass(frozen=True, slots=True)
class ReferenceRecall:
    """Counts over one or more conversations.

    `entities_due`: names and numbers in people's summaries; `entities`: how many of them are in the injected text.
    `questions`: questions whose evidence has left the window. `answer_words`: the share of the answer's words in the
    injected text, summed over the questions. `answer_words_found`: the same for 1,200 characters of search results.
    `evidence_found`: questions with a turn of their evidence among the first ten results.
    """

    entities: int = 0
    entities_due: int = 0
    questions: int = 0
    answer_words: float = 0.0
    answer_words_found: float = 0.0
    evidence_found: int = 0

    def __add__(self, other: ReferenceRecall) -> ReferenceRecall:
        return ReferenceRecall(
            self.entities + other.entities,
            self.entities_due + other.entities_due,
            self.questions + other.questions,
            self.answer_words + other.answer_words,
            self.answer_words_found + other.answer_words_found,
            self.evidence_found + other.evidence_found,
        )


async def measure_reference_recall(
    conversation: RecordedConversation, text: str, cursor: int, retriever: Retriever | None
) -> ReferenceRecall:
    """Compare `text` with what people wrote about the turns before `cursor`.

    `retriever` must contain at least those turns. If it is None, no search is measured.
    """
    entities = _entities_due(conversation, cursor)
    recall = ReferenceRecall(entities=sum(mentions(text, entity) for entity in entities), entities_due=len(entities))
    for question in conversation.questions:
        if question.evidence and max(question.evidence) < cursor:
            recall += await _answered(question, text, retriever)
    return recall


async def _answered(question: ReferenceQuestion, text: str, retriever: Retriever | None) -> ReferenceRecall:
    quotes = [] if retriever is None else await retriever.search(question.text, limit=_QUOTES)
    shown = "\n".join(fit_summary_size([quote.text for quote in quotes]))
    return ReferenceRecall(
        questions=1,
        answer_words=_share_told(question.answer, text),
        answer_words_found=_share_told(question.answer, shown),
        evidence_found=any(quote.seq in question.evidence for quote in quotes),
    )


def _share_told(answer: str, text: str) -> float:
    """Return the share of the answer's words that are in `text`."""
    wanted = [word for word in _TOKEN.findall(answer.casefold()) if word not in _EMPTY_WORDS]
    if not wanted:
        return 0.0
    told = set(_TOKEN.findall(text.casefold()))
    return sum(word in told for word in wanted) / len(wanted)


def _entities_due(conversation: RecordedConversation, cursor: int) -> Sequence[str]:
    """Return the names and numbers that people's summaries mention and the turns before `cursor` contain.

    A summary of the whole conversation counts only with the names and numbers that had been said by then.
    """
    said = " ".join(f"{line.speaker}: {line.text}" for line in conversation.lines[:cursor])
    due = [each for each in conversation.summaries if each.start < cursor]
    entities = {entity for summary in due for entity in _entities(summary.text)}
    return sorted(entity for entity in entities if mentions(said, entity))


def _entities(text: str) -> Iterable[str]:
    """Yield names (capitals inside a sentence) and numbers."""
    for sentence in read_sentences(text):
        yield from _NUMBER.findall(sentence)
        for match in _CAPITAL.finditer(sentence):
            if match.start() > 0:
                yield match.group().removesuffix("'s").removesuffix("’s")
