"""A guild's room starts again after a crash and in the channel it is moved to; no other room is affected."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from bot.channel.port import ListenRequest
from bot.room import guild_room
from bot.room.endings import EMPTY, EXPELLED, LONGEST, NO_TRANSCRIPT, NOT_ANNOUNCED
from bot.room.guild_room import RESTARTING
from bot.room.restarts import DATABASE_PAUSE_S, MOST_CRASHES
from bot.room.supervisor import RoomSupervisor
from bot.server_settings import ListenOnly, ServerSettings
from bot.store.claims import STALE
from compaction.errors import StaleOwnerError, StoreError
from tests.fakes.brain import until
from tests.fakes.place import ADA, FakePlace
from tests.fakes.rooms import FakeRoom, House
from voice.errors import LinkError

if TYPE_CHECKING:
    from bot.channel.port import Place
    from bot.texts.text import Text


async def some_turns(turns: int) -> None:
    """Let the event loop run so often."""
    for _ in range(turns):
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_a_crash_is_told_and_mended_and_touches_no_other_room() -> None:
    """A crash is reported in the channel and the room starts again after a pause. Other rooms are not affected."""
    house, place, other = House(), FakePlace(), FakePlace(guild_id=11)
    async with house.supervisor as rooms:
        await rooms.join(place)
        await rooms.join(other)
        house.rooms[0].end.set_exception(ExceptionGroup("tasks", [ValueError("secret words")]))
        await until(lambda: house.clock.sleeping == 1)
        assert place.written == ["Something in me broke. I am starting again in 1 s; what was said before is kept."]
        house.clock.advance(1.0)
        await until(lambda: len(house.rooms) == 3 and house.rooms[2].opened.is_set())
        assert not house.rooms[1].end.done()
        assert other.written == []


@pytest.mark.asyncio
async def test_a_room_that_keeps_crashing_is_given_up() -> None:
    """The pauses between restarts grow. After too many crashes the room is given up, and the channel is informed."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        for crash in range(MOST_CRASHES):
            house.rooms[crash].end.set_exception(LinkError("Discord hung up."))
            await until(lambda: house.clock.sleeping == 1)
            house.clock.advance(2.0**crash)
            await until(lambda crash=crash: len(house.rooms) == crash + 2 and house.rooms[-1].opened.is_set())  # type: ignore[misc]
        house.rooms[-1].end.set_exception(LinkError("Discord hung up."))
        await until(lambda: rooms.place_of(place.guild_id) is None)
    assert place.written[1] == "Discord hung up. I am starting again in 2 s; what was said before is kept."
    assert place.written[-1].endswith("so I stop. Use /join to call me back.")


@pytest.mark.asyncio
async def test_a_room_that_has_given_up_leaves_no_session_open() -> None:
    """It would bring the bot back at its next start: here it may not join where it was moved."""
    house, place, side = House(), FakePlace(), FakePlace(channel_id=21)
    async with RoomSupervisor(house.make, clock=house.clock, end_session=house.end_session) as rooms:
        await rooms.join(place)
        house.fails_to_open = LinkError("I may not join Lounge.")
        rooms.on_bot_moved(side)
        await until(lambda: rooms.room_count == 0)
    assert house.sessions_ended == [side]


@pytest.mark.asyncio
async def test_a_bot_that_is_taken_out_right_after_it_was_dragged_stays_away() -> None:
    """Its old room is still ending, and has no connection any more that would see it. It comes by itself to neither
    channel before that has been empty.
    """
    house = House()
    place, side = FakePlace(people=[ADA]), FakePlace(channel_id=21, people=[ADA])
    rules = ServerSettings(auto_join_channels=(place.channel_id, side.channel_id), auto_join_people=1)
    await house.servers.change(place.guild_id, lambda _: rules, by=1)
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.rooms[0].stored.clear()
        rooms.on_bot_moved(side)
        await some_turns(2)
        rooms.on_bot_taken_out(place.guild_id)
        assert rooms.place_of(place.guild_id) is None
        house.rooms[0].stored.set()
        await until(lambda: rooms.room_count == 0)
        for there in (place, side):
            rooms.on_arrival(there, ADA, came_from=None)
        await some_turns(5)
        assert not house.is_visiting
    assert len(house.rooms) == 1


