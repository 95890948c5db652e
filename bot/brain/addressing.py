"""Tells whether speech calls somebody else by their name. Pure.

Other people's names count only as they are spelled and set off from the sentence: 'Ben, what …', 'hey Ben, …', '… don't
you think, Ben?'. Without the commas nobody is called, so an ordinary word may be a name ('Will', 'May'), and a hundred
hostile names cost no more than one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.spoken_words import spoken_words
from bot.brain.wakeword import GREETINGS
from compaction.sentence_cache import sentence_cache

if TYPE_CHECKING:
    from collections.abc import Set

    from bot.brain.spoken_words import SpokenWords

# A name has at least two letters, as in 'Al' and 'Bo'. A single letter is not taken for a name.
_SHORTEST_NAME = 2
# 'And Ben?' is a question about Ben; it does not call Ben.
_CONJUNCTIONS = frozenset({"and", "or", "but"})


@sentence_cache(most=1_024)
def call_names(display_name: str) -> frozenset[str]:
    """Return what a person may be called, as `calls_any` compares it: their name, and its first word."""
    words = spoken_words(display_name).bare
    return frozenset(
        name for name in ("".join(words), *words[:1]) if len(name) >= _SHORTEST_NAME and name not in GREETINGS
    )


def calls_any(words: SpokenWords, names: Set[str]) -> bool:
    """Return whether one of `names` stands alone between pauses, apart from greetings before it."""
    if len(words.texts) == 2 and words.texts[0] in _CONJUNCTIONS:
        return False
    alone: list[str] = []
    for text, bare, pause in zip(words.texts, words.bare, words.pauses, strict=True):
        if alone or text not in GREETINGS:
            alone.append(bare)
        if pause:
            if "".join(alone) in names:
                return True
            alone = []
    return "".join(alone) in names
