"""Measures what a prompt quotes of the talk of `quoting.toml`: corrected facts, follow-ups, questions about nothing.

Each file is one conversation: first all that was said first, then all that was said later. Nothing of it is folded, so
no model has said what corrects what.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import TypeAdapter

from benchmarks.figures import share_of
from benchmarks.memory.conversations.conversation import ConversationLine
from benchmarks.memory.conversations.synthetic_evenings import STARTED_AT
from benchmarks.memory.roomtone_search import RoomtoneSearch, open_roomtone_search, quoted_turns, turn_of

if TYPE_CHECKING:
    from benchmarks.measuring import Progress
    from benchmarks.report import Json
    from compaction.memory.quotes import Quote
    from compaction.ports import Embedder

HALVES = {
    half: Path(__file__).parent / f"{name}.toml" for half, name in (("tuning", "quoting"), ("apart", "quoting_apart"))
}
_PAUSE_S = 6.0
# The question comes so long after the last line that is found.
_ASKED_AFTER_S = 600.0
# The seq of the first turn in the window, which is not stored.
_WINDOW_AT = 1_000


@dataclass(frozen=True)
class _Case:
    """One case as the file has it. `said`: what holds, of which the last line is said later. `exchange`: what was said
    just before the question.
    """

    question: str
    where: Literal["later", "at once", "window"] = "later"
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    said: tuple[str, ...] | str = ()
    stray: str = ""
    exchange: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the lines that are said first, and the later ones."""
        said = (self.said,) if isinstance(self.said, str) else self.said
        return (*self.old, *said[:1], *filter(None, [self.stray])), (*self.new, *said[1:])

    def lines_in(self, where: str) -> tuple[str, ...]:
        """Return the lines that are said later and stand there."""
        return self.lines[1] if self.where == where else ()


async def measure_quoting(embedder: Embedder | None, progress: Progress) -> dict[str, Json]:
    """Return the number of `corrected` facts, the shares that are told in their old form, and each half's counts.

    `told_old_last`: the prompt quotes the old form alone, after the new one, or although the window has the new one; a
    quote may have both. `told_old_first`: so, or before the new one. `told_old`: it has the old form at all.
    `told_new`: it tells the new one. `both_told`: two facts that hold, of which all are quoted that the window lacks.
    `followed`: follow-up questions that find what they are about. `strays`: questions about nothing that get a quote.
    """
    progress.step("quotes of corrected facts", total=len(HALVES))
    halves: dict[str, Counter[str]] = {}
    for half, path in HALVES.items():
        cases = TypeAdapter(dict[str, tuple[_Case, ...]]).validate_python(tomllib.loads(path.read_text("utf-8")))
        halves[half] = await _measure(cases, embedder)
        progress.advance()
    every = sum(halves.values(), Counter())
    return {
        "corrected": every["corrected"],
        **{way: share_of(every[way], every["corrected"]) for way in ("told_old_first", "told_old_last")},
        "nothing": every["nothing"],
        "strays": share_of(every["strays"], every["nothing"]),
        **{half: dict(counts) for half, counts in halves.items()},
    }


async def _measure(cases: dict[str, tuple[_Case, ...]], embedder: Embedder | None) -> Counter[str]:
    every = [each for listed in cases.values() for each in listed]
    said = [line for each in every for line in (*each.lines[0], *each.lines_in("at once"))]
    said += [line for each in every for line in each.lines_in("later")]
    place = {line: at for at, line in enumerate(said)}
    found = Counter({kind: len(listed) for kind, listed in cases.items()})
    lines = [_line(text, STARTED_AT + _PAUSE_S * at) for at, text in enumerate(said)]
    async with open_roomtone_search(embedder, lines) as search:
        for kind, listed in cases.items():
            for case in listed:
                quotes = await _quoted(search, case, STARTED_AT + _PAUSE_S * len(said) + _ASKED_AFTER_S)
                told = quoted_turns(quotes)
                match kind:
                    case "corrected":
                        old, new = place[case.old[-1]], place.get(case.new[-1])
                        shown = [each for quote in quotes if {old, new} & set(each := quoted_turns([quote]))]
                        found["told_old_first"] += bool(shown) and new not in shown[0]
                        found["told_old_last"] += bool(shown) and new not in shown[-1]
                        found["told_old"] += old in told
                        found["told_new"] += new is None or new in told
                    case "both":
                        found["both_told"] += {place[line] for line in case.said if line in place} <= set(told)
                    case "follow_up":
                        found["followed"] += place[str(case.said)] in told
                    case _:
                        found["strays"] += bool(told)
    return found


async def _quoted(search: RoomtoneSearch, case: _Case, asked_at: float) -> tuple[Quote, ...]:
    said = (*case.lines_in("window"), *case.exchange)
    window = [turn_of(_line(text, asked_at), _WINDOW_AT + at) for at, text in enumerate(said)]
    exchange = window[len(said) - len(case.exchange) :]
    return await search.quotes(case.question, asked_at=asked_at, window=window, exchange=exchange)


def _line(text: str, at: float) -> ConversationLine:
    speaker, _, words = text.partition(": ")
    return ConversationLine(speaker, words, at, by_bot=speaker == "Roomtone")
