"""Judges which labelled facts of a written conversation a text states, and how much of it is small talk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.memory.fact_judge import EMPTY_TALLY, Attribution, FactTally
from benchmarks.memory.statement_judge import StatementJudge
from benchmarks.memory.text_matching import read_sentences

if TYPE_CHECKING:
    from benchmarks.memory.conversation import LabelledFact, RecordedConversation

# A sentence comes from a line if it has this share of the sentence's content words.
_FROM_LINE = 0.6


class LabelJudge:
    """Judges texts about one written conversation."""

    def __init__(self, conversation: RecordedConversation) -> None:
        self._conversation = conversation
        self._turns = {fact.text: fact.turn for fact in conversation.labels}
        self._judge = StatementJudge(conversation.speakers)

    def due(self, cursor: int, total: int) -> tuple[LabelledFact, ...]:
        """Return the facts that hold after the lines before `cursor`, whatever is said of them up to `total`."""
        del total
        return tuple(
            fact
            for fact in self._conversation.labels
            if fact.turn < cursor and not (fact.replaced_by and self._turns[fact.replaced_by] < cursor)
        )

    def states(self, text: str, fact: LabelledFact) -> bool:
        """Return whether `text` states the fact of the right person."""
        return self._judge.verdict(text, fact.text).stated

    def judged(self, text: str, cursor: int, total: int) -> FactTally:
        """Return how `text` states the facts due. A fact is stale if only what it replaced is stated."""
        tally = EMPTY_TALLY
        for fact in self.due(cursor, total):
            verdict = self._judge.verdict(text, fact.text)
            old = [each for each in self._conversation.labels if each.replaced_by == fact.text]
            tally += FactTally(
                facts=1,
                kept=verdict.said,
                corrected=bool(old),
                stale=not verdict.said and any(self.states(text, each) for each in old),
                attributed_right=verdict.person is Attribution.RIGHT,
                attributed_wrong=verdict.person is Attribution.WRONG,
            )
        return tally

    def entities_due(self, cursor: int, total: int) -> list[tuple[str, ...]]:
        """Return the speakers and values of the facts due."""
        facts = " ".join(fact.text for fact in self.due(cursor, total))
        return [(each,) for each in self._judge.values_of(facts)]

    def chatter_chars(self, text: str, cursor: int) -> int:
        """Return how many characters of `text` come from chatter: from such lines alone, and state no fact."""
        return sum(len(sentence) for sentence in read_sentences(text) if self._is_chatter(sentence, cursor))

    def _is_chatter(self, sentence: str, cursor: int) -> bool:
        if any(self.states(sentence, fact) for fact in self._conversation.labels):
            return False
        shares = [
            (self._judge.share(sentence, f"{line.speaker}: {line.text}"), number not in self._conversation.chatter)
            for number, line in enumerate(self._conversation.lines[:cursor])
        ]
        # Of lines that fit equally well, one worth keeping counts.
        share, worth = max(shares, default=(0.0, True))
        return share >= _FROM_LINE and not worth
