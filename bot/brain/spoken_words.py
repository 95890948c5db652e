"""The words of recognised speech and the pauses between them, as searching for names needs them. Pure."""

from __future__ import annotations

import re
from copy import copy
from unicodedata import category

from compaction.sentence_cache import sentence_cache

# Those of the scripts that people write today. Rarer ones, beyond U+FFFF, would make each search much slower.
_MARKS = "".join(each for each in map(chr, range(0x300, 0x10000)) if category(each)[0] == "M")
# For a regular expression: letters with the marks on them, which are vowels in many scripts.
LETTERS = rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*"
# 'Roomtone's' is one word.
_WORD = re.compile(rf"({LETTERS}(?:['’]{LETTERS})?)")
_PAUSE = re.compile(r"[,.;:!?…–—、。，．！？；：،؛؟।۔]")


class SpokenWords:
    """The words of one text. `texts`: casefolded. `bare`: the same without apostrophes and possessive endings.
    `pauses`: whether punctuation separates each word from the next. `sounds`: the phonemes of bare words, as far as
    somebody has asked for them.
    """

    def __init__(self, text: str) -> None:
        parts = _WORD.split(text)
        self._parts = parts
        written, gaps = parts[1::2], parts[2::2]
        self.texts = "\n".join(written).casefold().replace("’", "'").split("\n") if written else []
        self.bare = [word.removesuffix("'s").replace("'", "") if "'" in word else word for word in self.texts]
        paused = {gap: _PAUSE.search(gap) is not None for gap in set(gaps)}
        self.pauses = [paused[gap] for gap in gaps]
        self.sounds: dict[str, str] = {}

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def edges(self, of_each: int) -> SpokenWords:
        """Return the text without the words between the first `of_each` and the last; itself, if there are none."""
        if len(self) <= 2 * of_each:
            return self
        edges = copy(self)
        edges._parts = self._parts[: 2 * of_each + 1] + self._parts[-2 * of_each :]
        edges.texts = self.texts[:of_each] + self.texts[-of_each:]
        edges.bare = self.bare[:of_each] + self.bare[-of_each:]
        edges.pauses = self.pauses[:of_each] + self.pauses[-of_each:]
        return edges

    def __len__(self) -> int:
        return len(self.texts)

    def begin(self, at: int) -> int:
        """Return where a word begins in the text."""
        return sum(map(len, self._parts[: 2 * at + 1]))

    def end(self, at: int) -> int:
        """Return where a word ends in the text."""
        return sum(map(len, self._parts[: 2 * at + 2]))


@sentence_cache(most=64)
def spoken_words(text: str) -> SpokenWords:
    """Return the words of a text. The same text is looked at several times while it is decided on."""
    return SpokenWords(text)