@pytest.mark.asyncio
async def test_a_bot_that_is_taken_out_in_a_pause_stays_away() -> None:
    """The next room would come back."""
    house, place = House(), FakePlace()
    async with RoomSupervisor(house.make, clock=house.clock, end_session=house.end_session) as rooms:
        await rooms.join(place)
        house.rooms[0].end.set_exception(LinkError("Discord hung up."))
        await until(lambda: house.clock.sleeping == 1)
        rooms.on_bot_taken_out(place.guild_id)
        await until(lambda: rooms.room_count == 0)
    assert (len(house.rooms), house.sessions_ended) == (1, [place])


@pytest.mark.asyncio
async def test_a_room_with_a_connection_sees_by_itself_that_the_bot_was_taken_out() -> None:
    """One that opens for the first time has asked to come in, and its connection tells a late word about the one before
    from its own.
    """
    house, place = House(), FakePlace()
    house.opens = False
    async with house.supervisor as rooms:
        rooms.on_bot_taken_out(place.guild_id)
        joining = asyncio.create_task(rooms.join(place))
        await until(lambda: bool(house.rooms))
        rooms.on_bot_taken_out(place.guild_id)
        house.rooms[0].opened.set()
        await joining
        rooms.on_bot_taken_out(place.guild_id)
        assert not house.rooms[0].end.done()


@pytest.mark.asyncio
async def test_a_room_waits_for_the_database_however_long_it_is_away() -> None:
    """A room that crashes in an outage is not given up. The channel is told once, and health shows it."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.fails_to_open = StoreError("The database is away.")
        with capture_logs() as logs:
            house.rooms[0].end.set_exception(LinkError("Discord hung up."))
            await until(lambda: house.clock.sleeping == 1)
            house.clock.advance(1.0)
            for attempt in range(2 * MOST_CRASHES):
                await until(lambda attempt=attempt: (len(house.rooms), house.clock.sleeping) == (attempt + 2, 1))  # type: ignore[misc]
                assert rooms.faults() == [RESTARTING]
                if attempt == 2 * MOST_CRASHES - 1:
                    house.fails_to_open = None
                house.clock.advance(DATABASE_PAUSE_S)
            await until(lambda: rooms.faults() == [])
        assert house.rooms[-1].opened.is_set()
        assert [line["event"] for line in logs].count("room_not_opened") == 1
        waits = f"The database is away. I try again every {DATABASE_PAUSE_S:g} s until I can store again; what"
        assert sum(told.startswith(waits) for told in place.written) == 1
        # It has crashed twice by now.
        house.rooms[-1].end.set_exception(LinkError("Discord hung up."))
        await until(lambda: place.written[-1].startswith("Discord hung up. I am starting again in 2 s"))


@pytest.mark.asyncio
async def test_a_room_that_loses_the_database_while_it_runs_has_crashed() -> None:
    """A part of it may be at fault; only one that cannot begin waits."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.rooms[0].end.set_exception(StoreError("The database is away."))
        await until(lambda: house.clock.sleeping == 1)
        assert place.written == ["The database is away. I am starting again in 1 s; what was said before is kept."]


