"""Finds what people mean by the first things that they say to a bot: 'can you hear me?', 'what did I miss?'.

Each meaning has a few example sentences in the files of the languages (`bot.texts`). A sentence means what the example
means that is most like it, by the embedder of memory search, so it need not have the same words.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import structlog

from bot.background_task import background_task
from bot.brain.embedded.evidence import name_stems
from bot.texts.catalogue import catalogue, languages
from compaction.errors import EmbeddingError
from compaction.language.text import words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from numpy.typing import NDArray

    from compaction.ports import Embedder

log = structlog.get_logger()

# Chosen on the sentences `fit` in tests/bot/brain/embedded/first_sentences.toml: the lowest that takes no question
# about what was said for one of these.
LIKE_ENOUGH: Final = 0.7
# How long an answer waits for the likeness of a sentence, which takes 10 ms.
WAIT_S: Final = 0.5
# What stands for the name of a person in the examples.
SOMEBODY: Final = "somebody"


class Meaning(StrEnum):
    """What a first sentence means: a key of `said.meanings` in the file of a language."""

    HEARS = "hears"
    RECAP = "recap"
    SAID_BY = "said_by"
    RECORDING = "recording"
    TIME = "time"
    WHO_IS_HERE = "who_is_here"
    HOW_LONG = "how_long"
    LEAVE = "leave"
    HELP = "help"
    GREETING = "greeting"
    THANKS = "thanks"
    PARTING = "parting"


class FirstSentences:
    """The examples of all languages. Without an embedder no sentence is like any."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._meanings: list[Meaning] = []
        self._vectors: NDArray[np.float32] | None = None

    @classmethod
    @asynccontextmanager
    async def running(cls, embedder: Embedder | None) -> AsyncIterator[FirstSentences]:
        """Read the examples in the background. Until then no sentence is like any."""
        made = cls(embedder)
        async with background_task(made.read_examples(), name="first-sentences"):
            yield made

    async def read_examples(self) -> None:
        """Embed the examples. A failure is logged, and no sentence is like any then."""
        if self._embedder is None:
            return
        examples = [
            (Meaning(meaning), sentence)
            for code in languages()
            for meaning, sentences in catalogue(code).meanings.items()
            for sentence in sentences
        ]
        try:
            vectors = await self._embedder.embed([sentence for _, sentence in examples])
        except EmbeddingError as error:
            log.warning("first_sentences_not_read", problem=error)
            return
        self._meanings = [meaning for meaning, _ in examples]
        self._vectors = np.array(vectors, dtype=np.float32)

    async def meaning_of(self, text: str, *, names: Sequence[str], speakers: Iterable[str]) -> Meaning | None:
        """Return what a sentence to the bot means, None if it is like no example. `names`: the bot's; `speakers`: those
        of people who spoke here.
        """
        said = _without_names(text, names, speakers)
        if self._embedder is None or self._vectors is None or not words(said):
            return None
        try:
            async with asyncio.timeout(WAIT_S):
                (vector,) = await self._embedder.embed([said], urgent=True)
        except (EmbeddingError, TimeoutError):
            return None
        likeness = self._vectors @ np.array(vector, dtype=np.float32)
        best = int(likeness.argmax())
        return self._meanings[best] if likeness[best] >= LIKE_ENOUGH else None


def _without_names(text: str, names: Sequence[str], speakers: Iterable[str]) -> str:
    """Return a sentence without the bot's name, and with `SOMEBODY` for people."""
    own = frozenset().union(*map(words, names))
    people = frozenset().union(*map(name_stems, speakers)) - own
    left = (
        SOMEBODY if people.intersection(words(word)) else word for word in text.split() if own.isdisjoint(words(word))
    )
    bare, end = " ".join(left).strip(" ,"), text.rstrip()[-1:]
    return f"{bare}{end}" if bare and end in ".!?" and bare[-1] not in ".!?" else bare
