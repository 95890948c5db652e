"""A room in another process, seen from the gateway process: it runs, is told what people change, and can be lost."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from bot import events
from bot.channel.port import ListenRequest, MembershipChange, Person, UnfinishedWords
from bot.errors import SetupError
from bot.guild import GuildChoice, Silence
from bot.health import FaultKind, Health, HealthFault
from bot.models.voices import DEFAULT_VOICE
from bot.participation.costs import Cost
from bot.remote.link.gateway_link import GatewayLink
from bot.remote.link.message_link import MessageLink
from bot.remote.messages.room_messages import OpenRoom, SessionBegun
from bot.remote.messages.wire_error import OtherProcessError
from bot.remote.processes.placement import THIS_MACHINE
from bot.remote.room_side.room_host import LOOK_EVERY_S
from bot.room.endings import ProcessLostError
from bot.server_settings import DEFAULTS, ListenOnly
from bot.texts.text import in_language
from bot.wiring.recogniser import HANGS
from compaction.errors import StaleOwnerError, StoreError
from compaction.model import Note, NoteId, Seq, Turn, TurnKind, TurnPart
from tests.bot.monitoring.test_metrics import samples, value
from tests.bot.remote.peers import ROOM, TOKEN, linked, until
from tests.bot.remote.remote_room_scene import (
    ADA,
    BO,
    SESSION,
    TURN,
    DistantRoom,
    FakeSeat,
    House,
    living,
    pass_time,
    take_back,
)
from tests.fakes.cancellation import cancelled_elsewhere


@pytest.mark.asyncio
async def test_a_room_runs_in_its_process_until_it_is_closed() -> None:
    """It is opened with what holds now, shows its events, state and memory, and ends with the reason."""
    async with living(ListenRequest("file", 601)) as life:
        house = life.house
        told = life.distant.told
        assert (told.guild_id, told.channel_id, told.listen is not None) == (10, 20, True)
        assert told.claims_after == 70
        assert in_language(life.room.status(), "de") == "Ich bin schon in Bar. Benutze zuerst /geh."
        assert life.house.seat is not None
        life.house.seat.machine = "north"
        assert str(life.room.status()).endswith("This room runs on the machine north.")
        assert life.room.faults() == [
            HealthFault(FaultKind.ROOM_MUTE, "Nobody hears me."),
            *Health(house.clock).faults(),
        ]
        assert house.in_use == {SESSION}
        guild = await house.participation.of_guild(10)
        silenceable = guild.room
        assert silenceable is not None
        assert (silenceable.session_id, guild.listens_only) == (SESSION, True)
        life.distant.observe(events.TurnRecorded(TURN, 2.0))
        await until(lambda: len(house.seen) == 2)
        assert house.seen[1] == events.TurnRecorded(TURN, 2.0)
        ((session_id, memory),) = house.shown
        assert (session_id, memory.total_turns, memory.cursor, len(memory.window)) == (SESSION, 5, 2, 1)
        assert memory.window[0].seq == 4
        assert memory.summary is not None
        assert memory.summary.text == "Ada hid a key."
        assert memory.allowed_part(TURN) == TURN
        life.room.close("left")
        assert await life.task == "left"
        assert await life.hosting == "left"
        assert (house.in_use, guild.room) == (set(), None)


@pytest.mark.asyncio
async def test_what_somebody_is_saying_is_known_to_the_first_process() -> None:
    """/status shows it there, too, and nothing of somebody who has opted out."""
    async with living() as life:
        life.distant.observe(events.InterimTranscribed(ADA, "the key is", 2.0))
        await until(lambda: bool(life.room.unfinished()))
        assert life.room.unfinished() == (UnfinishedWords("Ada", "the key is"),)
        await life.house.participation.set_opt_out(10, ADA, out=True)
        assert life.room.unfinished() == ()


@pytest.mark.asyncio
async def test_a_room_that_ends_by_itself_says_so_at_once() -> None:
    """Who calls the bot while the last words are stored is not told that it is there."""
    async with living() as life:
        assert life.room.ending is None
        life.distant.own_end.ask("empty")
        await until(lambda: life.room.ending == "empty")
        life.distant.end.set_result("empty")
        assert await life.task == "empty"


@pytest.mark.asyncio
@pytest.mark.parametrize("left_open", [True, False])
async def test_a_room_that_could_not_store_the_end_of_its_session_says_so(*, left_open: bool) -> None:
    """Its process ends. The first one ends the session when the database answers again."""
    async with living() as life:
        life.distant.left_session_open = left_open
        life.room.close("left")
        assert await life.task == "left"
        assert life.room.left_session_open is left_open


@pytest.mark.asyncio
async def test_nothing_that_somebody_is_saying_is_shown_once_they_are_forgotten() -> None:
    """As in one process: by /forget-me here before that is answered, and by what another process has forgotten."""
    async with living() as life:
        distant = life.distant
        assert distant.guild is not None
        for person in (ADA, BO):
            distant.observe(events.InterimTranscribed(person, "the key is", 2.0))
        await until(lambda: len(life.room.unfinished()) == 2)
        await life.house.participation.on_forgetting(ADA)
        assert life.room.unfinished() == (UnfinishedWords("Bo", "the key is"),)
        distant.guild.consent.forgotten_until[BO] = 2.0
        await pass_time(life, 1.0)
        await until(lambda: not life.room.unfinished())


@pytest.mark.asyncio
async def test_an_opt_out_is_in_effect_in_the_room_before_it_is_confirmed() -> None:
    """By then the person is not heard there, what was made of their words is dropped, and the dashboard hides it."""
    async with living() as life:
        house = life.house
        await house.participation.set_opt_out(10, ADA, out=True)
        assert life.distant.guild is not None
        assert life.distant.guild.excludes(ADA)
        assert life.distant.calls == {f"out {ADA} True": 1}
        assert house.opt_outs.out == {10: frozenset({ADA})}
        life.distant.observe(events.TurnRecorded(replace(TURN, parts=(TurnPart(str(BO), "Bo", "Yes."),)), 2.0))
        await until(lambda: len(house.seen) == 2)
        memory = house.shown[0][1]
        assert memory.allowed_part(TURN).parts == ()


@pytest.mark.asyncio
async def test_what_the_bot_said_of_somebodys_screen_is_hidden_when_they_opt_out() -> None:
    """They may never have said a word."""
    answer = Turn(Seq(4), TurnKind.ASSISTANT, 2.0, 3.0, (TurnPart("0", "Roomtone", "A map of Ada's garden."),))
    async with living() as life:
        life.distant.observe(events.ScreenNoted(Note(NoteId("n"), 1.0, "Ada", "a map", person_id=str(ADA)), 1.0))
        await until(lambda: len(life.house.seen) == 2)
        memory = life.house.shown[0][1]
        assert memory.allowed_part(answer) == answer
        await life.house.participation.set_opt_out(10, ADA, out=True)
        assert memory.allowed_part(answer).parts == ()


@pytest.mark.asyncio
async def test_an_opt_out_in_a_rooms_first_moment_is_confirmed_by_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The room may be open before the answer to the request to open it is handled."""
    ask, may_go_on = MessageLink.ask, asyncio.Event()

    async def answered_late(link: MessageLink, request: Any, **within: float) -> Any:
        answer = await ask(link, request, **within)
        if isinstance(request, OpenRoom):
            await may_go_on.wait()
        return answer

    monkeypatch.setattr(MessageLink, "ask", answered_late)
    async with living() as life:
        await life.house.participation.set_opt_out(10, ADA, out=True)
        assert life.distant.calls == {f"out {ADA} True": 1}
        may_go_on.set()
        life.room.close("left")
        assert await life.task == "left"


