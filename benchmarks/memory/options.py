"""The options of the memory benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class MemoryBenchOptions:
    """The options of one run. The defaults are a full run.

    `evenings`: generated evenings of each template set. `transcripts`: a directory of conversations to measure with
    too. `parts`: the parts to measure; none means all. `turns`: of the reply path; `search_turns`: of the search.
    """

    evenings: int = 4
    seed: int = 1
    parts: tuple[str, ...] = ()
    transcripts: Path | None = None
    embeddings: bool = True
    turns: int = 10_000
    search_turns: int = 100_000
