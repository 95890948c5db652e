"""Measures which misheard names are put right, and whether anything else of what people say is changed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from bot.conversation.misheard_names import correct_names
from compaction.language.text import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.report import Json

CASES = Path(__file__).parent / "garbled_names.toml"


async def measure_names(conversations: Sequence[RecordedConversation]) -> dict[str, Json]:
    """Return the share of the `garbled` names that is put right: `found`, `apart` of those kept apart.

    `changed`: of the `sentences` of conversations, with their speakers' names, and of those that name somebody else.
    The recogniser was unsure of all of these, and sure of those that speak about a name.
    """
    cases = tomllib.loads(CASES.read_text("utf-8"))
    mended = {
        half: [correct_names(heard, cases[f"{half}_names"], unsure=True) == meant for heard, meant in cases[half]]
        for half in ("tuning", "apart")
    }
    talk = [(sentence, cases["other_names"], True) for sentence in cases["other"]]
    talk += [(sentence, cases["tuning_names"], False) for sentence in cases["about"]]
    for each in conversations:
        names = [name.title() if name.isupper() else name for name in sorted(each.speakers)]
        talk += [(sentence, names, True) for line in each.lines for sentence in sentences(line.text)]
    every = [*mended["tuning"], *mended["apart"]]
    return {
        "garbled": len(every),
        "found": round(sum(every) / len(every), 4),
        "apart": round(sum(mended["apart"]) / len(mended["apart"]), 4),
        "sentences": len(talk),
        "changed": sum(correct_names(sentence, names, unsure=unsure) != sentence for sentence, names, unsure in talk),
    }