@pytest.mark.parametrize(("may_go_on", "fenced"), [(False, []), (True, [10])])
@pytest.mark.asyncio
async def test_a_room_that_does_not_confirm_is_ended_first(
    monkeypatch: pytest.MonkeyPatch, fenced: list[int], *, may_go_on: bool
) -> None:
    """Nobody may be heard in it against their wish; the command succeeds because the process is gone. One with other
    rooms, or of another machine, may live on, so the room is fenced off before the command is answered.
    """
    monkeypatch.setattr(FakeSeat, "may_go_on", may_go_on)
    monkeypatch.setattr("bot.remote.gateway_side.remote_participation.CONFIRM_WITHIN_S", 0.0)
    async with living() as life:
        await life.house.participation.set_opt_out(10, ADA, out=True)
        assert life.house.fenced == fenced
        with pytest.raises(ProcessLostError):
            await life.task
        assert life.house.seat is not None
        assert not life.house.seat.is_open


@pytest.mark.asyncio
async def test_what_people_change_reaches_the_room() -> None:
    """Silence, forgetting, the server's choices and settings, and who comes and goes."""
    async with living() as life:
        house, distant = life.house, life.distant
        await house.participation.silence_for_now(10, by=ADA)
        assert distant.guild is not None
        assert distant.guild.silence == Silence(session_id=SESSION)
        await house.participation.on_forgetting(ADA)
        await house.participation.on_forgotten([SESSION])
        assert distant.calls == {"stop": 1, f"forgetting {ADA}": 1, "forgotten": 1}
        (refreshing,) = house.upkeeps
        await refreshing.refresh()
        assert house.upkeep.reads == 2
        await house.choices.choose(10, lambda _: GuildChoice(persona="Speak like a pirate."), by=ADA)
        await house.servers.change(10, lambda _: replace(DEFAULTS, language="de"), by=ADA)
        life.room.on_membership(MembershipChange(Person(BO, "Bo", is_bot=False), joined=True))
        await until(lambda: distant.moves and house.distant_servers.of(10) != DEFAULTS)
        assert distant.moves == [MembershipChange(Person(BO, "Bo", is_bot=False), joined=True)]
        assert house.distant_choices.told.persona == "Speak like a pirate."
        assert house.distant_servers.of(10).language == "de"
        assert str(await life.room.play_sample(DEFAULT_VOICE)) == f"I could not speak in {DEFAULT_VOICE.name} now."
        assert house.upkeep.loaded == [DEFAULT_VOICE]


