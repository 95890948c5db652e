"""Compares what a system remembers with summaries and questions that people wrote about the same conversation."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from benchmarks.memory.judges.text_matching import mentions, read_sentences
from benchmarks.memory.search.fact_retrieval import fit_summary_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.memory.conversations.conversation import RecordedConversation, ReferenceQuestion
    from benchmarks.memory.search.retrieval import Retriever

_QUOTES = 10
# How many names count as the conversation's frequent ones, and what a sentence costs besides its characters.
_FREQUENT_NAMES = 40
_SENTENCE_COST = 8
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
    `evidence_found`: questions with a turn of their evidence among the first ten results. `evidence_share`: the sum of
    the shares of each question's evidence that are among these.
    """

    entities: int = 0
    entities_due: int = 0
    thirds: tuple[tuple[int, int], ...] = ((0, 0),) * 3
    questions: int = 0
    answer_words: float = 0.0
    answer_words_found: float = 0.0
    evidence_found: int = 0
    evidence_share: float = 0.0

    def __add__(self, other: ReferenceRecall) -> ReferenceRecall:
        return ReferenceRecall(
            self.entities + other.entities,
            self.entities_due + other.entities_due,
            tuple((a + c, b + d) for (a, b), (c, d) in zip(self.thirds, other.thirds, strict=True)),
            self.questions + other.questions,
            self.answer_words + other.answer_words,
            self.answer_words_found + other.answer_words_found,
            self.evidence_found + other.evidence_found,
            self.evidence_share + other.evidence_share,
        )


async def measure_reference_recall(
    conversation: RecordedConversation, text: str, cursor: int, retriever: Retriever | None
) -> ReferenceRecall:
    """Compare `text` with what people wrote about the turns before `cursor`.

    `retriever` must contain at least those turns. If it is None, no search is measured.
    """
    entities = _entities_due(conversation, cursor)
    thirds = [_entities_due(conversation, cursor, third) for third in range(3)]
    recall = ReferenceRecall(
        entities=sum(mentions(text, entity) for entity in entities),
        entities_due=len(entities),
        thirds=tuple((sum(mentions(text, entity) for entity in due), len(due)) for due in thirds),
    )
    for question in conversation.questions:
        if question.evidence and max(question.evidence) < cursor:
            recall += await _answered(question, text, retriever)
    return recall


async def _answered(question: ReferenceQuestion, text: str, retriever: Retriever | None) -> ReferenceRecall:
    quotes = [] if retriever is None else await retriever.search(question.text, limit=_QUOTES)
    shown = "\n".join(fit_summary_size([quote.text for quote in quotes]))
    evidence = {quote.seq for quote in quotes}.intersection(question.evidence)
    return ReferenceRecall(
        questions=1,
        answer_words=_share_told(question.answer, text),
        answer_words_found=_share_told(question.answer, shown),
        evidence_found=bool(evidence),
        evidence_share=len(evidence) / len(set(question.evidence)),
    )


def _share_told(answer: str, text: str) -> float:
    """Return the share of the answer's words that are in `text`."""
    wanted = [word for word in _TOKEN.findall(answer.casefold()) if word not in _EMPTY_WORDS]
    if not wanted:
        return 0.0
    told = set(_TOKEN.findall(text.casefold()))
    return sum(word in told for word in wanted) / len(wanted)


def baseline_texts(conversation: RecordedConversation, cursor: int) -> dict[str, str]:
    """Return texts of at most 1,200 characters that anybody could make of the turns before `cursor`, by name."""
    said = [sentence for line in conversation.lines[:cursor] for sentence in read_sentences(line.text)]
    mixed = list(said)
    Random(conversation.name).shuffle(mixed)  # noqa: S311 - it makes no keys
    names = Counter(name.casefold() for sentence in said for name in _entities(sentence))
    frequent = {name for name, _ in names.most_common(_FREQUENT_NAMES)}

    def density(sentence: str) -> float:
        found = {name.casefold() for name in _entities(sentence)} & frequent
        return len(found) / (len(sentence) + _SENTENCE_COST)

    return {
        "random sentences": " ".join(fit_summary_size(mixed)),
        "the last sentences": " ".join(fit_summary_size(said[::-1])),
        "sentences dense in frequent names": " ".join(fit_summary_size(sorted(dict.fromkeys(said), key=density)[::-1])),
    }


def _entities_due(conversation: RecordedConversation, cursor: int, third: int | None = None) -> Sequence[str]:
    """Return the names and numbers of people's summaries of turns before `cursor`, as far as these turns contain them.

    Of a summary of the whole conversation, only what had been said by then counts. `third`: only of summaries whose
    middle is in this third of these turns; those of more than a third are in none.
    """
    said = " ".join(f"{line.speaker}: {line.text}" for line in conversation.lines[:cursor])
    due = [each for each in conversation.summaries if each.start < cursor]
    if third is not None:
        due = [
            each
            for each in due
            if each.end - each.start <= cursor / 3 and (each.start + each.end) * 3 // (2 * cursor) == third
        ]
    entities = {entity for summary in due for entity in summary.entities or _entities(summary.text)}
    return sorted(entity for entity in entities if mentions(said, entity))


def _entities(text: str) -> Iterable[str]:
    """Yield names (capitals inside a sentence) and numbers."""
    for sentence in read_sentences(text):
        yield from _NUMBER.findall(sentence)
        for match in _CAPITAL.finditer(sentence):
            if match.start() > 0:
                yield match.group().removesuffix("'s").removesuffix("’s")
