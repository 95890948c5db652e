"""The supervisor opens, ends and restarts rooms; a crash in one room does not affect another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from bot.channel.port import MembershipChange, UnfinishedWords
from bot.errors import SetupError
from bot.health import FaultKind, HealthFault
from bot.room import supervisor
from bot.room.endings import HandedOverError, ProcessLostError
from bot.room.restarts import DATABASE_PAUSE_S, LOST_AFTER_S, MOST_CRASHES
from bot.room.supervisor import DRAINING, RESTARTING, RoomSupervisor
from bot.server_settings import ServerSettings, no_server_settings
from bot.store.claims import STALE
from bot.texts.text import Text, verbatim
from compaction.errors import StaleOwnerError, StoreError
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock
from tests.fakes.place import ADA, BO, OTHER_BOT, FakePlace
from voice.errors import LinkError, RemovedFromChannelError

if TYPE_CHECKING:
    from bot.channel.port import ListenRequest, Place
    from bot.models.voices import EmbeddedVoice


class FakeRoom:
    """A fake room that opens at once and ends or crashes when the test says so."""

    def __init__(self, place: Place, *, fails_to_open: Exception | None = None, opens: bool = True) -> None:
        self.place = place
        self.opened = asyncio.Event()
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.moves: list[MembershipChange] = []
        self._fails_to_open = fails_to_open
        self._opens = opens
        self.found: list[HealthFault] = []
        self.words: tuple[UnfinishedWords, ...] = ()
        # Set it to let the room take its time to end.
        self.stored = asyncio.Event()
        self.stored.set()

    async def run(self) -> str:
        """Open, then wait for the end."""
        if self._fails_to_open:
            raise self._fails_to_open
        if self._opens:
            self.opened.set()
        reason = await self.end
        await self.stored.wait()
        return reason

    def close(self, reason: str) -> None:
        """End with a reason."""
        if not self.end.done():
            self.end.set_result(reason)

    def on_membership(self, change: MembershipChange) -> None:
        """Keep the change."""
        self.moves.append(change)

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        """Play nothing."""
        del voice
        return None

    def faults(self) -> list[HealthFault]:
        """Return what the test says."""
        return self.found

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        """Return what the test says."""
        return self.words

    def status(self) -> Text:
        """Return the name of the channel in a sentence."""
        return verbatim(f"I am in {self.place.name}.")


class House:
    """A supervisor, its clock, and every room that it made."""

    def __init__(self) -> None:
        self.rooms: list[FakeRoom] = []
        self.clock = FakeClock()
        self.fails_to_open: Exception | None = None
        self.opens = True
        self.servers = no_server_settings()
        self.listens: list[ListenRequest | None] = []
        self.supervisor = RoomSupervisor(self._make, clock=self.clock, servers=self.servers)

    def _make(self, place: Place, listen: ListenRequest | None) -> FakeRoom:
        self.listens.append(listen)
        self.rooms.append(FakeRoom(place, fails_to_open=self.fails_to_open, opens=self.opens))
        return self.rooms[-1]


@pytest.mark.asyncio
async def test_a_room_is_joined_asked_and_left() -> None:
    """A guild has one room. A second /join is refused, and /leave reports whether there was a room."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        assert not await rooms.leave(place.guild_id)
        await rooms.join(place)
        assert rooms.place_of(place.guild_id) is place
        assert rooms.status(place.guild_id) == "I am in Lounge."
        house.rooms[-1].words = (UnfinishedWords("Ada", "the key is"),)
        assert rooms.unfinished(place.guild_id) == (UnfinishedWords("Ada", "the key is"),)
        with pytest.raises(SetupError, match=r"already.*/leave"):
            await rooms.join(place)
        assert await rooms.leave(place.guild_id)
        assert rooms.place_of(place.guild_id) is None
        assert "/join" in rooms.status(place.guild_id)
        assert rooms.unfinished(place.guild_id) == ()
        await rooms.join(place)
    assert [room.end.result() for room in house.rooms] == ["left", "stopped"]