@pytest.mark.asyncio
async def test_a_room_that_waits_for_the_database_can_be_sent_away() -> None:
    """And whoever calls the bot meanwhile gets the sentence at once."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.fails_to_open = StoreError("The database is away.")
        house.rooms[0].end.set_exception(LinkError("Discord hung up."))
        await until(lambda: house.clock.sleeping == 1)
        house.clock.advance(1.0)
        await until(lambda: (len(house.rooms), house.clock.sleeping) == (2, 1))
        assert await rooms.leave(place.guild_id)
        assert rooms.place_of(place.guild_id) is None
        with pytest.raises(StoreError, match="is away"):
            await rooms.join(place)


@pytest.mark.asyncio
async def test_a_room_that_another_process_has_taken_over_stays_ended() -> None:
    """It is not started again, even if somebody has just moved the bot; the log and the channel say why."""
    house, place, other = House(), FakePlace(), FakePlace(channel_id=30)
    async with house.supervisor as rooms:
        await rooms.join(place)
        with capture_logs() as logs:
            house.rooms[0].end.set_exception(ExceptionGroup("tasks", [StaleOwnerError(STALE)]))
            rooms.on_bot_moved(other)
            await until(lambda: rooms.room_count == 0)
        assert len(house.rooms) == 1
    assert place.written == [STALE]
    assert [(each["event"], each["log_level"]) for each in logs] == [("room_taken_over", "error")]


@pytest.mark.asyncio
async def test_a_room_that_does_not_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that takes too long to close nor one that resists its end keeps the process."""
    monkeypatch.setattr(guild_room, "CLOSE_TIMEOUT_S", 0.0)
    monkeypatch.setattr(guild_room, "CUT_OFF_S", 0.0)
    house, place = House(), FakePlace()
    stuck: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def resist() -> str:
        house.rooms[0].opened.set()
        try:
            return await stuck
        except asyncio.CancelledError:
            await asyncio.shield(let_go.wait())
            raise

    let_go = asyncio.Event()
    monkeypatch.setattr(FakeRoom, "run", lambda _: resist())
    with capture_logs() as logs:
        async with house.supervisor as rooms:
            await rooms.join(place)
    assert [line["event"] for line in logs] == ["room_close_timed_out"]
    let_go.set()
    await until(lambda: rooms.place_of(place.guild_id) is None)


@pytest.mark.asyncio
async def test_a_room_that_crashes_while_it_is_ending_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has sent the bot away, so nobody wants the room back."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        end = house.rooms[0].end
        monkeypatch.setattr(house.rooms[0], "close", lambda _: end.set_exception(LinkError("Discord hung up.")))
        assert await rooms.leave(place.guild_id)
        assert rooms.place_of(place.guild_id) is None
    assert len(house.rooms) == 1


