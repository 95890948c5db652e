"""Tells whether a text by the bot or a model says again what was forgotten. Pure.

Such a text repeats several forgotten words in a row, uses the person's name, or has the rare words of one forgotten
turn in another order. Words that other people said themselves are not rare. A whole short turn ('Thank you') is no
quotation: if its words are rare, they are found without it, and otherwise everybody says them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compaction.language.terms import terms
from compaction.memory.quotations import NO_RUNS, Runs, is_quotation, is_whole_of, names_any, quoted_in, runs_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# A text says a turn again if it has this many of its terms, or half of them, and nobody else has said them.
_TERMS = 2


@dataclass(frozen=True, slots=True)
class ForgottenWords:
    """What a person said. `names`: the person's names. `turns`: the terms of each forgotten turn. `name_words`: single
    words of longer names that mean nobody else.
    """

    runs: Runs = NO_RUNS
    names: frozenset[str] = frozenset()
    turns: tuple[frozenset[str], ...] = ()
    name_words: frozenset[str] = frozenset()
    _places: dict[str, list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for place, turn in enumerate(self.turns):
            for term in turn:
                self._places.setdefault(term, []).append(place)

    def together_with(self, other: ForgottenWords) -> ForgottenWords:
        """Return these words and others."""
        return ForgottenWords(
            Runs(self.runs.runs | other.runs.runs),
            self.names | other.names,
            tuple(dict.fromkeys((*self.turns, *other.turns))),
            self.name_words | other.name_words,
        )

    def quoted_or_named_in(self, text: str) -> bool:
        """Return whether a text has several of the words in a row, or one of the names."""
        return any(map(is_quotation, quoted_in(text, self.runs))) or names_any(text, self.names)

    def is_all_of(self, text: str) -> bool:
        """Return whether a text is the whole of a short turn."""
        return is_whole_of(text, self.runs)

    def has_rare_word(self, text: str, explained: Collection[str]) -> bool:
        """Return whether a text has a word of the person that others have not said. `explained`: their terms."""
        return any(term in self._places and term not in explained for term in terms(text))

    def restated_in(self, text: str, explained: Collection[str] = ()) -> bool:
        """Return whether a text has the rare words of one turn. `explained`: the terms that others have said."""
        counts = Counter(
            place
            for term in set(terms(text))
            if term not in explained and term in self._places
            for place in self._places[term]
        )
        return any(count >= _TERMS or 2 * count >= len(self.turns[place]) for place, count in counts.items())


def forgotten_words(texts: Iterable[str], names: Iterable[str] = ()) -> ForgottenWords:
    """Return what was forgotten: the texts of a person's turns, and the person's names."""
    said = tuple(texts)
    return ForgottenWords(runs_of(said), frozenset(names), tuple(frozenset(terms(text)) for text in said))


NOTHING_FORGOTTEN = ForgottenWords()