@pytest.mark.parametrize("hangs", [True, False])
@pytest.mark.asyncio
async def test_a_room_is_over_though_discord_could_not_be_told(monkeypatch: pytest.MonkeyPatch, *, hangs: bool) -> None:
    """The bot may be left in the channel, which the log says; it can be called and sent away as before."""
    monkeypatch.setattr(supervisor, "LEFT_BEHIND_S", 0.0)
    house, place = House(), FakePlace()

    async def left_behind(_: int) -> None:
        if hangs:
            await asyncio.Event().wait()
        raise RuntimeError

    async with RoomSupervisor(house._make, clock=house.clock, left_behind=left_behind) as rooms:
        await rooms.join(place)
        with capture_logs() as logs:
            assert await rooms.leave(place.guild_id)
        assert [each["event"] for each in logs if each["log_level"] == "error"] == ["bot_left_in_channel"]
        assert rooms.room_count == 0
        await rooms.join(place)
        assert rooms.place_of(place.guild_id) is place


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("commands", "comes"),
    [
        (["leave"], False),
        (["leave", "join"], True),
        (["leave", "join", "leave"], False),
        (["leave", "join", "leave", "join"], True),
    ],
)
async def test_the_last_command_wins(commands: list[str], comes: bool) -> None:
    """Commands that follow each other while the room is still ending: the last one says whether the bot is there."""
    house = House()
    async with house.supervisor as rooms:
        await rooms.join(FakePlace())
        house.rooms[0].stored.clear()
        told = []
        for command in commands:
            place = FakePlace()
            wish = rooms.join(place) if command == "join" else rooms.leave(place.guild_id)
            told.append(asyncio.ensure_future(wish))
            await asyncio.sleep(0)
            assert rooms.place_of(place.guild_id) is (place if command == "join" else None)
        house.rooms[0].stored.set()
        *replaced, last = await asyncio.gather(*told, return_exceptions=True)
        assert not isinstance(last, BaseException)
        assert [type(each) for each in replaced if isinstance(each, BaseException)] == [SetupError] * (
            commands[:-1].count("join")
        )
        assert (rooms.place_of(FakePlace().guild_id) is not None) is comes
    assert len(house.rooms) == 1 + comes


@pytest.mark.asyncio
async def test_a_room_that_cannot_open_tells_who_asked() -> None:
    """If a room cannot open, the person who asked gets the error, and it is not tried again."""
    house, place = House(), FakePlace()
    house.fails_to_open = LinkError("No voice server answers. Try again.")
    async with house.supervisor as rooms:
        with pytest.raises(LinkError, match="No voice server"):
            await rooms.join(place)
        await until(lambda: rooms.place_of(place.guild_id) is None)
    assert len(house.rooms) == 1
    assert place.written == []


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
async def test_a_room_whose_process_is_gone_starts_again_at_once() -> None:
    """It does not wait, not even until the channel shows the sentence. If it is lost again soon, it waits."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.rooms[0].end.set_exception(ProcessLostError("The process of this room was killed."))
        await until(lambda: len(house.rooms) == 2 and house.rooms[1].opened.is_set())
        assert house.clock.sleeping == 0
        told = "The process of this room was killed. I go on at once; what was said before is kept."
        await until(lambda: place.written == [told])
        house.rooms[1].end.set_exception(ProcessLostError("The process of this room was killed."))
        await until(lambda: house.clock.sleeping == 1)


@pytest.mark.asyncio
@pytest.mark.parametrize(("error", "after_s"), [(ProcessLostError, LOST_AFTER_S), (HandedOverError, 0.0)])
async def test_machines_that_fail_or_leave_one_after_the_other_cost_no_pause(
    error: type[ProcessLostError], after_s: float
) -> None:
    """A room goes on at once each time, and the channel is told each time, however slowly Discord shows it."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        for number in range(3):
            house.clock.advance(after_s)
            house.rooms[number].end.set_exception(error("The machine is gone."))
            await until(lambda number=number: len(house.rooms) == number + 2 and house.rooms[-1].opened.is_set())  # type: ignore[misc]
            assert house.clock.sleeping == 0
        await until(
            lambda: place.written == ["The machine is gone. I go on at once; what was said before is kept."] * 3
        )


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
async def test_a_room_waits_for_the_database_however_long_it_is_away() -> None:
    """A room that has lost its process in an outage is not given up. The channel is told once, and health shows it."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.fails_to_open = StoreError("The database is away.")
        with capture_logs() as logs:
            house.rooms[0].end.set_exception(ProcessLostError("The process of this room was killed."))
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
        # It has lost its process once by now, and crashed once.
        house.rooms[-1].end.set_exception(LinkError("Discord hung up."))
        await until(lambda: place.written[-1].startswith("Discord hung up. I am starting again in 2 s"))


@pytest.mark.asyncio
async def test_a_room_that_ran_on_waits_for_the_database_too() -> None:
    """The bot was started again in an outage and could not take it back. Nobody would call the bot."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        away = StoreError("The database is away.")
        house.fails_to_open = away
        with pytest.raises(StoreError, match="is away"):
            await rooms.join(place, room=FakeRoom(place, fails_to_open=away))
        for attempt in range(2 * MOST_CRASHES):
            await until(lambda attempt=attempt: (len(house.rooms), house.clock.sleeping) == (attempt, 1))  # type: ignore[misc]
            assert (rooms.place_of(place.guild_id), rooms.faults()) == (place, [RESTARTING])
            if attempt == 2 * MOST_CRASHES - 1:
                house.fails_to_open = None
            house.clock.advance(DATABASE_PAUSE_S)
        await until(lambda: rooms.faults() == [])
        assert house.rooms[-1].opened.is_set()
        assert len(place.written) == 1, "that it waits is told once"
        with pytest.raises(LinkError):
            await rooms.join(FakePlace(guild_id=11), room=FakeRoom(place, fails_to_open=LinkError("Discord hung up.")))
        assert rooms.place_of(11) is None, "another failure is told to who starts the bot"