@pytest.mark.asyncio
async def test_leaving_while_a_crashed_room_rests_ends_it() -> None:
    """/leave during the pause after a crash cancels the restart."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.rooms[0].end.set_exception(LinkError("Discord hung up."))
        await until(lambda: house.clock.sleeping == 1)
        assert await rooms.leave(place.guild_id)
        assert rooms.place_of(place.guild_id) is None
    assert len(house.rooms) == 1


@pytest.mark.parametrize("given_up", [True, False])
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5])
@pytest.mark.asyncio
async def test_a_crashed_room_that_is_sent_away_once_more_ends_its_session_all_the_same(
    turns: int, *, given_up: bool
) -> None:
    """Whenever /leave comes while that goes on.

    `turns`: of the event loop. `given_up`: after the last crash; else it was sent away in the pause after the first.
    """
    house, place = House(), FakePlace()
    begins, ended = asyncio.Event(), list[int]()

    async def end_session(at: Place) -> None:
        begins.set()
        await some_turns(3)
        ended.append(at.guild_id)

    async with RoomSupervisor(house.make, clock=house.clock, end_session=end_session) as rooms:
        await rooms.join(place)
        for crash in range(MOST_CRASHES if given_up else 0):
            house.rooms[-1].end.set_exception(LinkError("Discord hung up."))
            await until(lambda: house.clock.sleeping == 1)
            house.clock.advance(2.0**crash)
            await until(lambda crash=crash: len(house.rooms) == crash + 2 and house.rooms[-1].opened.is_set())  # type: ignore[misc]
        house.rooms[-1].end.set_exception(LinkError("Discord hung up."))
        await until(lambda: begins.is_set() or house.clock.sleeping == 1)
        first = None if given_up else asyncio.create_task(rooms.leave(place.guild_id), name="leave")
        await begins.wait()
        await some_turns(turns)
        await rooms.leave(place.guild_id)
        if first is not None:
            await first
        assert ended == [place.guild_id]
        assert rooms.room_count == 0


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5])
@pytest.mark.asyncio
async def test_a_room_is_cut_off_only_once(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    """Somebody who waits for the bot to leave sends it away again. What the room still does when it is cut off, such as
    storing turns, is not broken off by that. `turns`: of the event loop.
    """
    monkeypatch.setattr(guild_room, "CLOSE_TIMEOUT_S", 0.0)
    house, place, stored = House(), FakePlace(), list[str]()

    async def hang(room: FakeRoom) -> str:
        room.opened.set()
        try:
            return await asyncio.Event().wait() and "never"
        finally:
            await some_turns(6)
            stored.append("turns")

    monkeypatch.setattr(FakeRoom, "run", hang)
    async with house.supervisor as rooms:
        await rooms.join(place)
        leaving = []
        for _ in range(2):
            leaving.append(asyncio.create_task(rooms.leave(place.guild_id), name="leave"))
            await some_turns(turns)
        await asyncio.gather(*leaving)
        assert stored == ["turns"]
        assert rooms.room_count == 0


@pytest.mark.parametrize(
    ("crashes", "is_sent_away", "ends"),
    [(True, True, True), (True, False, False), (False, True, False)],
    ids=["crashed and sent away", "crashed as the process ends", "ended in order"],
)
@pytest.mark.asyncio
async def test_a_bot_that_is_sent_away_after_a_crash_leaves_no_session_open(
    *, crashes: bool, is_sent_away: bool, ends: bool
) -> None:
    """An open session would bring it back at its next start. Where the process ends, that is what people want, and a
    room that ends in order ends its session by itself.
    """
    house, place = House(), FakePlace()
    async with RoomSupervisor(house.make, clock=house.clock, end_session=house.end_session) as rooms:
        await rooms.join(place)
        if crashes:
            house.rooms[0].end.set_exception(LinkError("Discord hung up."))
            await until(lambda: house.clock.sleeping == 1)
        if is_sent_away:
            assert await rooms.leave(place.guild_id)
    assert house.sessions_ended == ([place] if ends else [])


@pytest.mark.parametrize(("is_sent_away", "ends"), [(True, True), (False, False)])
@pytest.mark.asyncio
async def test_a_room_that_could_not_store_its_end_leaves_no_session_open(*, is_sent_away: bool, ends: bool) -> None:
    """It ends in order while the database is away, which answers again a moment later. Where the process ends, the next
    one goes on with the session.
    """
    house, place = House(), FakePlace()
    async with RoomSupervisor(house.make, clock=house.clock, end_session=house.end_session) as rooms:
        await rooms.join(place)
        house.rooms[0].left_session_open = True
        if is_sent_away:
            assert await rooms.leave(place.guild_id)
    assert house.sessions_ended == ([place] if ends else [])


@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.asyncio
async def test_a_session_that_could_not_be_ended_is_left_to_the_next_room_that_opens(*, opens: bool) -> None:
    """The database is away while the bot leaves, and still when it is called again. A room that opens all the same has
    the session, which is open too. One that does not open leaves it to be ended.
    """
    house, place = House(), FakePlace()
    async with RoomSupervisor(house.make, clock=house.clock, end_session=house.end_session) as rooms:
        await rooms.join(place)
        house.database_away = StoreError("The database is away.")
        house.rooms[0].left_session_open = True
        assert await rooms.leave(place.guild_id)
        assert (house.endings_tried, house.sessions_ended) == (1, [])
        if not opens:
            house.fails_to_open = house.database_away
            with pytest.raises(StoreError, match="is away"):
                await rooms.join(place)
            await until(lambda: rooms.room_count == 0)
        else:
            await rooms.join(place)
        house.database_away = None
        tried = house.endings_tried
        house.clock.advance(2 * DATABASE_PAUSE_S)
        await some_turns(10)
        assert (house.endings_tried > tried) is (not opens)
        assert house.sessions_ended == ([] if opens else [place])


@pytest.mark.asyncio
async def test_a_bot_that_is_sent_away_ends_no_session_of_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The room learns only while it ends that another process has taken it over, which goes on with the session."""
    house, place = House(), FakePlace()
    async with RoomSupervisor(house.make, clock=house.clock, end_session=house.end_session) as rooms:
        await rooms.join(place)
        end = house.rooms[0].end
        monkeypatch.setattr(house.rooms[0], "close", lambda _: end.set_exception(StaleOwnerError(STALE)))
        assert await rooms.leave(place.guild_id)
    assert (place.written, house.sessions_ended) == ([STALE], [])


