"""Search terms: the words of a text that the index stores and a query searches for. Pure.

Words lose case and accents and become stems of their text's language. Number words become digits, and stop words are
left out. Scripts without spaces give overlapping pairs of characters. A term consists of letters and digits only, so
nothing that people say can be mistaken for search syntax.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from compaction.language.languages import LANGUAGES, Language
from compaction.language.text import UNSPACED, pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


# Longer strings are not words, and further terms of a text say little more about its subject.
MAX_TERM_CHARS = 40
MAX_TERMS = 400
# How many characters of a text are read for its terms. A turn is rarely longer than 1,200 characters.
MAX_CHARS = 8_000

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
# Between the figures of one number, as in 9:40 and twenty-one.
_JOINTS = frozenset({" ", "-", ":", "."})
# Two more words are ignored, because questions begin with them ('Do you remember …', 'Tell me …').
_OPENING = frozenset({"remember", "tell"})


def terms(text: str) -> tuple[str, ...]:
    """Return the terms of a text in order, including repetitions; at most `MAX_TERMS`.

    A text in another language has the stems of the first one, too: a question of few words may not tell its language.
    """
    spoken = list(_words_and_breaks(text[:MAX_CHARS]))
    own = _forms_of(spoken)
    return _found(spoken, (own,) if own is _FORMS[0] else (own, _FORMS[0]))


def query_terms(query: str) -> tuple[str, ...]:
    """Return the terms of a question, in its own language alone: a term that nobody said makes hits less relevant."""
    spoken = list(_words_and_breaks(query[:MAX_CHARS]))
    return _found(spoken, (_forms_of(spoken),))


def name_terms(name: str) -> tuple[str, ...]:
    """Return the terms of a name in every language, because a name tells none."""
    return tuple(dict.fromkeys(term for forms in _FORMS for term in _found(plain_words(name), (forms,))))


def normalized_words(text: str) -> tuple[str, ...]:
    """Return every word of a text in lower case without accents, including stop words. Used to compare names."""
    return tuple(word[:MAX_TERM_CHARS] for word in plain_words(text[:MAX_CHARS]))[:MAX_TERMS]


def plain_words(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case, without accents."""
    return filter(None, _words_and_breaks(text))


def _words_and_breaks(text: str) -> Iterator[str]:
    """Yield the words as `plain_words` does, with an empty one where something other than a joint stands between."""
    bare = text.casefold()
    if not bare.isascii():  # NFC puts characters together again; otherwise Hangul syllables would be single letters.
        bare = normalize("NFC", "".join(char for char in normalize("NFKD", bare) if category(char)[0] != "M"))
    bare, end = _THOUSANDS.sub("", bare), 0
    for match in _WORD.finditer(bare):
        if bare[end : match.start()] not in _JOINTS:
            yield ""
        yield match.group().replace("’", "'")
        end = match.end()


@dataclass(frozen=True, slots=True)
class _Forms:
    """What terms need of a language; the words as `plain_words` yields them. `empty`: left out."""

    vocabulary: frozenset[str]
    empty: frozenset[str]
    numbers: Mapping[str, str]
    stem: Callable[[str], str]

    @classmethod
    def of(cls, language: Language) -> _Forms:
        empty = _plain_set(language.stopwords | language.light) | _OPENING
        numbers = {each: value for word, value in language.numbers.items() for each in plain_words(word)}
        return cls(_plain_set(language.vocabulary), empty, numbers, language.stem)


def _plain_set(listed: Iterable[str]) -> frozenset[str]:
    return frozenset(each for word in listed for each in plain_words(word))


_FORMS = tuple(map(_Forms.of, LANGUAGES))


def _forms_of(spoken: Sequence[str]) -> _Forms:
    """Return those of the language that has most of these words; the first of equal ones."""
    return max(_FORMS, key=lambda each: sum(word in each.vocabulary for word in spoken))


def _found(spoken: Iterable[str], languages: Sequence[_Forms]) -> tuple[str, ...]:
    """Return the terms of these words. The first of the languages is theirs, and the others add their stems."""
    return tuple(islice(_each_term(spoken, languages), MAX_TERMS))


def _each_term(spoken: Iterable[str], languages: Sequence[_Forms]) -> Iterator[str]:
    own = languages[0]
    for is_figure, words in groupby(spoken, lambda word: word.isdecimal() or word in own.numbers):
        run = list(words)
        if not is_figure:
            yield from (term for word in run for term in _terms_of(word, languages))
        # 'One' is empty, but not in 'four four nine one'.
        elif not own.empty.issuperset(run):
            yield _joined(own.numbers.get(word, word) for word in run)


def _joined(figures: Iterable[str]) -> str:
    """Return a run of figures as one term: 'four four nine one' is 4491, 'forty-two' 42, 'three hundred ten' 310."""
    said: list[str] = []
    for each in figures:
        if said and each.strip("0") == "1" and len(each) > 2:
            said[-1] += each[1:]
        elif said and len(said[-1]) > len(each) and said[-1].endswith("0" * len(each)) and each.strip("0"):
            said[-1] = said[-1][: -len(each)] + each
        else:
            said.append(each)
    return "".join(said)[:MAX_TERM_CHARS].lstrip("0") or "0"


def _terms_of(word: str, languages: Sequence[_Forms]) -> Iterator[str]:
    own = languages[0]
    if word in own.empty:
        return
    for piece in word.removesuffix("'s").split("'"):
        if piece in own.empty:
            continue
        for part in pieces(piece):
            yield from (part,) if UNSPACED.match(part) else _plain_term(part, languages)


def _plain_term(word: str, languages: Sequence[_Forms]) -> Iterator[str]:
    # A single letter is a slip or the rest of a contraction, so it is ignored. A single digit is a number.
    if len(word) > 1 or word.isdigit():
        cut = word[:MAX_TERM_CHARS]
        yield from (cut.lstrip("0") or "0",) if cut.isdigit() else dict.fromkeys(each.stem(cut) for each in languages)
