"""Cut a stream of text into pieces worth speaking, as early as a listener would not mind.

Pure. The first piece may be a clause, because a listener waits for it; later ones are whole sentences, because
the voice speaks those best and there is time while the one before plays.
"""

from __future__ import annotations

import re

# One clause of about this length sounds natural alone and starts the voice a second sooner.
FIRST_CLAUSE_CHARS = 40
# A "sentence" longer than this (no punctuation in sight) is cut at a space: one synthesis stays short.
MAX_PIECE_CHARS = 280

_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|\n+")
_CLAUSE_END = re.compile(r"[,;:—–](?=\s)")
# A full stop after these does not end a sentence.
_ABBREVIATIONS = frozenset(
    {"mr", "mrs", "ms", "dr", "prof", "st", "vs", "etc", "e.g", "i.e", "no", "jr", "sr", "approx", "p.m", "a.m"}
)


class SentenceSplitter:
    """Collects the deltas of one reply and hands out pieces of it. One instance a reply."""

    def __init__(self, *, first_clause_chars: int = FIRST_CLAUSE_CHARS, max_piece_chars: int = MAX_PIECE_CHARS) -> None:
        self._first_clause_chars = first_clause_chars
        self._max_piece_chars = max_piece_chars
        self._rest = ""
        self._spoke = False

    def feed(self, delta: str) -> list[str]:
        """Take the next piece of the stream; return the pieces that are complete now, in order."""
        self._rest += delta
        pieces: list[str] = []
        while (end := self._cut()) is not None:
            self._take(end, pieces)
        return pieces

    def flush(self) -> list[str]:
        """Return what is left when the stream has ended."""
        pieces = self.feed("\n")
        self._take(len(self._rest), pieces)
        return pieces

    def _take(self, end: int, pieces: list[str]) -> None:
        piece = " ".join(self._rest[:end].split())
        self._rest = self._rest[end:]
        if piece:
            pieces.append(piece)
            self._spoke = True

    def _cut(self) -> int | None:
        """Return where the next piece ends, or None while none is complete."""
        for found in _SENTENCE_END.finditer(self._rest):
            if not _is_abbreviation(self._rest[: found.end()]):
                return self._within_limit(found.end())
        if not self._spoke:
            for found in _CLAUSE_END.finditer(self._rest):
                if found.end() >= self._first_clause_chars:
                    return self._within_limit(found.end())
        if len(self._rest) > self._max_piece_chars:
            return self._within_limit(len(self._rest))
        return None

    def _within_limit(self, end: int) -> int:
        if end <= self._max_piece_chars:
            return end
        space = self._rest.rfind(" ", 1, self._max_piece_chars)
        return space if space > 0 else self._max_piece_chars


def _is_abbreviation(text: str) -> bool:
    """Return whether the full stop that ends `text` belongs to an abbreviation or an initial."""
    if not text.endswith("."):
        return False
    words = text[:-1].rsplit(None, 1)
    word = words[-1].lower().lstrip("(\"'“") if words else ""
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word not in {"i", "a"})
