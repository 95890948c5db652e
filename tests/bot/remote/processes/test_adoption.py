"""Which rooms a gateway process that was started again takes back, and for how long it waits for them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from structlog.testing import capture_logs

from bot.errors import SetupError
from bot.remote.link.hello import RoomIdentity
from bot.remote.messages.wire_error import NotYetError
from bot.remote.processes.adoption import ASK_AGAIN_WITHIN_S, COME_WITHIN_S, Adoptions, ServerNow, refusal
from tests.fakes.clock import FakeClock
from voice.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from bot.remote.processes.adoption import AdoptedRoom

ROOM = RoomIdentity(10, 20, claim=3, run_id="a", machine="north", opened_by="mark")
NOW = ServerNow(is_served=True, has_room=False, bot_channel=20, claim=3)


@pytest.mark.parametrize(
    ("room", "now", "why"),
    [
        (ROOM, NOW, None),
        (replace(ROOM, claim=2), NOW, "stale_claim"),
        (replace(ROOM, claim=4), NOW, "stale_claim"),
        (replace(ROOM, claim=0), replace(NOW, claim=0), "stale_claim"),
        (ROOM, replace(NOW, claim=None), "claim_unknown"),
        (replace(ROOM, opened_by="other"), NOW, "other_settings"),
        (replace(ROOM, opened_by=""), NOW, "other_settings"),
        (ROOM, replace(NOW, bot_channel=21), "not_in_channel"),
        (ROOM, replace(NOW, bot_channel=None), "not_in_channel"),
        (ROOM, replace(NOW, has_room=True), "has_room"),
        (ROOM, replace(NOW, is_served=False), "not_served"),
    ],
)
def test_a_room_goes_on_only_if_all_is_as_it_was(room: RoomIdentity, now: ServerNow, why: str | None) -> None:
    """Its claim is the newest, the bot is in its channel, and the process that opened it had the same settings."""
    assert refusal(room, now, opened_by="mark") == why


class Start:
    """A gateway process that starts, on a clock of the test."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.adoptions = Adoptions("mark", self.clock)
        self.now = NOW
        # Cleared: the database takes its time.
        self.known = asyncio.Event()
        self.known.set()
        # Cleared: it takes long until the room is admitted, or goes on.
        self.admits, self.goes_on = asyncio.Event(), asyncio.Event()
        self.admits.set()
        self.goes_on.set()
        self.started: list[int] = []
        self.cut_off: list[int] = []
        self.error: Exception | None = None

    def come(self, guild_id: int = 10) -> Awaitable[None]:
        """Let the room of a server come."""
        return self.adoptions.on_room(replace(ROOM, guild_id=guild_id), cast("Any", None))

    def begin(self) -> None:
        """Be connected to Discord."""
        self.adoptions.begin(self._look, self._start)

    async def _look(self, _: RoomIdentity) -> ServerNow:
        await self.known.wait()
        return self.now

    async def _start(self, adopted: AdoptedRoom) -> None:
        if self.error is not None:
            raise self.error
        guild_id = adopted.room.guild_id
        try:
            await self.admits.wait()
            adopted.admit()
            await self.goes_on.wait()
        except asyncio.CancelledError:
            # A room takes a moment to end.
            await asyncio.sleep(0)
            self.cut_off.append(guild_id)
            raise
        self.started.append(guild_id)

    async def finished(self, *expected: int) -> tuple[bool, asyncio.Task[None]]:
        """Return whether nobody is waited for, and what waits."""
        task = asyncio.create_task(self.adoptions.finish(expected))
        for _ in range(20):
            await asyncio.sleep(0)
        return task.done(), task


@pytest.mark.asyncio
async def test_a_room_asks_again_until_discord_is_there_and_is_taken_back_then() -> None:
    """Nobody is waited for any longer. One that comes later is refused."""
    start = Start()
    with pytest.raises(NotYetError):
        start.come()
    start.begin()
    await start.come()
    assert start.started == [10]
    assert (await start.finished(10))[0]
    with pytest.raises(SetupError):
        start.come(11)


@pytest.mark.asyncio
async def test_rooms_that_do_not_come_are_given_up() -> None:
    """The time begins with the listening: a process that took long to start does not wait for those that are gone."""
    start = Start()
    start.begin()
    done, waiting = await start.finished(10)
    assert not done
    start.clock.advance(COME_WITHIN_S)
    await waiting
    late = Start()
    late.clock.advance(COME_WITHIN_S)
    late.begin()
    assert (await late.finished(10))[0]