@pytest.mark.asyncio
async def test_a_room_stores_what_waits_before_somebody_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """If its store refuses that, or it does not answer, the person is told to try again, and the room goes on."""
    async with living() as life:
        (room,) = life.house.upkeeps
        await room.store_waiting()
        assert life.house.upkeep.stores == 1
        life.house.upkeep.store_fails = StoreError("The disk is full.")
        with pytest.raises(StoreError, match="disk is full"):
            await room.store_waiting()
        monkeypatch.setattr("bot.remote.gateway_side.remote_participation.STORE_WITHIN_S", 0.0)
        with pytest.raises(StoreError, match="did not answer"):
            await room.store_waiting()
        assert life.house.seat is not None
        assert life.house.seat.is_open
        life.room.close("left")
        await life.task
        await room.store_waiting()


@pytest.mark.asyncio
async def test_what_the_room_changes_reaches_everybody_else() -> None:
    """A silence that was asked for aloud is stored once, here; costs count in the server's hour."""
    async with living() as life:
        house, distant = life.house, life.distant
        assert distant.guild is not None
        distant.guild.silence = Silence(session_id=SESSION)
        await house.distant.store_silence(distant.guild, by=ADA)
        guild = await house.participation.of_guild(10)
        assert guild.silence == Silence(session_id=SESSION)
        assert house.choices.stored[10].silence == Silence(session_id=SESSION)
        distant.guild.costs.add(Cost(1, 20, 3.5), now=house.clock.monotonic())
        await until(lambda: guild.costs.total == Cost(1, 20, 3.5))
        distant.guild.tell("words", frozenset({ADA}))
        await until(lambda: guild.consent.told_by("words") == {ADA})
        listens = ListenOnly(SESSION, "file", 601)
        await house.distant_servers.change(10, lambda _: replace(DEFAULTS, listen_only=listens), by=None)
        assert house.servers.of(10).listen_only == listens


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("error", "raised", "words", "reason"),
    [
        (StoreError("The disk is full. Make room."), StoreError, "Make room", "crashed"),
        (ExceptionGroup("tasks", [StaleOwnerError("Others run it.")]), StaleOwnerError, "Others", "taken_over"),
        (ValueError("secret words"), OtherProcessError, "ValueError", "crashed"),
    ],
)
async def test_a_crash_is_raised_as_in_one_process(
    error: Exception, raised: type[Exception], words: str, reason: str
) -> None:
    """Our errors keep their class and their sentence; of others only the class crosses."""
    async with living() as life:
        life.distant.end.set_exception(error)
        with pytest.raises(raised, match=words):
            await life.task
        assert await life.hosting == reason


@pytest.mark.asyncio
async def test_a_process_whose_speech_model_hangs_for_good_ends_its_room() -> None:
    """Nobody would be understood in it any more; in another process the room goes on."""
    async with living() as life:
        life.house.health.add_fault_check(lambda: [HANGS])
        await until(lambda: life.house.clock.sleeping > 0)
        life.house.clock.advance(LOOK_EVERY_S)
        with pytest.raises(SetupError, match="has ended or hangs"):
            await life.task
        assert await life.hosting == "crashed"


