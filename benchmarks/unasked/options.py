"""The options of the benchmark of unasked speech."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class UnaskedBenchOptions:
    """`transcripts`: a directory of conversations, as for the memory benchmark; without it nothing is measured.
    `names`: names that the bot could have instead of its default one, each measured for information. `texts`: quote the
    unasked replies' utterances in the report; otherwise it has only the lines where they stand.
    """

    transcripts: Path | None = None
    names: tuple[str, ...] = ("Nova", "Max", "Echo")
    texts: bool = False
