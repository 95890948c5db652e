"""What a reader found told in texts about the written conversations and the cases.

A rule about words misjudges dense prose: 'Wanda (van licence) helps, Ines from noon with lamps' has every fact and none
of the words that a rule expects. So the texts are read by a person or a strong model, who sees neither which system
wrote a text nor what the rule says of it: `roomtone bench memory --unread FILE` writes the texts that nobody has read,
and what the reader answers is kept in `recorded/readings.toml`. A text without a reading is judged by words
(`statement_judge`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from benchmarks.memory.folders import RECORDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

READINGS = RECORDED / "readings.toml"
_KEY_CHARS = 16
_TASK = """\
Below are summaries of voice conversations, and under each the facts that it may tell, each with a number. A fact is
told if somebody who has only this summary could answer the question about it rightly: the right person, the value
(number, date, place, name), and 'not' where it belongs. Other words are fine, details beside the point may be missing,
and the person may be clear from the sentences around it. A wrong value, a wrong person, or a guess is not told. Of some
summaries the facts are given as a person, words and a sign: 'Ada, affirmed: come Friday' is told if the reader learns
that in the end it holds of Ada (that she comes on Friday), 'denied' if it learns that in the end it does not; what was
said first and taken back later does not hold. Write one line for each summary, its key with the numbers of the facts
that it tells: `"1f2e3d4c5b6a7980" = [16, 19, 240]`; of one that tells none: `"1f2e3d4c5b6a7980" = []`.
"""


@dataclass(frozen=True, slots=True)
class UnreadText:
    """A text that nobody has read, and the facts to look for in it, each with its number."""

    key: str
    text: str
    facts: tuple[tuple[int, str], ...]

    def __str__(self) -> str:
        facts = "\n".join(f"{number}: {fact}" for number, fact in self.facts)
        return f"## {self.key}\n\n{self.text}\n\n{facts}\n"


def reading_key(conversation: str, text: str) -> str:
    """Return the key of a text about a conversation."""
    return sha256(f"{conversation}\n{text}".encode()).hexdigest()[:_KEY_CHARS]


@cache
def kept_readings() -> Mapping[str, frozenset[int]]:
    """Return the kept readings: by the key of a text, the lines of the facts that it tells."""
    return read_readings(READINGS)


def read_readings(path: Path) -> dict[str, frozenset[int]]:
    """Return the readings in a file; none if there is no file. Raises ValueError for one that is no list of lines."""
    if not path.is_file():
        return {}
    found: dict[str, frozenset[int]] = {}
    for key, lines in tomllib.loads(path.read_text("utf-8")).items():
        if not isinstance(lines, list) or not all(isinstance(line, int) for line in lines):
            raise ValueError(f"The reading {key} in {path} must be a list of line numbers.")
        found[key] = frozenset(lines)
    return found


def write_sheet(path: Path, unread: Iterable[UnreadText]) -> int:
    """Write the texts to read, in the order of their keys, so that nothing tells who wrote them. Returns how many."""
    texts = sorted({each.key: each for each in unread}.values(), key=lambda each: each.key)
    path.write_text("\n".join([_TASK, *map(str, texts)]), "utf-8")
    return len(texts)
