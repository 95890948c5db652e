"""What a room tells when something fails: the GPU, the recogniser, the disk, the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot import events
from bot.room.room_status import (
    DEAFENED,
    MUTED,
    UNDEAFENED,
    UNMUTED,
)
from bot.room.stay import CHECK_ROOM_S, GPU_FAILED
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from tests.bot.room.room_scene import a_house, living
from tests.fakes.place import ADA, BO
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from pathlib import Path

    from compaction.model import SessionId, Turn


async def test_a_gpu_that_fails_is_told_once_in_the_channel(tmp_path: Path) -> None:
    """People who talk when the GPU fails learn why texts come later. A room that opens afterwards does not tell it."""
    async with a_house(tmp_path) as house:
        for told in (1, 0):
            async with living(house):
                house.place.written.clear()
                house.gpu_failure = RecogniserError("CUDA failed (no memory).")
                await house.pass_time(4 * CHECK_ROOM_S, step_s=CHECK_ROOM_S)
                assert house.place.written.count(GPU_FAILED) == told
        problems = [event.sentence for event in house.seen if isinstance(event, events.Problem)]
        assert problems == ["CUDA failed (no memory)."]


class FullDisk:
    """A turn store whose disk can be full."""

    def __init__(self, store: SqlTurnStore) -> None:
        self._store = store
        self.full = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def append_turn(self, session_id: SessionId, turn: Turn) -> None:
        """Fail while the disk is full."""
        if self.full:
            raise StoreError("The disk is full. Make room.")
        await self._store.append_turn(session_id, turn)


async def test_a_full_disk_is_told_once_and_loses_no_turn(tmp_path: Path) -> None:
    """A full disk is reported once in the channel, and the turns of that time are stored when there is space again."""
    async with a_house(tmp_path) as house:
        assert isinstance(house.store, SqlTurnStore)
        disk = FullDisk(house.store)
        house.store = disk  # type: ignore[assignment]  # a store but for the one method
        async with living(house):
            disk.full = True
            await house.say(ADA.id, "One thing I said to you.")
            await house.say(BO.id, "Two things I said to you.")
            disk.full = False
            await house.say(ADA.id, "Three things I said to you.")
            opened = house.of(events.RoomOpened)[0]
            assert isinstance(opened, events.RoomOpened)
            stored = await house.store.load(opened.session_id)  # type: ignore[arg-type]
        assert [turn.seq for turn in stored.window] == [0, 1, 2]
        assert house.place.written == ["I cannot store what is said: The disk is full. Make room."]


async def test_a_bot_that_somebody_mutes_or_deafens_says_so(tmp_path: Path) -> None:
    """The channel and /status say why nobody hears the bot, or the bot nobody, once. While it is muted no model works
    for an answer that nobody can hear.
    """
    async with a_house(tmp_path) as house, living(house) as (room, _):
        house.place.written.clear()
        house.place.muted, house.place.audible = True, False
        await house.pass_time(4 * CHECK_ROOM_S, step_s=CHECK_ROOM_S)
        assert house.place.written == [MUTED]
        assert MUTED in room.status()
        await house.say(ADA.id, "Roomtone, what time is it?")
        decided = house.of(events.TurnDecided)[-1]
        assert isinstance(decided, events.TurnDecided)
        assert decided.reason == "silenced"
        house.place.muted, house.place.audible = False, True
        house.place.deafened = True
        await house.pass_time(4 * CHECK_ROOM_S, step_s=CHECK_ROOM_S)
        assert house.place.written == [MUTED, UNMUTED, DEAFENED]
        assert MUTED not in room.status()
        assert DEAFENED in room.status()
        house.place.deafened = False
        await house.pass_time(4 * CHECK_ROOM_S, step_s=CHECK_ROOM_S)
        assert house.place.written == [MUTED, UNMUTED, DEAFENED, UNDEAFENED]
