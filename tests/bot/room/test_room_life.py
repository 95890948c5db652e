"""What goes wrong in a room that lives: it says so and begins anew or leaves, and no turn is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn

import pytest
from structlog.typing import EventDict

from bot import events
from bot.channel.notice_queue import NoticeQueue
from bot.channel.port import HERE_ALREADY
from bot.conversation.barge_in import BargeInHandler
from bot.conversation.pauses import Pauses
from bot.errors import SetupError
from bot.room import room as room_module
from bot.room.lifecycle import FIRST_PAUSE_S
from bot.room.membership import MembershipRecorder
from bot.room.rooms import Rooms
from bot.room.watches import ClaimWatch
from tests.bot.room.room_scene import House
from tests.fakes.loop_time import pass_loop_time
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle
from voice.cancellation import CancelledInsideError
from voice.errors import RemovedFromChannelError, VoiceConnectionError


@asynccontextmanager
async def rooms_of(house: House) -> AsyncIterator[Rooms]:
    """Run the rooms of a bot in this house."""
    async with Rooms(lambda *_: house.room(), clock=house.clock) as rooms:
        yield rooms


class Fault:
    """What goes wrong in a part once `now` is set, the first time."""

    def __init__(self, kind: str) -> None:
        self.kind, self.now, self.happened = kind, asyncio.Event(), False

    async def run(self) -> None:
        await (asyncio.Event() if self.happened else self.now).wait()
        self.happened = True
        if self.kind == "raises":
            raise ValueError("secret words")
        if self.kind == "is cancelled":
            inside = asyncio.get_running_loop().create_future()
            inside.cancel()
            await inside


@pytest.mark.parametrize("kind", ["ends", "raises", "is cancelled"])
@pytest.mark.parametrize("part", [MembershipRecorder, ClaimWatch, BargeInHandler, Pauses, NoticeQueue])
async def test_a_part_that_ends_begins_the_room_anew(
    house: House, monkeypatch: pytest.MonkeyPatch, part: type, kind: str
) -> None:
    """People read it, and the next room goes on with what was said."""
    fault = Fault(kind)
    monkeypatch.setattr(part, "run", fault.run)
    async with rooms_of(house) as rooms:
        await rooms.join(house.channel)
        await house.say(ADA.id, "The budget is four hundred euros.")
        house.channel.written.clear()
        fault.now.set()
        await settle(lambda: house.channel.written)
        assert house.channel.written == [
            "Something went wrong inside me. I start again in 1 second. What was said before is safe."
        ]
        await house.pass_time(2 * FIRST_PAUSE_S)
        await settle(lambda: len(house.of(events.RoomOpened)) == 2)
        await house.say(BO.id, "So it is.")
        assert [(turn.seq, turn.parts[0].speaker) for turn in house.turns] == [(0, "Ada"), (1, "Bo")]


BROKEN = ValueError("secret words")


@pytest.mark.parametrize(
    ("what", "error", "told"),
    [
        *((what, BROKEN, ValueError) for what in ("toolbox", "new_responder", "quoting", "open_upkeep")),
        ("assemble_room", BROKEN, ValueError),
        # Of something that was cancelled elsewhere.
        ("assemble_room", asyncio.CancelledError(), CancelledInsideError),
        ("connect", VoiceConnectionError("No voice server answers."), VoiceConnectionError),
        ("connect", RemovedFromChannelError(), RemovedFromChannelError),
    ],
)
async def test_what_was_opened_for_a_room_that_cannot_be_made_is_closed(
    house: House, monkeypatch: pytest.MonkeyPatch, what: str, error: BaseException, told: type[Exception]
) -> None:
    """Who has called the bot gets the error. Nothing is left of the try, and the next one works."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    async with rooms_of(house) as rooms:
        tasks = asyncio.all_tasks()
        with monkeypatch.context() as patched:
            patched.setattr({"assemble_room": room_module, "connect": house.channel}.get(what, house), what, fail)
            with pytest.raises(told):
                await rooms.join(house.channel)
        await settle(lambda: asyncio.all_tasks() == tasks)
        assert (await house.sessions.recent(), house.channel.written) == ((), [])
        await rooms.join(house.channel)
        await house.say(ADA.id, "The budget is four hundred euros.")


async def test_a_server_has_one_room(house: House) -> None:
    """Of two who call the bot at once one is told so, and so is who calls it later. The room goes on."""
    async with rooms_of(house) as rooms:
        wishes = [rooms.join(house.channel) for _ in range(2)]
        assert sorted(type(each).__name__ for each in await asyncio.gather(*wishes, return_exceptions=True)) == [
            "NoneType",
            "SetupError",
        ]
        with pytest.raises(SetupError) as told:
            await rooms.join(house.channel)
        assert str(told.value) == HERE_ALREADY.fill(channel=house.channel.name)
        await house.say(ADA.id, "The budget is four hundred euros.")
        assert len(house.of(events.RoomOpened)) == 1


async def test_a_part_that_hangs_at_its_end_holds_nobody(
    house: House, monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]
) -> None:
    """The log says which. The room leaves, also one that ends by itself, and the others end in order."""
    hangs = asyncio.Event()

    async def hang(*_: object, **__: object) -> None:
        hangs.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(MembershipRecorder, "finish", hang)
    async with rooms_of(house) as rooms:
        await rooms.join(house.channel)
        await house.say(ADA.id, "The budget is four hundred euros.")
        opened = rooms.open(house.channel.guild_id)
        assert opened is not None
        opened.close("longest")
        await hangs.wait()
        pass_loop_time(monkeypatch, room_module.FINISH_S)
        await settle(lambda: rooms.current_channel(house.channel.guild_id) is None)
        assert [line["where"] for line in logs if line["event"] == "part_not_finished"] == ["MembershipRecorder"]
        (session,) = await house.sessions.recent()
        assert session.ended_at is not None
        assert not house.channel.shown_as_listening
        assert (await house.store.load(session.id)).segments[-1].closing
