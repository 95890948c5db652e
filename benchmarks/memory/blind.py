"""Compare two texts blindly: `python -m benchmarks.memory.blind SHEET`, then `python -m benchmarks.memory.blind`.

The first lays Roomtone's text and that of `recursive` (what the same kind of answers come to as one running paragraph)
side by side, after each fold of each written conversation, in an order that only the number of the pair tells.
Several persons or strong models read SHEET, each alone, and `recorded/verdicts.toml` has what they answered: for each
pair a list of `first`, `second` or `equal`, one word a judge, whichever serves a companion who joins now better. The
second counts.
"""

from __future__ import annotations

import argparse
import asyncio
import tomllib
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.disabled_logging import logging_disabled
from benchmarks.memory.conversations.folds import turns_needed
from benchmarks.memory.conversations.written import NAMES, read_written
from benchmarks.memory.folders import ANSWERS, RECORDED
from benchmarks.memory.systems.catalogue import recorded_systems
from benchmarks.memory.systems.recorded_answers import recorded_folds
from benchmarks.stats import share_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.memory.systems.catalogue import SystemSpec

VERDICTS = RECORDED / "verdicts.toml"
SIDES = ("roomtone", "recursive")
_TASK = """\
Below are pairs of summaries of a voice conversation, each with the newest turns that it covers. A companion joins the
conversation now and has only the summary of what was before. Which of the two serves it better: what it must know, said
of the right person, readable, and nothing wrong? Write a line for each pair: `"cabin 3" = "first"`, or "second", or
"equal".
"""


@dataclass(frozen=True, slots=True)
class BlindPair:
    """Two texts of one moment, in the order shown; `ours_first` says which is Roomtone's."""

    name: str
    first: str
    second: str

    @staticmethod
    def ours_first(name: str) -> bool:
        """Return whether Roomtone's text is the first of the pair with this name."""
        return sha256(f"pair {name}".encode()).digest()[0] % 2 == 0


def lay_out(name: str, ours: str, other: str) -> BlindPair:
    """Return the pair of these texts in its order."""
    return BlindPair(name, ours, other) if BlindPair.ours_first(name) else BlindPair(name, other, ours)


def count_verdicts(verdicts: Mapping[str, Sequence[str]]) -> Counter[str]:
    """Return how many verdicts Roomtone won, lost and drew. Raises ValueError for a verdict that is none."""
    counts: Counter[str] = Counter()
    for name, answers in verdicts.items():
        for verdict in answers:
            if verdict not in {"first", "second", "equal"}:
                raise ValueError(f"A verdict on {name} must be first, second or equal, not {verdict}.")
            won = (verdict == "first") is BlindPair.ours_first(name)
            counts["equal" if verdict == "equal" else "ours" if won else "other"] += 1
    return counts


def read_verdicts(path: Path = VERDICTS) -> dict[str, Any]:
    """Return the kept verdicts as figures: pairs, verdicts, the share that ours wins or draws; empty without any."""
    verdicts: dict[str, list[str]] = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    counts = count_verdicts(verdicts)
    if not counts:
        return {}
    share = share_of(counts["ours"] + counts["equal"], counts.total())
    return {"pairs": len(verdicts), "verdicts": counts.total(), "share": share, **counts}


async def lay_out_pairs(answers: Path) -> list[str]:
    """Return the pairs of all conversations that both systems have answers for, as a judge reads them."""
    systems = {spec.recorded: spec for spec in recorded_systems(answers, {})}
    pairs: list[str] = []
    for conversation in map(read_written, NAMES):
        folds = min(recorded_folds(conversation.name, side, answers) for side in SIDES)
        moments = range(1, folds + 1)
        texts = [await _texts(systems[side], conversation, moments) for side in SIDES] if moments else []
        for fold, ours, other in zip(moments, *texts, strict=True) if texts else ():
            pair = lay_out(f"{conversation.name} {fold}", ours, other)
            newest = conversation.lines[(fold - 1) * 10 : fold * 10]
            talk = "\n".join(f"{line.speaker}: {line.text}" for line in newest)
            pairs.append(f"## {pair.name}\n\n{talk}\n\n### first\n\n{pair.first}\n\n### second\n\n{pair.second}\n")
    return pairs


async def _texts(spec: SystemSpec, conversation: RecordedConversation, moments: Iterable[int]) -> list[str]:
    """Return the system's text after each of these folds."""
    ends = {turns_needed(fold) for fold in moments}
    texts: list[str] = []
    async with AsyncExitStack() as stack:
        stack.enter_context(logging_disabled())
        memory = await stack.enter_async_context(spec.enter(conversation))
        for number, line in enumerate(conversation.lines[: max(ends)], start=1):
            await memory.hear(line)
            if number in ends:
                texts.append((await memory.snapshot()).injected)
    return texts


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "sheet", type=Path, nargs="?", help="where the pairs are written; without it verdicts are counted"
    )
    parser.add_argument("--answers", type=Path, default=ANSWERS, help="where answers are kept")
    given = parser.parse_args()
    if given.sheet is None:
        print(read_verdicts())  # noqa: T201 - a command
    else:
        pairs = asyncio.run(lay_out_pairs(given.answers))
        given.sheet.write_text("\n".join([_TASK, *pairs]), "utf-8")
        print(f"{len(pairs)} pairs in {given.sheet}")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
