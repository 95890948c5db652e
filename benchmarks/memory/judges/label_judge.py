"""Judges which labelled facts of a written conversation a text states, and how much of it is small talk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.memory.judges.fact_judge import EMPTY_TALLY, Attribution, FactTally
from benchmarks.memory.judges.readings import UnreadText, kept_readings, reading_key
from benchmarks.memory.judges.statement_judge import StatementJudge, StatementVerdict
from benchmarks.memory.judges.text_matching import read_sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.memory.conversations.conversation import LabelledFact, RecordedConversation

# A sentence comes from a line if it has this share of the sentence's content words.
_FROM_LINE = 0.6


class LabelJudge:
    """Judges texts about one written conversation: by what a reader found in them, or else by words."""

    def __init__(
        self, conversation: RecordedConversation, readings: Mapping[str, frozenset[int]] | None = None
    ) -> None:
        self._conversation = conversation
        self._readings = kept_readings() if readings is None else readings
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

    def unread(self, text: str, cursor: int) -> UnreadText | None:
        """Return the text with the facts before `cursor`, for a reader; None if it was read."""
        key = reading_key(self._conversation.name, text)
        facts = tuple((fact.turn, fact.text) for fact in self._conversation.labels if fact.turn < cursor)
        return None if key in self._readings or not text else UnreadText(key, text, facts)

    def states(self, text: str, fact: LabelledFact) -> bool:
        """Return whether `text` states the fact of the right person."""
        return self._verdict(text, fact).stated

    def _verdict(self, text: str, fact: LabelledFact) -> StatementVerdict:
        read = self._readings.get(reading_key(self._conversation.name, text))
        if read is None:
            return self._judge.verdict(text, fact.text)
        said = fact.turn in read
        return StatementVerdict(said, Attribution.RIGHT if said else None)

    def judged(self, text: str, cursor: int, total: int) -> FactTally:
        """Return how `text` states the facts due. A fact is stale if only what it replaced is stated."""
        tally = EMPTY_TALLY
        for fact in self.due(cursor, total):
            verdict = self._verdict(text, fact)
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