@pytest.mark.asyncio
async def test_each_outage_is_told() -> None:
    """A room that has waited for the database and was open since says so again when the next one cannot open."""
    house, place, side = House(), FakePlace(), FakePlace(channel_id=21)
    away = StoreError("The database is away.")
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.fails_to_open = away
        house.rooms[0].end.set_exception(LinkError("Discord hung up."))
        await until(lambda: house.clock.sleeping == 1)
        house.clock.advance(1.0)
        await until(lambda: (len(house.rooms), house.clock.sleeping) == (2, 1))
        house.fails_to_open = None
        house.clock.advance(DATABASE_PAUSE_S)
        await until(lambda: len(house.rooms) == 3 and house.rooms[2].opened.is_set())
        house.fails_to_open = away
        with capture_logs() as logs:
            rooms.on_bot_moved(side)
            await until(lambda: house.clock.sleeping == 1)
    assert [each["event"] for each in logs if each["log_level"] == "error"] == ["room_not_opened"]
    assert [each.startswith("The database is away. I try again") for each in side.written] == [True]


@pytest.mark.asyncio
async def test_a_bot_that_is_dragged_opens_a_room_where_it_is_now() -> None:
    """If the bot is moved, the old room ends in order and a new one opens in the other channel. That room can be left
    or moved too.
    """
    house, place = House(), FakePlace()
    side, attic = FakePlace(channel_id=21), FakePlace(channel_id=22)
    async with house.supervisor as rooms:
        await rooms.join(place)
        rooms.on_bot_moved(FakePlace(guild_id=11))
        for there in (side, attic):
            rooms.on_bot_moved(there)
            await until(lambda: house.rooms[-1].place is there and house.rooms[-1].opened.is_set())  # noqa: B023
            assert rooms.place_of(place.guild_id) is there
        assert await rooms.leave(place.guild_id)
        assert rooms.place_of(place.guild_id) is None
    assert [room.end.result() for room in house.rooms] == ["moved", "moved", "left"]
    assert place.written == side.written == attic.written == []


@pytest.mark.parametrize(
    ("reason", "comes"),
    [(EMPTY, True), (LONGEST, True), (NOT_ANNOUNCED, True), (NO_TRANSCRIPT, True), (EXPELLED, False)],
)
@pytest.mark.asyncio
async def test_a_bot_that_is_dragged_while_its_room_ends_by_itself_comes_along(
    monkeypatch: pytest.MonkeyPatch, reason: str, *, comes: bool
) -> None:
    """Whoever drags it wants it there, and the session that begins there is a new one. Who takes it out does not."""
    house, place, side = House(), FakePlace(), FakePlace(channel_id=21)
    async with house.supervisor as rooms:
        await rooms.join(place)
        # Its first reason counts.
        monkeypatch.setattr(house.rooms[0], "close", lambda _: None)
        house.rooms[0].end_by_itself(reason)
        rooms.on_bot_moved(side)
        house.rooms[0].end.set_result(reason)
        await until(lambda: rooms.room_count == 0 or (len(house.rooms) == 2 and house.rooms[1].opened.is_set()))
        assert rooms.place_of(place.guild_id) is (side if comes else None)


