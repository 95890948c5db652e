"""Accesses are counted once each, whoever writes them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bot.memory.access_log import AccessLog
from compaction.errors import StoreError
from compaction.model import SessionId
from compaction.payload import PartKind, make_part
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bot.store.tiers import TierStore

S = SessionId("s")


class SlowTiers:
    """Counts accesses when `go` is set; fails while `broken`."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.broken = False
        self.counted: list[tuple[int, int]] = []

    async def count_accesses(self, found: Mapping[SessionId, Iterable[tuple[int, int]]], at: float) -> None:
        """See `TierStore.count_accesses`."""
        ranges = [each for one in found.values() for each in one]
        await self.go.wait()
        if self.broken:
            raise StoreError("The database is away.")
        self.counted += ranges


def a_log() -> tuple[AccessLog, SlowTiers]:
    """Return an empty log, and where it writes."""
    tiers = SlowTiers()
    return AccessLog(tiers_as_store(tiers), FakeClock()), tiers


def tiers_as_store(tiers: SlowTiers) -> TierStore:
    """Return it as the store that it stands for."""
    return tiers  # type: ignore[return-value]


@pytest.mark.asyncio
async def test_two_rooms_that_write_at_once_count_once() -> None:
    """Each access is written once, and what comes meanwhile is written next."""
    accesses, tiers = a_log()
    accesses.note(S, 1, 1)
    accesses.note(S, 2, 2)
    async with asyncio.TaskGroup() as rooms:
        rooms.create_task(accesses.write(), name="one room")
        rooms.create_task(accesses.write(), name="another room")
        await asyncio.sleep(0)
        accesses.note(S, 3, 3)
        tiers.go.set()
    await accesses.write()
    assert tiers.counted == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.asyncio
async def test_what_could_not_be_written_is_kept() -> None:
    """A store that is away loses no access."""
    accesses, tiers = a_log()
    tiers.go.set()
    tiers.broken = True
    accesses.note(S, 1, 1)
    with pytest.raises(StoreError):
        await accesses.write()
    tiers.broken = False
    accesses.note(S, 2, 2)
    await accesses.write()
    assert tiers.counted == [(1, 1), (2, 2)]


@pytest.mark.asyncio
async def test_quotes_in_a_section_of_their_own_count() -> None:
    """In speech-to-speech all quotes stand in one part."""
    accesses, tiers = a_log()
    tiers.go.set()
    made = [
        make_part("system", kind, "quotes", refs=refs)
        for kind, refs in (
            (PartKind.RECALL, ("turn:s#4", "turn:s#5")),
            (PartKind.CONTINUITY, ("turn:s#7",)),
            (PartKind.SUMMARY, ("turn:s#9",)),
        )
    ]
    accesses.note_quotes(made, S, from_seq=9)
    await accesses.write()
    assert tiers.counted == [(4, 4), (5, 5), (7, 7)]