@pytest.mark.asyncio
async def test_a_process_that_waits_is_kept_when_the_database_does_not_answer_it() -> None:
    """The room has not begun there. When the database is back, the same process runs it, or that of another server."""
    houses: list[House] = []
    async with linked(room=lambda end: houses.append(House(end))) as ends:
        (house,) = houses
        house.claim_fails = StoreError("The database is away.")
        hosting = asyncio.create_task(house.host.run(asyncio.Event()))
        for attempt in range(3):
            await until(lambda attempt=attempt: len(ends.links) == attempt + 1 and ends.room.is_open)  # type: ignore[misc]
            with pytest.raises(StoreError, match="The database is away"):
                await house.room(ends.gateway).run()
            assert house.seat is not None
            assert (house.seat.is_handed_back, house.seat.died.is_set(), house.fenced) == (True, False, [])
        house.claim_fails = None
        await until(lambda: len(ends.links) == 4 and ends.room.is_open)
        room = house.room(ends.gateway)
        running = asyncio.create_task(room.run())
        await until(room.opened.is_set)
        room.close("left")
        assert (await running, await hosting) == ("left", "left")


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.asyncio
async def test_whom_a_server_asks_is_settled_when_a_room_begins(*, asks: bool) -> None:
    """The bot has run for long and knows the server. Its managers change consent while a process is loaded, which is
    in effect in the room that begins then, and change it back while the room runs, which waits for the next one.
    """
    houses: list[House] = []
    async with linked(room=lambda end: houses.append(House(end))) as ends:
        (house,) = houses
        await house.servers.change(10, lambda _: replace(DEFAULTS, asks=not asks), by=ADA)
        guild = await house.participation.of_guild(10)
        assert guild.excludes(ADA) is not asks
        hosting = asyncio.create_task(house.host.run(asyncio.Event()))
        house.loads.clear()
        room = house.room(ends.gateway)
        running = asyncio.create_task(room.run())
        await asyncio.sleep(0)
        await house.servers.change(10, lambda _: replace(DEFAULTS, asks=asks), by=ADA)
        house.loads.set()
        await until(room.opened.is_set)
        distant = house.rooms[0].guild
        assert distant is not None
        assert (guild.excludes(ADA), distant.excludes(ADA)) == (asks, asks)
        await house.servers.change(10, lambda _: replace(DEFAULTS, asks=not asks), by=ADA)
        await until(lambda: house.distant_servers.of(10).asks is not asks)
        assert (guild.excludes(ADA), distant.excludes(ADA)) == (asks, asks)
        room.close("left")
        assert (await running, await hosting) == ("left", "left")


@pytest.mark.asyncio
async def test_a_room_that_runs_on_keeps_how_it_began() -> None:
    """Its link is lost after a change of consent, and the same gateway process takes it back: nobody is asked in it."""
    async with living() as life:
        house = life.house
        await house.servers.change(10, lambda _: replace(DEFAULTS, asks=True), by=ADA)
        life.task.cancel()
        await asyncio.gather(life.task, return_exceptions=True)
        await take_back(life)
        assert (house.in_use, house.fenced, life.task.done()) == ({SESSION}, [], False)
        assert life.distant.guild is not None
        guild = await house.participation.of_guild(10)
        assert (guild.excludes(ADA), life.distant.guild.excludes(ADA)) == (False, False)


@pytest.mark.asyncio
async def test_a_room_that_is_closed_while_its_process_loads_ends_at_once() -> None:
    """Also one that was closed before it began to wait."""
    house = House(GatewayLink("ws://127.0.0.1:9/room", TOKEN, ROOM))
    house.loads.clear()
    room = house.room(cast("Any", None))
    running = asyncio.create_task(room.run())
    await asyncio.sleep(0)
    room.close("left")
    room.close("stopped")
    assert await running == "left"
    early = house.room(cast("Any", None))
    early.close("left")
    assert await early.run() == "left"


@pytest.mark.asyncio
async def test_a_process_that_cannot_be_loaded_without_the_database_is_no_crash() -> None:
    """The room waits for the database then. If that answers, the process itself is at fault."""
    house = House(GatewayLink("ws://127.0.0.1:9/room", TOKEN, ROOM))
    house.load_fails, house.database_fails = SetupError("It did not start."), StoreError("The database is away.")
    with pytest.raises(StoreError, match="is away"):
        await house.room(cast("Any", None)).run()
    house.database_fails = None
    with pytest.raises(SetupError, match="did not start"):
        await house.room(cast("Any", None)).run()


