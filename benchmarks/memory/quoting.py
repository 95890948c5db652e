"""Measures what a prompt quotes of the talk of `quoting.toml`: corrected facts, follow-ups, questions about nothing.

Each half of the file is one conversation: first all that was said first, then all that was said later. Nothing of it is
folded, so no model has said what corrects what.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from benchmarks.figures import share_of
from benchmarks.memory.conversations.conversation import ConversationLine
from benchmarks.memory.conversations.synthetic_evenings import BOT, STARTED_AT
from benchmarks.memory.roomtone_search import SESSION, open_roomtone_search, turn_of
from benchmarks.memory.search import quoted_turns
from bot.brain.context import QUOTE_TOKENS, RESULTS_PER_QUOTE
from bot.brain.wakeword import strip_call
from bot.tuning import UNTUNED
from compaction.memory.passage import Scope
from compaction.memory.quote_search import searches_for
from compaction.memory.quotes import select_quotes
from compaction.memory.recall import parse_query

if TYPE_CHECKING:
    from benchmarks.measuring import Progress
    from benchmarks.memory.roomtone_search import RoomtoneSearch
    from benchmarks.report import Json
    from compaction.ports import Embedder

CASES = Path(__file__).parent / "quoting.toml"
_PAUSE_S = 6.0
# The question comes so long after the last line.
_ASKED_AFTER_S = 600.0
# The seq of an exchange, which is not stored.
_EXCHANGE_AT = 1_000


@dataclass(frozen=True)
class _Case:
    """One case as the file has it: `before` and `later` are the lines of the two rounds, `question` what is asked after
    `exchange`.
    """

    apart: bool
    question: str
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    said: tuple[str, ...] | str = ()
    stray: str = ""
    exchange: tuple[str, ...] = ()

    @property
    def before(self) -> tuple[str, ...]:
        said = (self.said,) if isinstance(self.said, str) else self.said[:1]
        return tuple(filter(None, (*self.old, *said, self.stray)))

    @property
    def later(self) -> tuple[str, ...]:
        return self.new or (() if isinstance(self.said, str) else self.said[1:])


async def measure_quoting(embedder: Embedder | None, progress: Progress) -> dict[str, Json]:
    """Return the number of `corrected` facts and the share that is `told_old_first`, and the counts of each half.

    `told_old_first`: the prompt tells the old form first, or alone, without a mark. `told_new`: it tells the new one.
    `both_told`: two facts that hold, of which both are quoted. `followed`: follow-up questions that find what they are
    about. `strays`: quotes for questions about nothing.
    """
    cases = TypeAdapter(dict[str, tuple[_Case, ...]]).validate_python(tomllib.loads(CASES.read_text("utf-8")))
    progress.step("quotes of corrected facts", total=2)
    halves: dict[str, Counter[str]] = {}
    for half, apart in (("tuning", False), ("apart", True)):
        own = {kind: [each for each in listed if each.apart is apart] for kind, listed in cases.items()}
        halves[half] = await _measure(own, embedder)
        progress.advance()
    every = sum(halves.values(), Counter())
    return {
        "corrected": every["corrected"],
        "told_old_first": share_of(every["told_old_first"], every["corrected"]),
        **{half: dict(counts) for half, counts in halves.items()},
    }


async def _measure(cases: dict[str, list[_Case]], embedder: Embedder | None) -> Counter[str]:
    every = [each for listed in cases.values() for each in listed]
    said = [line for each in every for line in each.before] + [line for each in every for line in each.later]
    place = {line: at for at, line in enumerate(said)}
    found = Counter({kind: len(listed) for kind, listed in cases.items()})
    async with open_roomtone_search(embedder) as search:
        await search.add([_line(text, STARTED_AT + _PAUSE_S * at) for at, text in enumerate(said)])
        await search.embed_all()
        for kind, listed in cases.items():
            for case in listed:
                told = await _quoted(search, case, STARTED_AT + _PAUSE_S * len(said) + _ASKED_AFTER_S)
                match kind:
                    case "corrected":
                        old, new = place[case.old[-1]], place[case.new[-1]]
                        found["told_old_first"] += next((seq for seq in told if seq in {old, new}), None) == old
                        found["told_new"] += new in told
                    case "both":
                        found["both_told"] += {place[line] for line in case.said} <= set(told)
                    case "follow_up":
                        found["followed"] += place[str(case.said)] in told
                    case _:
                        found["strays"] += len(told)
    return found


async def _quoted(search: RoomtoneSearch, case: _Case, asked_at: float) -> list[int]:
    """Return the turns that are quoted, in the order of the prompt, as `QuoteFinder` searches and selects."""
    exchange = [turn_of(_line(text, asked_at), _EXCHANGE_AT + at) for at, text in enumerate(case.exchange)]
    searches = searches_for(case.question, " ".join(strip_call(turn.text, (BOT,)) for turn in exchange))
    found = [
        hit
        for each in searches
        for hit in await search.recall.search(each.text, Scope(), limit=RESULTS_PER_QUOTE * UNTUNED.quotes)
        if hit.relevance >= each.least
    ]
    if not searches:
        return []
    quotes = select_quotes(
        found,
        asked=parse_query(searches[0].text),
        session_id=SESSION,
        asked_at=asked_at,
        window=exchange,
        most=UNTUNED.quotes,
        max_tokens=QUOTE_TOKENS,
        zone=UTC,
    )
    return quoted_turns(quotes)


def _line(text: str, at: float) -> ConversationLine:
    speaker, _, words = text.partition(": ")
    return ConversationLine(speaker, words, at, by_bot=speaker == "Roomtone")
