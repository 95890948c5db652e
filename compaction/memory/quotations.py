"""Tells whether a text quotes another one (contains several of its words in a row), or names a person.

The bot's answers often quote people, so when a person is forgotten, these quotations must be found too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from compaction.language.terms import UNSPACED, plain_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

# At least this many words in a row are a quotation. Shorter sequences are often common phrases ('I would like to').
RUN_WORDS = 4
# The weight of a word. A character of a script without spaces has weight 1, because two of them are about one word.
_WORD_WEIGHT = 2
_RUN_WEIGHT = RUN_WORDS * _WORD_WEIGHT

Run: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs (sequences of words) that are long enough to be a quotation. `lengths`: all lengths that occur."""

    runs: frozenset[Run] = frozenset()
    lengths: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", frozenset(map(len, self.runs)))


NO_RUNS = Runs()


def runs_of(texts: Iterable[str]) -> Runs:
    """Return every run of words that would be a quotation of one of these texts. A text that is too short
    is one run.
    """
    found: set[tuple[str, ...]] = set()
    for text in texts:
        said = _pieces(text)
        # A single word does not identify its speaker.
        if _weight(said) > _WORD_WEIGHT:
            found.update(_runs(said))
    return Runs(frozenset(found))


def quoted_in(text: str, runs: Runs) -> frozenset[Run]:
    """Return those of the runs that a text contains."""
    told = _pieces(text)
    return frozenset(
        run
        for length in runs.lengths
        for at in range(len(told) - length + 1)
        if (run := told[at : at + length]) in runs.runs
    )


def repeats(text: str, runs: Runs) -> bool:
    """Return whether a text contains any of these runs."""
    return bool(quoted_in(text, runs))


def names_any(text: str, names: Collection[str]) -> bool:
    """Return whether a text contains one of these names, with all words of the name in order."""
    told = _pieces(text)
    # Names of a single character are ignored, because half of all words contain them.
    wanted = {name for name in map(_pieces, names) if _weight(name) >= _WORD_WEIGHT}
    return any(told[at : at + len(name)] == name for name in wanted for at in range(len(told) - len(name) + 1))


def _pieces(text: str) -> tuple[str, ...]:
    """Return the words of a text. In scripts without spaces, each character is a piece of its own."""
    found: list[str] = []
    for word in plain_words(text):
        # 'Ada's sister' counts as a mention of Ada.
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
    """Yield, for each start position, the shortest run that makes a quotation. A text that is too short is yielded
    whole.
    """
    if _weight(said) < _RUN_WEIGHT:
        yield said
    for at in range(len(said)):
        weight = 0
        for end in range(at, len(said)):
            weight += _weight(said[end : end + 1])
            if weight >= _RUN_WEIGHT:
                yield said[at : end + 1]
                break
