"""What people may read of the memory by commands, and where the parts of it are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.memory.digests import Digests
    from bot.memory.personal_recall import PersonalRecall
    from bot.memory.session_reader import SessionReader


@dataclass(frozen=True, slots=True)
class ReadableMemory:
    """One process's readable memory."""

    reader: SessionReader
    digests: Digests
    recall: PersonalRecall
