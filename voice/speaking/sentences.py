"""Cuts a stream of text into pieces to speak, as early as the pieces sound natural.

Pure. The first spoken piece may be a clause, because a listener is waiting for it. Later pieces are whole sentences,
which voices speak best; there is time for them while the previous piece plays. Passages that are not spoken, such as
reasoning (`hidden_passages`), do not count as the first piece. The same text gives the same pieces however it is
divided into deltas.
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum, auto

from voice.speaking.german_symbols import is_ordinal
from voice.speaking.hidden_passages import HiddenPassages

# In both numbers a wide character (CJK) counts twice.
# A clause of about this length sounds natural alone, and lets the voice start a second sooner.
FIRST_CLAUSE_CHARS = 40
# A sentence longer than this (one without punctuation) is cut at a space, so that a single synthesis stays short.
MAX_PIECE_CHARS = 280

# Characters that may stand between a full stop and the following space.
_CLOSERS = "\"'”’»)\\]}*_~」』）】》〉］"
# Full stops of scripts that write a space after them, and of scripts that do not.
_SPACED_STOPS = ".!?…։؟۔।॥።።၊။"
_BARE_STOPS = "。！？｡．"
_SENTENCE_END = re.compile(
    rf"[{_SPACED_STOPS}]+[{_CLOSERS}]*(?=\s)|[{_BARE_STOPS}]+[…{_BARE_STOPS}{_CLOSERS}]*(?=[^{_BARE_STOPS}{_CLOSERS}…])|\n"
)
_ENDS_SENTENCE = re.compile(rf"[{_SPACED_STOPS}{_BARE_STOPS}][{_CLOSERS}]*\s*$")
# Chinese and Japanese write no space after commas either.
_CLAUSE_END = re.compile(rf"[,;:—–،؛][{_CLOSERS}]*(?=\s)|[，、；：][{_CLOSERS}]*(?=[^{_CLOSERS}])")
# The number of a list item is not a sentence.
_LIST_NUMBER = re.compile(r"\s*(?:[-*•]\s*)?[([]?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})\.$")
# A tag that is not closed yet, so that the comma is inside it.
_UNCLOSED = re.compile(r"[<◁][/a-z][^>▷]*$", re.IGNORECASE)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")

# Abbreviations. A name follows `_TITLES`, and a number follows `_NUMBERED`. A full stop after `_ENDING` ends the
# sentence if the next word has a capital letter.
_TITLES = frozenset(
    {
        "mr", "mrs", "ms", "mx", "dr", "prof", "st", "mt", "ft", "sgt", "capt", "lt", "col", "gen", "rev", "hon",
        "pres", "gov", "sen", "rep", "messrs", "mme", "mlle", "sr", "sra", "srta", "hr", "fr", "vs", "cf", "ca",
        "approx", "e.g", "i.e", "z.b", "d.h", "u.a", "al", "resp", "bzw",
        "evtl", "ggf", "inkl", "mio", "mrd", "vgl",
    }
)  # fmt: skip
_NUMBERED = frozenset({"no", "nr", "fig", "vol", "ch", "sec", "art", "p", "pp", "eq", "ver", "v", "ep", "lvl"})
_ENDING = frozenset({"etc", "p.m", "a.m", "inc", "ltd", "co", "corp", "jr", "ave", "blvd", "rd", "usw", "min", "max"})


class _End(Enum):
    """Whether a full stop ends its sentence."""

    YES = auto()
    NO = auto()
    # The next word decides, and it has not arrived yet.
    UNKNOWN = auto()


def ends_sentence(piece: str) -> bool:
    """Return whether a piece that a voice has spoken ends its sentence. The first one of a reply may be a clause."""
    return _ENDS_SENTENCE.search(piece) is not None


class SentenceSplitter:
    """Collects the deltas of one reply and returns its pieces. Use one instance for each reply. `spoke`: whether a
    spoken piece has been returned.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._hidden = HiddenPassages()
        self.spoke = False

    def feed(self, delta: str) -> list[str]:
        """Add a delta of the stream, and return the pieces that are now complete, in order."""
        self._rest += delta
        pieces: list[str] = []
        while (end := self._cut()) is not None:
            self._take(end, pieces)
        return pieces

    def flush(self) -> list[str]:
        """Return the remaining pieces. Call it once, when the stream has ended."""
        pieces = self.feed("\n")
        self._take(len(self._rest), pieces)
        return pieces

    def _take(self, end: int, pieces: list[str]) -> None:
        piece = " ".join(self._rest[:end].split())
        self._rest = self._rest[end:]
        if piece:
            pieces.append(piece)
            if not self.spoke:
                self.spoke = bool(self._hidden.visible(piece).strip())

    def _cut(self) -> int | None:
        """Return where the next piece ends, or None if no piece is complete yet."""
        # An endpoint may send a whole answer at once. What follows the longest piece decides nothing but whether that
        # piece ends at a word.
        longest = _reach(self._rest, MAX_PIECE_CHARS)
        sentence = self._sentence_end(before=longest + 1)
        clause = self._clause_end(before=longest + 1 if sentence is None else sentence)
        end = clause if clause is not None else sentence
        if end is not None and end <= longest:
            return end
        if len(self._rest.rstrip()) <= longest:
            return None
        # Cut after a Chinese or Japanese comma, or at a space.
        at = max(
            self._rest.rfind(" ", 1, longest), *(self._rest.rfind(comma, 1, longest - 1) + 1 for comma in "，、；")
        )
        return at if at > 0 else longest

    def _sentence_end(self, *, before: int) -> int | None:
        for found in _SENTENCE_END.finditer(self._rest, 0, before):
            match _ends(self._rest, found, before=before):
                case _End.YES:
                    return found.end()
                case _End.UNKNOWN:
                    return None
                case _End.NO:
                    pass
        return None

    def _clause_end(self, *, before: int) -> int | None:
        """Return the end of the first clause that is long enough to be spoken alone, or None after the first spoken
        piece.
        """
        if self.spoke:
            return None
        least = _reach(self._rest.lstrip(), FIRST_CLAUSE_CHARS) + len(self._rest) - len(self._rest.lstrip())
        for found in _CLAUSE_END.finditer(self._rest, 0, before):
            clause = self._rest[: found.end()]
            if found.end() < least or _UNCLOSED.search(clause):
                continue
            audible = self._hidden.peek(" ".join(clause.split()))
            if _reach(audible, FIRST_CLAUSE_CHARS) <= len(audible):
                return found.end()
        return None


