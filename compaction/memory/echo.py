"""Whether the bot repeated what somebody said: by a run of the same words, or by naming the person.

An answer often quotes who asked or who was asked about, so whoever wants to be forgotten is to be forgotten there too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.wording import words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# So many words in a row are a quotation; fewer are in everybody's mouth ('I would like to').
RUN_WORDS = 4

Runs = frozenset[tuple[str, ...]]


def runs_of(texts: Iterable[str]) -> Runs:
    """Return every run of words that makes a quotation of one of these texts. A shorter text is one run itself."""
    found: set[tuple[str, ...]] = set()
    for text in texts:
        said = tuple(words(text))
        # A single word is nobody's.
        if len(said) > 1:
            found.update(said[at : at + RUN_WORDS] for at in range(max(1, len(said) - RUN_WORDS + 1)))
    return frozenset(found)


def repeats(text: str, runs: Runs) -> bool:
    """Return whether a text has any of these runs."""
    told = tuple(words(text))
    lengths = {len(run) for run in runs}
    return any(told[at : at + length] in runs for length in lengths for at in range(len(told) - length + 1))


def names_any(text: str, names: Collection[str]) -> bool:
    """Return whether a text has one of these names, each word of it in its order."""
    # 'Ada's sister' names Ada.
    told = tuple(word.removesuffix("'s") for word in words(text))
    wanted = {tuple(words(name)) for name in names} - {()}
    return any(told[at : at + len(name)] == name for name in wanted for at in range(len(told) - len(name) + 1))