@pytest.mark.asyncio
async def test_a_room_that_was_told_to_ask_again_is_waited_for() -> None:
    """It comes within a moment, also when the time for the others is over."""
    start = Start()
    start.clock.advance(COME_WITHIN_S)
    with pytest.raises(NotYetError):
        start.come(10)
    start.begin()
    done, waiting = await start.finished()
    assert not done
    await start.come(10)
    start.clock.advance(ASK_AGAIN_WITHIN_S / 2)
    await waiting
    assert start.started == [10]


@pytest.mark.asyncio
async def test_a_room_is_waited_for_while_it_is_looked_up_and_refused_if_that_takes_too_long() -> None:
    """Nobody takes it back while another process opens its session."""
    start = Start()
    start.clock.advance(COME_WITHIN_S)
    start.known.clear()
    start.begin()
    coming = asyncio.ensure_future(start.come(10))
    done, waiting = await start.finished()
    assert not done
    start.clock.advance(ASK_AGAIN_WITHIN_S)
    await waiting
    start.known.set()
    with pytest.raises(SetupError, match="not started by this bot"):
        await coming
    assert start.started == []


@pytest.mark.asyncio
async def test_a_room_that_may_not_go_on_is_refused_and_not_waited_for() -> None:
    """So it is opened anew at once."""
    start = Start()
    start.begin()
    start.now = replace(NOW, bot_channel=None)
    with pytest.raises(SetupError, match="not_in_channel"):
        await start.come()
    assert start.started == []
    assert (await start.finished(10))[0]


@pytest.mark.asyncio
async def test_after_a_stale_room_the_one_that_has_claimed_since_is_waited_for() -> None:
    """A process that was frozen may come first. The room of the one that took over from it goes on."""
    start = Start()
    start.begin()
    start.now = replace(NOW, claim=4)
    with pytest.raises(SetupError, match="stale_claim"):
        await start.come()
    done, waiting = await start.finished(10)
    assert not done
    start.now = NOW
    await start.come()
    start.clock.advance(COME_WITHIN_S)
    await waiting
    assert start.started == [10]


@pytest.mark.asyncio
async def test_a_room_that_cannot_be_taken_back_is_refused() -> None:
    """Its error is logged, and it is opened anew."""
    start = Start()
    start.begin()
    start.error = LinkError("The voice channel is gone.")
    with pytest.raises(SetupError):
        await start.come()
    assert (await start.finished(10))[0]


@pytest.mark.asyncio
async def test_a_server_has_one_room() -> None:
    """Two processes that both have it: the second one is refused, whatever its claim says."""
    start = Start()
    start.begin()
    await start.come()
    with pytest.raises(SetupError, match="has_room"):
        await start.come()
    assert start.started == [10]


@pytest.mark.asyncio
async def test_a_room_that_is_not_admitted_in_time_is_not_taken_back() -> None:
    """Nothing of it is left when its link is over, and nobody waits for it: it is opened anew."""
    start = Start()
    start.admits.clear()
    start.begin()
    coming = asyncio.ensure_future(start.come())
    done, waiting = await start.finished(10)
    assert not done
    coming.cancel()
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await coming
    assert start.cut_off == [10]
    start.clock.advance(COME_WITHIN_S)
    await waiting
    assert (start.started, [line["reason"] for line in logs]) == ([], ["too_slow"])


@pytest.mark.asyncio
async def test_a_room_that_is_admitted_is_taken_back_although_its_link_ends() -> None:
    """It has its seat, so it learns of the end of its link by itself."""
    start = Start()
    start.goes_on.clear()
    start.begin()
    await start.come()
    done, waiting = await start.finished(10)
    assert not done
    start.goes_on.set()
    start.clock.advance(COME_WITHIN_S)
    await waiting
    assert (start.started, start.cut_off) == ([10], [])


@pytest.mark.asyncio
async def test_a_defect_that_keeps_a_room_from_being_taken_back_is_logged() -> None:
    """Nobody awaits the taking back: the room's process is only told that it may not go on."""
    start = Start()
    start.begin()
    start.error = KeyError("walrus")
    with capture_logs() as logs, pytest.raises(SetupError):
        await start.come()
    assert [(line["event"], line["task"]) for line in logs] == [("task_failed", "room-taken-back-10")]