def _reach(text: str, chars: int) -> int:
    """Return the index in `text` after `chars` characters. Wide characters count twice. A short text gives an index
    past its end.
    """
    counted = 0
    for at, letter in enumerate(text):
        counted += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if counted > chars:
            return at
    return max(chars - counted, 0) + len(text)


def _ends(text: str, found: re.Match[str], *, before: int) -> _End:
    """Return whether the stop in `found` ends a sentence. It may belong to an abbreviation, an ordinal or a list
    number. `before`: where the longest piece ends. No word beyond it decides.
    """
    stop = found[0]
    if stop[0] != "." or stop.startswith(".."):
        return _End.YES
    # `text` begins after the last piece. Earlier full stops in it were found not to end a sentence.
    until = text[: found.start()]
    if _LIST_NUMBER.fullmatch(f"{until}.".rpartition("\n")[2]):
        return _End.NO
    words = until.rsplit(None, 1)
    word = words[-1].lower().lstrip("(\"'“*_") if words else ""
    if word in _TITLES or (len(word) == 1 and word.isalpha() and word not in {"i", "a"}):
        return _End.NO
    if word not in _ENDING and _DOTTED.fullmatch(word):
        # For example in 'The U.S. Army'. Two sentences in one piece sound better than one sentence in two pieces.
        return _End.NO
    ordinal = is_ordinal(until, text[found.end() : before], complete=len(text) >= before)
    if ordinal is not False:
        return _End.UNKNOWN if ordinal is None else _End.NO
    following = text[found.end() :].lstrip()
    if word in _NUMBERED:
        return _end_if(not following[:1].isdigit(), following)
    if word in _ENDING:
        quoted = following.lstrip("\"'“(*_")
        return _end_if(quoted[:1].isupper(), quoted)
    return _End.YES


def _end_if(ends: bool, following: str) -> _End:
    """Decide by the first letter that follows. UNKNOWN if no letter has arrived yet."""
    if not following:
        return _End.UNKNOWN
    return _End.YES if ends else _End.NO
