"""Splits text into sentences and words, and cuts it at their ends. Holds for any script; everything is linear.

Scripts without spaces have no words here but overlapping pairs of characters, which need no dictionary and find a word
wherever it stands.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import category, name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Signs that belong to the letter before them and are no letters themselves: accents, points of Hebrew and Arabic,
# vowels of Devanagari to Lao, of Burmese and Khmer. Without those, a word of Hindi would be single letters.
_SIGNS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0eff\u1000-\u109f\u1780-\u17ff\u3099\u309a"
_WORD = re.compile(rf"[^\W_]+(?:[{_SIGNS}]+[^\W_]*|['’][^\W_]+)*")
# Han, kana, Hangul, Thai, Lao, Khmer and Burmese, which have no spaces between words or have long endings.
UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
# A word with a capital that begins no clause. Scripts without capitals have none.
_INNER_WORD = re.compile(r"(?<=[^\W_]\s)[^\W\d_a-z][\w'’-]+|(?<=, )[^\W\d_a-z][\w'’-]+")
# A stop with the quotes and brackets it closes, before white space; ideographic stops need none. Looked for only where
# a row of stops begins: a long row would otherwise be tried from each of its characters.
_STOP = re.compile(r"""(?<![.!?…؟۔।॥])[.!?…؟۔।॥]+["”’')\]]*(?=\s|$)|[。！？]+["”’」』）)\]]*""")
# The stop of the scripts that have one of their own.
_STOP_OF = ((re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"), "。"), (re.compile("[\u0900-\u097f]"), "।"))
_CLAUSE_END = re.compile(r"[,;.،؛।—](?=\s)|[、，；。]")
_ENDS_A_SENTENCE = re.compile(r"""[.!?…؟۔।॥。！？]["”’」』）')\]]*$""")
QUESTION_MARKS = ("?", "？", "؟")
# A full stop after these, an initial or a day before its month ('3. Mai') ends no sentence.
_ABBREVIATIONS = frozenset(
    {"mr.", "mrs.", "ms.", "dr.", "prof.", "vs.", "e.g.", "i.e.", "a.m.", "p.m.", "jr.", "sr.", "approx."}
    | {"z.b.", "bzw.", "ca.", "hr.", "fr.", "nr.", "str.", "u.a.", "d.h."}
)
_LONGEST_ABBREVIATION = 8
_DAY_DIGITS = 2
_MONTH = re.compile(r" (?i:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez)")
# Marks of lists, headings, emphasis and code, which a plain paragraph has none of.
_MARKS = re.compile(r"[*#`~|<>]+|^\s*[-•–]\s+|(?<=\s)_+|(?<!_)_+(?=\s)")


def plain(text: str) -> str:
    """Return the text on one line, without list, heading, emphasis or code marks and control characters."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else "" if category(char) == "Cf" else " " for char in text)
    joined = " ".join(_MARKS.sub(" ", text).split())
    return text if joined == text else joined  # what is kept of a text that needs no change takes no memory of its own


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each on one line. Text without full stops is one sentence."""
    text = plain(text)
    return [each for begin, end in pairwise((0, *_ends(text), len(text))) if (each := text[begin:end].strip())]


def clauses(text: str) -> list[str]:
    """Return the clauses of a text, as its stops and commas part them."""
    return [clause for sentence in sentences(text) for clause in _CLAUSE_END.split(sentence) if clause.strip()]


def _ends(text: str) -> Iterator[int]:
    begin = 0
    for stop in _STOP.finditer(text):
        if stop.end() == len(text) or not _is_abbreviation(text, begin, stop.end()):
            begin = stop.end()
            yield begin


def _is_abbreviation(text: str, begin: int, end: int) -> bool:
    last = text[max(begin, end - _LONGEST_ABBREVIATION) : end].rpartition(" ")[2].lstrip("(\"'“‘„")
    word = last[:-1]
    if not last.endswith(".") or not word:
        return False
    if len(word) == 1 and word.isupper():
        return True
    if word.isdigit() and len(word) <= _DAY_DIGITS:
        return _MONTH.match(text, end) is not None
    return last.casefold() in _ABBREVIATIONS