@pytest.mark.asyncio
async def test_a_room_that_takes_the_bot_back_is_not_moved() -> None:
    """A room that goes on where it was takes the bot out of the channel that it was moved to meanwhile."""
    house, place, side = House(), FakePlace(), FakePlace(channel_id=21)
    async with house.supervisor as rooms:
        await rooms.join(place)
        rooms.on_bot_moved(FakePlace(channel_id=place.channel_id))
        assert not house.rooms[0].end.done()
        rooms.on_bot_moved(side)
        rooms.on_bot_moved(place)
        await until(lambda: len(house.rooms) == 2 and house.rooms[1].opened.is_set())
        assert house.rooms[1].place is place


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("asked", "stored", "opens", "expected"),
    [
        (None, None, True, None),
        (ListenRequest("file", 601), ListenOnly("one", "file", 601), True, ListenRequest("file", 601)),
        # The room has resumed a session in which the bot only writes down.
        (None, ListenOnly("one", "thread", 601), True, ListenRequest("thread", 601)),
        # What is stored is of an earlier session.
        (None, ListenOnly("one", "thread", 601), False, None),
        # The chat of the channel that it leaves.
        (ListenRequest("thread", 20), ListenOnly("one", "thread", 20), True, ListenRequest("thread", 21)),
    ],
)
async def test_a_bot_that_only_writes_down_does_so_where_it_is_moved(
    asked: ListenRequest | None, stored: ListenOnly | None, expected: ListenRequest | None, *, opens: bool
) -> None:
    """Also if an earlier room was asked for that, before a restart. What is said there is not written into the chat of
    the voice channel that it came from.
    """
    house, place, side = House(), FakePlace(), FakePlace(channel_id=21)
    house.opens = opens
    await house.servers.change(place.guild_id, lambda _: ServerSettings(listen_only=stored), by=1)
    async with house.supervisor as rooms:
        joining = asyncio.create_task(rooms.join(place, listen=asked))
        await until(lambda: bool(house.rooms))
        await asyncio.sleep(0)
        assert rooms.only_listens(place.guild_id) == (expected is not None)
        rooms.on_bot_moved(side)
        await until(lambda: len(house.rooms) == 2)
        assert house.rooms[1].place is side
        assert house.listens == [asked, expected]
        house.rooms[1].opened.set()
        await joining


@pytest.mark.asyncio
async def test_a_bot_that_may_not_be_where_it_was_dragged_says_so_once() -> None:
    """If the room in the new channel cannot open, the bot writes so once and does not try again."""
    house, place, side = House(), FakePlace(), FakePlace(channel_id=21)
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.fails_to_open = LinkError("I may not join Lounge.")
        rooms.on_bot_moved(side)
        await until(lambda: rooms.place_of(place.guild_id) is None)
    assert side.written == ["I could not come along. I may not join Lounge."]
    assert len(house.rooms) == 2


@pytest.mark.asyncio
async def test_a_bot_that_is_sent_away_is_not_dragged_back() -> None:
    """/leave wins over a move, whether the move comes before or after it while the room is ending."""
    house, place, side = House(), FakePlace(), FakePlace(channel_id=21)
    async with house.supervisor as rooms:
        await rooms.join(place)
        room = house.rooms[0]
        with pytest.MonkeyPatch.context() as slowly:
            slowly.setattr(room, "close", lambda _: None)
            rooms.on_bot_moved(side)
            leaving = asyncio.create_task(rooms.leave(place.guild_id), name="leaving")
            await asyncio.sleep(0)
            rooms.on_bot_moved(side)
        room.close("moved")
        assert await leaving
        assert rooms.place_of(place.guild_id) is None
    assert len(house.rooms) == 1


@pytest.mark.asyncio
async def test_a_room_that_was_followed_into_is_mended_like_any_other() -> None:
    """A crash in a room that was opened by a move is reported, and the room starts again there."""
    house, place, side = House(), FakePlace(), FakePlace(channel_id=21)
    async with house.supervisor as rooms:
        await rooms.join(place)
        rooms.on_bot_moved(side)
        await until(lambda: len(house.rooms) == 2 and house.rooms[1].opened.is_set())
        house.rooms[1].end.set_exception(LinkError("The line broke."))
        await until(lambda: house.clock.sleeping == 1)
        rooms.on_bot_moved(place)
        house.clock.advance(1.0)
        await until(lambda: len(house.rooms) == 3 and house.rooms[2].opened.is_set())
        assert house.rooms[2].place is side
        assert side.written == ["The line broke. I am starting again in 1 s; what was said before is kept."]


class UnwritablePlace(FakePlace):
    """A place where writing has a defect."""

    async def write(self, sentence: Text) -> None:
        """Fail as nobody expects."""
        raise KeyError


@pytest.mark.asyncio
async def test_what_a_rooms_task_fails_of_is_logged_at_once() -> None:
    """Nobody awaits it, and the room is over: nothing else would tell why."""
    house, place = House(), UnwritablePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        with capture_logs() as logs:
            house.rooms[0].end.set_exception(LinkError("Discord hung up."))
            await until(lambda: rooms.room_count == 0)
            await asyncio.sleep(0)
        assert [line["task"] for line in logs if line["event"] == "task_failed"] == ["room-10"]
