"""The words of recognised speech and the pauses between them. Pure."""

from __future__ import annotations

import re
from unicodedata import category

from compaction.sentence_cache import sentence_cache
from voice.asr.unspaced import UNSPACED

# Those of the scripts that people write today. Rarer ones, beyond U+FFFF, would make each search much slower.
_MARKS = "".join(each for each in map(chr, range(0x300, 0x10000)) if category(each)[0] == "M")
# Letters with the marks on them, which are vowels in many scripts. 'Roomtone's' is one word.
_LETTERS = rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*"
_WORD = re.compile(rf"({_LETTERS}(?:['’]{_LETTERS})?)")
_PAUSE = re.compile(r"[,.;:!?…–—、。，．！？；：،؛؟।۔]")
_UNSPACED = re.compile(f"[{UNSPACED}]")


class SpokenWords:
    """The words of one text. `texts`: casefolded. `bare`: the same without apostrophes and possessive endings.
    `pauses`: whether punctuation separates each word from the next.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = parts = _WORD.split(text)
        written, gaps = parts[1::2], parts[2::2]
        self.texts = "\n".join(written).casefold().replace("’", "'").split("\n") if written else []
        self.bare = [word.removesuffix("'s").replace("'", "") if "'" in word else word for word in self.texts]
        paused = {gap: _PAUSE.search(gap) is not None for gap in set(gaps)}
        self.pauses = [paused[gap] for gap in gaps]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def spoken_count(self) -> int:
        """Return how many words were said. In scripts without spaces two characters count as one word."""
        unspaced = len(_UNSPACED.findall(self.text))
        return sum(_UNSPACED.search(word) is None for word in self.texts) + (unspaced + 1) // 2

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