def ends_a_sentence(text: str) -> bool:
    """Return whether the text stops where a sentence does."""
    return _ENDS_A_SENTENCE.search(text[-_LONGEST_ABBREVIATION:]) is not None


def as_sentence(text: str, max_chars: int) -> str:
    """Return the text as one sentence of at most `max_chars`: cut where a clause or word ends, closed by a stop."""
    text = _closed(plain(text))
    if len(text) <= max_chars:
        return text
    cut = text[: max_chars - 1]
    clause = max((found.start() for found in _CLAUSE_END.finditer(cut)), default=0)
    return _closed(cut[:clause] if clause >= max_chars // 2 else whole_words(text, max_chars - 1))


def _closed(text: str) -> str:
    text = text.rstrip(" ,;:-–—、，；：،؛")
    return (
        text
        if not text or ends_a_sentence(text)
        else text + next((stop for of, stop in _STOP_OF if of.match(text[-1])), ".")
    )


def whole_sentences(text: str, max_chars: int) -> str:
    """Return as many whole sentences from the start of the text as fit; the empty string when none does."""
    text = plain(text)
    return text[: max((end for end in _ends(text) if end <= max_chars), default=0)]


def whole_words(text: str, max_chars: int) -> str:
    """Return as many whole words from the start of the text as fit. A word that fills half of the room is cut, as in
    scripts without spaces.
    """
    if len(text) <= max_chars:
        return text
    cut = text[: max(0, max_chars)]
    end = len(cut) if text[len(cut)].isspace() else max(cut.rfind(" "), cut.rfind("\n"))
    return cut[: end if 2 * end >= max_chars else len(cut)].rstrip()


def cut_at_word(text: str, max_chars: int, *, mark: str = "…") -> str:
    """Return a text, or as many whole words of its beginning as fit into `max_chars`, and `mark` for the rest."""
    return text if len(text) <= max_chars else f"{whole_words(text, max_chars).rstrip(',;: ')} {mark}"


def fair_share(lengths: Iterable[int], room: int) -> int:
    """Return how long each of some texts may be, so that all fit into `room`: short ones stay whole, and the long ones
    share the rest equally.
    """
    ordered = sorted(lengths)
    for done, length in enumerate(ordered):
        share = max(0, room) // (len(ordered) - done)
        if length > share:
            return share
        room -= length
    return max(ordered, default=0)


def is_question(text: str) -> bool:
    """Return whether a text ends as a question. Recognisers write the mark."""
    return text.rstrip().endswith(QUESTION_MARKS)


def words(text: str) -> list[str]:
    """Return the words and figures of a text in lower case, with straight apostrophes; of a script without spaces the
    pairs of characters.
    """
    found = [match.group().casefold().replace("’", "'") for match in _WORD.finditer(text)]
    return found if UNSPACED.search(text) is None else [piece for word in found for piece in pieces(word)]


def pieces(word: str) -> Iterator[str]:
    """Yield a word; each run of a script without spaces in it as overlapping pairs, one character alone as itself."""
    for part in filter(None, UNSPACED.split(word)):
        if UNSPACED.match(part):
            yield from (part[at : at + 2] for at in range(max(1, len(part) - 1)))
        else:
            yield part


def count_words(text: str) -> int:
    """Return how many words a text has. Two characters of a script without spaces are about a word."""
    runs = [len(run) for run in UNSPACED.findall(text)]
    return len(words(text)) if not runs else len(_WORD.findall(UNSPACED.sub(" ", text))) + sum(runs) // 2


def scripts_in(text: str) -> Counter[str]:
    """Return how many letters of each script a text has, by the first word of the letters' names in Unicode."""
    return Counter(script_of(char) for char in text if char.isalpha())


def script_of(char: str) -> str:
    """Return the script of a letter: LATIN, HIRAGANA, CJK."""
    return name(char, "").partition(" ")[0]


def names_in(text: str) -> list[str]:
    """Return the words with a capital that begin no clause."""
    return [word for word in _INNER_WORD.findall(text) if word[0].isupper()]
