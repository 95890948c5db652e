"""Measures whether search finds what was said in German, French, Spanish and Japanese, asked in other words.

Each language is a conversation of 30 turns: the turns that answer the questions of `other_languages.toml`, and as many
that share words with the questions and answer nothing.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.memory.conversations.conversation import ConversationLine
from benchmarks.memory.conversations.synthetic_evenings import STARTED_AT
from benchmarks.memory.roomtone_search import open_roomtone_search

if TYPE_CHECKING:
    from benchmarks.measuring import Progress
    from benchmarks.report import Json
    from compaction.ports import Embedder

PAIRS = Path(__file__).parent / "other_languages.toml"
# The answer must be among so many hits.
AMONG = 3


async def measure_languages(embedder: Embedder | None, progress: Progress) -> dict[str, Json]:
    """Return the share of the questions whose answer is among the first three hits: `found`, `apart` of those that were
    kept apart, and of each language.
    """
    of_language: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
    pairs = tomllib.loads(PAIRS.read_text("utf-8"))["pair"]
    languages = list(dict.fromkeys(pair["language"] for pair in pairs))
    progress.step("other languages", total=len(languages))
    for language in languages:
        own = [pair for pair in pairs if pair["language"] == language]
        said = [text for pair in own for text in (pair["answer"], pair["beside"])]
        lines = [ConversationLine("Ada", text, STARTED_AT + 6.0 * at) for at, text in enumerate(said)]
        async with open_roomtone_search(embedder) as search:
            await search.add(lines)
            await search.embed_all()
            for number, pair in enumerate(own):
                hits = await search.search(pair["question"], limit=AMONG)
                of_language[language].append((any(hit.seq == 2 * number for hit in hits), pair["apart"]))
        progress.advance()
    every = [each for found in of_language.values() for each in found]
    return {
        "questions": len(every),
        "found": _share(every),
        "apart": _share([each for each in every if each[1]]),
        **{language: _share(found) for language, found in of_language.items()},
    }


def _share(found: list[tuple[bool, bool]]) -> float:
    return round(sum(hit for hit, _ in found) / len(found), 4)
