"""What people may read of the memory by commands, and where the parts of it are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.memory.digests import Digests
    from bot.memory.recall import Recall
    from bot.memory.session_reader import SessionReader


@dataclass(frozen=True, slots=True)
class ReadableMemory:
    """One process's readable memory. `reach`: how far a search goes, as in `recall.scope`; None: search is off."""

    reader: SessionReader
    digests: Digests
    recall: Recall
    reach: str | None
