"""Tells whether a text quotes another one (contains several of its words in a row), or names a person.

The bot's answers often quote people, so when a person is forgotten, these quotations must be found too.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from compaction.language.terms import UNSPACED, plain_words, terms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

# At least this many words in a row are a quotation. Shorter sequences are often common phrases ('I would like to').
RUN_WORDS = 4
# The weight of a word. A character of a script without spaces has weight 1, because two of them are about one word.
_WORD_WEIGHT = 2
_RUN_WEIGHT = RUN_WORDS * _WORD_WEIGHT

# The marks on letters of all scripts: accents, vowels. The first one is U+0300, and none is a character of a pattern.
_MARKS = "".join(each for each in map(chr, range(0x300, 0x20000)) if unicodedata.category(each).startswith("M"))
# A word with its capital letters, and with the marks on its letters.
_CASED = re.compile(rf"[^\W_](?:[^\W_]|[{_MARKS}'’])*")
_SENTENCE_END = re.compile(r"[.!?…:\n]")
# After a capital at the beginning of a sentence, these show that the word before is a verb: 'Will it rain?'.
_SUBJECT = re.compile(
    "(?:i|you|he|she|it|we|they|this|that|these|those|there|the|an?|my|your|his|her|our|their|(?:any|every|some)(?:body|one)"
    "|ich|du|er|sie|es|wir|ihr|man|der|die|das|eine?|jemand)$"
)
# After these, a word without a capital is not a name: 'the moon is full'.
_ARTICLE = re.compile(
    "(?:to|the|an?|my|your|his|her|its|our|their|this|that|these|those|no|some|any|every|each"
    "|der|die|das|den|dem|des|(?:[mdsk]?ein|ihr|unser|euer)(?:e|en|em|er)?|jede[rsmn]?)$"
)

# Stop words that begin with a capital wherever they stand, in English or German: never taken for a name.
_CAPITAL_WORDS = frozenset({"i", "sie", "ihr", "ihnen"})
# Stop words that people are called. The others, such as 'You' and 'And', begin sentences without naming anybody.
_NAMES_AND_VERBS = frozenset({"will", "may", "can"})

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


def is_long_enough(run: Run) -> bool:
    """Return whether a run is as long as a quotation, and not the whole of a short text."""
    return _weight(run) >= _RUN_WEIGHT


def is_quotation(run: Run) -> bool:
    """Return whether a run tells by itself whose words it has: it is long enough and not of stop words alone, as 'Is
    there anything else' is, which everybody says.
    """
    return is_long_enough(run) and bool(terms(" ".join(run)))


def is_whole_of(text: str, runs: Runs) -> bool:
    """Return whether a text is one of these runs, and nothing else."""
    return _pieces(text) in runs.runs


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
    """Return whether a text contains one of these names, with all words of the name in order.

    A name that is also a word must be used as a name: 'Will' is in 'Will said so', but not in 'It will rain' or 'Will
    it rain?'. So must one that has several words: 'You Can' is not in 'You can ask her'.
    """
    told = _pieces(text)
    for name in names:
        wanted = _pieces(name)
        # Names of a single character are ignored, because half of all words contain them.
        if _weight(wanted) < _WORD_WEIGHT:
            continue
        found = any(told[at : at + len(wanted)] == wanted for at in range(len(told) - len(wanted) + 1))
        if found and (_has_capitals_of(text, name) if len(wanted) > 1 else _is_used_as_name(text, name, wanted[0])):
            return True
    return False


def words_of_name(name: str) -> frozenset[str]:
    """Return the words of a longer name that may stand for it: 'Ada' and 'Lovelace' of 'Ada Lovelace'.

    Articles and pronouns are left out, and stop words ('of') unless they come first, as in 'Will Smith'.
    """
    found = [match.group() for match in _CASED.finditer(name)]
    return frozenset(
        word
        for at, word in enumerate(found if len(found) > 1 else [])
        if word[0].isalpha()
        and (at == 0 or terms(word))
        and not _ARTICLE.match(word.casefold())
        and not _SUBJECT.match(word.casefold())
    )


def _is_used_as_name(text: str, name: str, folded: str) -> bool:
    """Return whether a text uses a name of one word as a name. `folded`: the name as `_pieces` returns it."""
    told = [*_CASED.finditer(text)]
    is_filler = not terms(name)
    if is_filler and folded in _CAPITAL_WORDS:
        return False
    for number, found in enumerate(told):
        word = found.group()
        if _pieces(word) != (folded,):
            continue
        before = told[number - 1] if number else None
        if name[:1].isupper() or is_filler:
            after = told[number + 1].group().casefold() if number + 1 < len(told) else ""
            begins = before is None or _SENTENCE_END.search(text, before.end(), found.start()) is not None
            is_verb = _SUBJECT.match(after) is not None
            if word[0].isupper() and not (begins and (is_verb or (is_filler and folded not in _NAMES_AND_VERBS))):
                return True
        elif not name.islower() or before is None or not _ARTICLE.match(before.group().casefold()):
            # Some scripts have no capital letters.
            return True
    return False


def _has_capitals_of(text: str, name: str) -> bool:
    """Return whether a text has capitals where a name of several words has them. A name of stop words alone ('you can')
    is none without a capital on each.
    """
    words = [match.group() for match in _CASED.finditer(name)]
    capitals = [word for word in words if word[0].isupper()]
    if not terms(name) and len(capitals) < len(words):
        return False
    told = {_pieces(match.group()) for match in _CASED.finditer(text) if match.group()[0].isupper()}
    return all(_pieces(word) in told for word in capitals)


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
