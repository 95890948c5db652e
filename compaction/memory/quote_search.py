"""What is searched in memory for a question: its own words, or those of the exchange that it refers to. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.terms import plain_words, query_terms
from compaction.language.text import is_question
from compaction.model import Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# The least relevance for a search with the words of an exchange, which has more and vaguer words than a question, and
# for one with words that ask nothing.
LEAST_CLOSE = 0.4
# A question with so few terms may be about what was said just before, and so may whatever is no question.
MOST_FOLLOW_UP_TERMS = 1
# An exchange with the bot is over if so many turns came since.
EXCHANGE_TURNS = 6


@dataclass(frozen=True, slots=True)
class QuoteSearch:
    """A search for quotes: its text, and the least relevance of a hit."""

    text: str
    least: float = 0.0


def searches_for(question: str, exchange: str = "") -> tuple[QuoteSearch, ...]:
    """Return the searches for a question; none if it has no term, and refers to nothing. The first has all terms.

    `exchange`: what was said in the last exchange with the bot. 'Why was he against them?' is searched with it. 'And
    when is the cabin?' may refer to it or not, so it is searched alone, too.
    """
    own, asks = set(query_terms(question)), is_question(question)
    if asks and (len(own) > MOST_FOLLOW_UP_TERMS or not exchange.strip()):
        return (QuoteSearch(question),) if own else ()
    # In one clause, of which a hit must have much.
    text = " ".join(plain_words(f"{exchange} {question}"))
    searches = (QuoteSearch(text, LEAST_CLOSE),) if own or exchange.strip() else ()
    return (*searches, QuoteSearch(question)) if asks and not own <= set(query_terms(exchange)) else searches


def last_exchange(window: Sequence[Turn], asker_ids: Iterable[str]) -> tuple[Turn, ...]:
    """Return the bot's last answer among the newest turns and the turn that it answers: those to the asker if there are
    any. Empty if it said nothing just now. `window`: the turns before the question.
    """
    asking, newest = frozenset(asker_ids), window[-EXCHANGE_TURNS:]
    by_seq = {turn.seq: turn for turn in window}
    exchanges = [
        (by_seq[turn.answers], turn) if turn.answers in by_seq else (turn,)
        for turn in reversed(newest)
        if turn.kind is TurnKind.ASSISTANT
    ]
    own = (each for each in exchanges if any(part.speaker_id in asking for part in each[0].parts))
    return next(own, exchanges[0] if exchanges else ())