@pytest.mark.asyncio
async def test_a_room_that_was_claimed_before_it_could_begin_is_started_again() -> None:
    """A process that was given up before has claimed it late. It ends, so the room would be nowhere."""
    async with living() as life:
        assert life.room._told is not None
        life.room._told.session_id = None
        life.distant.end.set_exception(StaleOwnerError("Others run it."))
        with pytest.raises(ProcessLostError):
            await life.task


@pytest.mark.asyncio
async def test_a_sample_that_cannot_be_played_is_told_in_a_sentence() -> None:
    """The room's process has just lost its link, or failed."""
    async with living() as life:
        life.ends.gateway.close()
        assert "not there" in str(await life.room.play_sample(DEFAULT_VOICE))


@pytest.mark.asyncio
async def test_what_the_process_measures_is_in_the_metrics_until_its_last_second() -> None:
    """What is measured after the figures were told last is told when the room ends."""
    async with living() as life:
        house = life.house
        house.measured.on_store("append_turn", 0.5, failed=True)
        life.room.close("left")
        assert await life.task == "left"
        assert value(house.metrics, "store_failures_total", operation="append_turn", machine="here") == 1
        assert value(house.metrics, "store_seconds_sum", operation="append_turn", machine="here") == 0.5
        of_process = frozenset({("machine", "here"), ("process", "1")})
        assert samples(house.metrics)["process_resident_memory_bytes", of_process] > 0


@pytest.mark.asyncio
@pytest.mark.parametrize(("machine", "logged"), [("north", ["north"]), (THIS_MACHINE, [])])
async def test_a_room_of_another_machine_is_shown_and_logged_with_it(machine: str, logged: list[str]) -> None:
    """A room's process on this machine writes to the log itself."""
    with capture_logs() as lines:
        async with living(machine=machine) as life:
            assert life.house.shown_on == [machine]
            life.house.log.add(json.dumps({"level": "info", "event": "turn_recorded"}))
            life.room.close("left")
            await life.task
    assert [line["machine"] for line in lines if line["event"] == "turn_recorded"] == logged


@pytest.mark.asyncio
async def test_a_process_that_is_gone_is_a_loss() -> None:
    """The supervisor starts such a room again at once."""
    async with living() as life:
        assert life.house.seat is not None
        await life.house.seat.give_up()
        with pytest.raises(ProcessLostError, match="has ended"):
            await life.task
        assert life.house.in_use == set()


@pytest.mark.asyncio
async def test_a_room_that_tells_the_session_of_another_is_given_up() -> None:
    """It would take that one's place on the dashboard, and end the protection of its words when it ends itself."""
    async with living(in_use=SESSION) as life:
        with pytest.raises(ProcessLostError):
            await life.task
        assert (life.house.shown, life.house.in_use) == ([], {SESSION})


@pytest.mark.asyncio
async def test_a_room_begins_one_session() -> None:
    """A second one is not shown; the room is given up."""
    async with living() as life:
        life.ends.room.tell(SessionBegun("night", listens_only=False))
        with pytest.raises(ProcessLostError):
            await life.task
        assert [session_id for session_id, _ in life.house.shown] == [SESSION]
        assert life.house.in_use == set()


@pytest.mark.asyncio
@pytest.mark.parametrize("watched", ["tell_state", "wait_ending"])
async def test_a_watch_over_a_room_that_is_cancelled_by_mistake_ends_the_room(
    watched: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody would know any more how the room is, or that it ends."""

    async def wait_ending(_: DistantRoom) -> None:
        await cancelled_elsewhere()

    def tell_state() -> None:
        raise asyncio.CancelledError

    if watched == "wait_ending":
        monkeypatch.setattr(DistantRoom, "wait_ending", wait_ending)
    async with living() as life:
        if watched == "tell_state":
            monkeypatch.setattr(life.house.publisher, "tell_state", tell_state)
            await until(lambda: life.house.clock.sleeping > 0)
            life.house.clock.advance(LOOK_EVERY_S)
        with pytest.raises(OtherProcessError, match="CancelledInsideError"):
            await life.task
        assert await life.hosting == "crashed"
