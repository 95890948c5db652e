"""Whether a text quotes another one, by a run of the same words, or names a person.

The bot's answers often quote people, so forgetting a person must also find the quotations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from compaction.language.terms import UNSPACED, plain_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

# So many words in a row are a quotation; shorter runs are common ('I would like to').
RUN_WORDS = 4
# In writing without spaces two characters are about a word.
_WORD_WEIGHT = 2
_RUN_WEIGHT = RUN_WORDS * _WORD_WEIGHT

Run: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of words, each long enough to be a quotation. `lengths`: the lengths that occur."""

    runs: frozenset[Run] = frozenset()
    lengths: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", frozenset(map(len, self.runs)))


NO_RUNS = Runs()


def runs_of(texts: Iterable[str]) -> Runs:
    """Return every run of words that would be a quotation of one of these texts. A shorter text is one run."""
    found: set[tuple[str, ...]] = set()
    for text in texts:
        said = _pieces(text)
        # A single word is nobody's.
        if _weight(said) > _WORD_WEIGHT:
            found.update(_runs(said))
    return Runs(frozenset(found))


def quoted_in(text: str, runs: Runs) -> frozenset[Run]:
    """Return those of these runs that a text has."""
    told = _pieces(text)
    return frozenset(
        run
        for length in runs.lengths
        for at in range(len(told) - length + 1)
        if (run := told[at : at + length]) in runs.runs
    )


def repeats(text: str, runs: Runs) -> bool:
    """Return whether a text has any of these runs."""
    return bool(quoted_in(text, runs))


def names_any(text: str, names: Collection[str]) -> bool:
    """Return whether a text has one of these names, each word of it in its order."""
    told = _pieces(text)
    # A name of one character is in half of all words.
    wanted = {name for name in map(_pieces, names) if _weight(name) >= _WORD_WEIGHT}
    return any(told[at : at + len(name)] == name for name in wanted for at in range(len(told) - len(name) + 1))


def _pieces(text: str) -> tuple[str, ...]:
    """Return the words of a text, and one by one the characters of what is written without spaces."""
    found: list[str] = []
    for word in plain_words(text):
        # 'Ada's sister' names Ada.
        bare = word.removesuffix("'s")
        start = 0
        for run in UNSPACED.finditer(bare):
            found += [bare[start : run.start()], *run.group()]
            start = run.end()
        found.append(bare[start:])
    return tuple(piece for piece in found if piece)


def _weight(pieces: tuple[str, ...]) -> int:
    return sum(1 if UNSPACED.match(piece) else _WORD_WEIGHT for piece in pieces)


def _runs(said: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the shortest stretches from each piece on that make a quotation; all of it where there is none."""
    if _weight(said) < _RUN_WEIGHT:
        yield said
    for at in range(len(said)):
        weight = 0
        for end in range(at, len(said)):
            weight += _weight(said[end : end + 1])
            if weight >= _RUN_WEIGHT:
                yield said[at : end + 1]
                break
