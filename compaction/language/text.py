"""Splits text into sentences and words, and cuts it at their ends. Holds for any language; everything is linear."""

from __future__ import annotations

import re
from unicodedata import category

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# A stop with the quotes and brackets it closes, before white space; ideographic stops need none. Looked for only where
# a row of stops begins: a long row would otherwise be tried from each of its characters.
_STOP = re.compile(r"""(?<![.!?…؟۔।॥])[.!?…؟۔।॥]+["”’')\]]*(?=\s)|[。！？]+["”’」』）)\]]*""")
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
    found: list[str] = []
    begin = 0
    for stop in _STOP.finditer(text):
        if not _is_abbreviation(text, begin, stop.end()):
            found.append(text[begin : stop.end()].strip())
            begin = stop.end()
    rest = text[begin:].strip()
    return [*found, rest] if rest else found


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
    clause = max(cut.rfind(", "), cut.rfind("; "), cut.rfind(" — "), cut.rfind(". "))
    word = cut.rfind(" ")
    if clause >= max_chars // 2:
        cut = cut[:clause]
    elif word > 0:
        cut = cut[:word]
    return _closed(cut)


def _closed(text: str) -> str:
    text = text.rstrip(" ,;:-–—")
    return text if not text or ends_a_sentence(text) else f"{text}."


def whole_sentences(text: str, max_chars: int) -> str:
    """Return as many whole sentences from the start of the text as fit; the empty string when none does."""
    kept = ""
    for each in sentences(text):
        longer = f"{kept} {each}".strip()
        if len(longer) > max_chars or not ends_a_sentence(each):
            break
        kept = longer
    return kept


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


def is_question(text: str) -> bool:
    """Return whether a text ends as a question. Recognisers write the mark."""
    return text.rstrip().endswith(QUESTION_MARKS)


def words(text: str) -> list[str]:
    """Return the words and figures of a text in lower case, with straight apostrophes."""
    return [match.group().casefold().replace("’", "'") for match in _WORD.finditer(text)]
