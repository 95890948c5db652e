"""Events of a room become turns, and each call returns its own turn even if the store fails."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bot.room.conversation.membership import MembershipNews
from bot.room.conversation.turn_recorder import TurnRecorder
from compaction.errors import StoreError
from tests.compaction.rooms import Room
from tests.fakes.clock import FakeClock
from tests.fakes.place import ADA, BO, FakePlace
from tests.fakes.turn_store import InMemoryTurnStore
from tests.fakes.virtual_time import run_virtually

if TYPE_CHECKING:
    from compaction.model import SessionId, Turn


class _Slow(InMemoryTurnStore):
    """A store that waits for a second and then fails."""

    async def append_turn(self, session_id: SessionId, turn: Turn) -> None:
        await asyncio.sleep(1.0)
        raise StoreError("It is locked.")


def test_a_turn_that_is_not_stored_is_still_the_one_that_was_said() -> None:
    """Two turns that arrive while a slow store delays them each return their own turn, even though storing fails."""

    async def main() -> None:
        async with Room(store=_Slow()) as room:
            recorder = TurnRecorder(
                room.memory, FakePlace(), own_name="Roomtone", clock=FakeClock(), observe=lambda _: None
            )
            ada, bo = await asyncio.gather(
                *(recorder.record_membership(MembershipNews(person, "joined the channel.")) for person in (ADA, BO))
            )
            assert (ada.seq, ada.parts[0].speaker) == (0, "Ada")
            assert (bo.seq, bo.parts[0].speaker) == (1, "Bo")

    run_virtually(main())