@pytest.mark.asyncio
async def test_a_room_that_loses_the_database_while_it_runs_has_crashed() -> None:
    """Its process or a part of it may be at fault; only one that cannot begin waits."""
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
        house.rooms[0].end.set_exception(ProcessLostError("The process of this room was killed."))
        await until(lambda: house.clock.sleeping == 1)
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
            await until(lambda: rooms.place_of(place.guild_id) is None)
        assert len(house.rooms) == 1
    assert place.written == [STALE]
    assert [(each["event"], each["log_level"]) for each in logs] == [("room_taken_over", "error")]


@pytest.mark.asyncio
async def test_a_room_that_does_not_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that takes too long to close nor one that resists its end keeps the process."""
    monkeypatch.setattr(supervisor, "CLOSE_TIMEOUT_S", 0.0)
    monkeypatch.setattr(supervisor, "CUT_OFF_S", 0.0)
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


@pytest.mark.asyncio
async def test_movements_reach_the_room_of_that_channel_alone() -> None:
    """A room gets the membership changes of its own channel only."""
    house, place = House(), FakePlace()
    joined = MembershipChange(ADA, joined=True)
    async with house.supervisor as rooms:
        await rooms.join(place)
        rooms.on_membership(place.guild_id, place.channel_id, joined)
        rooms.on_membership(place.guild_id, 999, joined)
        rooms.on_membership(12, place.channel_id, joined)
        assert house.rooms[0].moves == [joined]


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
async def test_a_bot_that_may_not_be_where_it_was_dragged_says_so_once() -> None:
    """If the room in the new channel cannot open, the bot writes so once and does not try again."""
    house, place, side = House(), FakePlace(), FakePlace(channel_id=21)
    async with house.supervisor as rooms:
        await rooms.join(place)
        house.fails_to_open = LinkError("The bot may not join Lounge.")
        rooms.on_bot_moved(side)
        await until(lambda: rooms.place_of(place.guild_id) is None)
    assert side.written == ["I could not come along. The bot may not join Lounge."]
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


@pytest.mark.asyncio
async def test_abandoned_rooms_end_without_a_goodbye() -> None:
    """Abandoned rooms are cancelled without an orderly end, as after a SIGKILL."""
    house, place = House(), FakePlace()
    async with house.supervisor as rooms:
        await rooms.join(place)
        await rooms.abandon()
        assert rooms.place_of(place.guild_id) is None
    assert house.rooms[0].end.cancelled()


@pytest.mark.asyncio
async def test_it_comes_by_itself_and_not_again_where_it_was_sent_away() -> None:
    """With enough people the bot comes. After /leave it stays away until the channel has been empty."""
    house, place = House(), FakePlace(people=[ADA])
    rules = ServerSettings(auto_join_channels=(place.channel_id,), auto_join_people=2)
    await house.servers.change(place.guild_id, rules, by=1)
    async with house.supervisor as rooms:
        rooms.on_arrival(place, ADA, came_from=None)
        rooms.on_arrival(place, OTHER_BOT, came_from=None)
        place.people = [ADA, BO]
        rooms.on_arrival(place, BO, came_from=None)
        rooms.on_arrival(place, BO, came_from=None)
        await until(lambda: len(house.rooms) == 1 and not rooms._visits)
        await rooms.leave(place.guild_id)
        rooms.on_arrival(place, BO, came_from=None)
        rooms.on_departure(place)
        rooms.on_arrival(place, BO, came_from=None)
        assert rooms.place_of(place.guild_id) is None
        place.people = []
        rooms.on_departure(place)
        place.people = [ADA, BO]
        rooms.on_arrival(place, BO, came_from=None)
        await until(lambda: len(house.rooms) == 2 and house.rooms[1].opened.is_set())
    assert place.written == []


@pytest.mark.asyncio
async def test_being_taken_out_before_it_is_connected_is_told_and_respected() -> None:
    """Whoever called the bot reads why it did not come, and it does not come by itself either."""
    house, place = House(), FakePlace(people=[ADA])
    await house.servers.change(place.guild_id, ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.supervisor as rooms:
        house.opens = False
        joining = asyncio.create_task(rooms.join(place), name="joining")
        await until(lambda: bool(house.rooms))
        house.rooms[0].close("expelled")
        with pytest.raises(RemovedFromChannelError, match="took the bot out"):
            await joining
        assert rooms.room_count == 0
        rooms.on_arrival(place, ADA, came_from=None)
        await until(lambda: not rooms._visits)
    assert len(house.rooms) == 1


@pytest.mark.asyncio
async def test_it_goes_along_with_the_last_one() -> None:
    """When the last person goes to another channel, the room ends there and the next one opens here."""
    house, lounge, side = House(), FakePlace(people=[ADA, BO]), FakePlace(channel_id=21, people=[])
    await house.servers.change(lounge.guild_id, ServerSettings(follow="everybody"), by=1)
    async with house.supervisor as rooms:
        await rooms.join(lounge)
        lounge.people, side.people = [BO], [ADA]
        rooms.on_arrival(side, ADA, came_from=lounge.channel_id)
        await asyncio.sleep(0)
        assert not house.rooms[0].end.done()
        lounge.people, side.people = [], [ADA, BO]
        rooms.on_arrival(side, BO, came_from=lounge.channel_id)
        await until(lambda: rooms.place_of(lounge.guild_id) is side)
        assert house.rooms[0].end.result() == "moved"


@pytest.mark.asyncio
async def test_a_visit_that_fails_is_explained_once() -> None:
    """What is missing is written into the channel once, not at each arrival."""
    house, place = House(), FakePlace(people=[ADA])
    await house.servers.change(place.guild_id, ServerSettings(auto_join_with=(ADA.id,)), by=1)
    async with house.supervisor as rooms:
        for refused in (Text("No room."), Text("No room."), None):
            place.refused = refused
            house.fails_to_open = None if refused else LinkError("Discord hung up.")
            rooms.on_arrival(place, ADA, came_from=None)
            await until(lambda: not rooms._visits)
    assert place.written == [
        "I could not come by myself. No room.",
        "I could not come by myself. Discord hung up.",
    ]


@pytest.mark.asyncio
async def test_faults_are_those_of_its_rooms_and_of_restarts_and_the_end() -> None:
    """The supervisor gives each room's faults, one for a room that is started again, and one while all rooms end."""
    house, place, other = House(), FakePlace(), FakePlace(guild_id=11)
    deaf = HealthFault(FaultKind.ROOM_DEAF, "A room hears nobody.")
    async with house.supervisor as rooms:
        await rooms.join(place)
        await rooms.join(other)
        assert (rooms.room_count, rooms.faults()) == (2, [])
        house.rooms[0].found = [deaf]
        assert rooms.faults() == [deaf]
        house.rooms[1].end.set_exception(ValueError("broken"))
        await until(lambda: RESTARTING in rooms.faults())
        assert rooms.faults() == [deaf, RESTARTING]
        await house.clock.until_somebody_sleeps()
        house.clock.advance(60.0)
        await until(lambda: rooms.faults() == [deaf])
    assert rooms.faults() == [DRAINING]
