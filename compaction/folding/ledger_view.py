"""What a session knows of its folded turns: the ledger, the summary rendered from it, and what is to be made next.

Made once for each landing, because rendering a long session takes a while: then it is done beside the event loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from compaction.folding.signals import DegradedSegment
from compaction.summary.ledger import SegmentLedger

if TYPE_CHECKING:
    from collections.abc import Callable

    from compaction.model import RenderedSummary
    from compaction.ports import StoredMemory
    from compaction.summary.chapters import ChapterDue

# Segments from which on the summary is rendered in a thread, and turns from which on a closing segment is made in one.
_LONG = 20
_T = TypeVar("_T")


async def off_the_loop(length: int, make: Callable[[], _T]) -> _T:
    """Return what `make` returns. `length`: how many segments or turns it reads. Of many it may take a second, in which
    nobody would be heard, so that is done in a thread.
    """
    return make() if length < _LONG else await asyncio.to_thread(make)


@dataclass(frozen=True, slots=True)
class LedgerView:
    """A ledger, the summary rendered from it, the segments to make again, and the next chapter to make."""

    ledger: SegmentLedger
    rendered: RenderedSummary | None
    degraded: tuple[DegradedSegment, ...]
    chapter: ChapterDue | None

    @classmethod
    def of(cls, ledger: SegmentLedger) -> LedgerView:
        """Return the view of this ledger."""
        return cls(
            ledger,
            ledger.render(),
            tuple(DegradedSegment(each.id, each.start, each.end) for each in ledger.degraded),
            ledger.chapter_due(),
        )

    @classmethod
    async def of_stored(cls, stored: StoredMemory) -> LedgerView:
        """Return the view of a stored session."""

        def make() -> LedgerView:
            return cls.of(SegmentLedger(stored.segments, stored.chapters))

        return await off_the_loop(len(stored.segments), make)
