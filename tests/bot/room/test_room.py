"""One room from joining to leaving. Everything is real except the sound, the models and Discord."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest
from structlog.testing import capture_logs

from bot import events
from bot.brain.embedded.chat import NO_MODEL, EmbeddedResponder
from bot.brain.settings import BrainSettings
from bot.brain.speech_output import TOO_MUCH
from bot.brain.system_prompt import SystemPrompt
from bot.brain.tools.exchanges import ToolExchange
from bot.brain.tools.toolbox import Toolbox
from bot.channel.port import ListenRequest, MembershipChange, Person
from bot.cli.rehearsal.written.audio import LoudnessDetector
from bot.guild import GuildChoice
from bot.llm.budget import Budget
from bot.memory.readable_memory import ReadableMemory
from bot.memory.session_reader import SessionReader
from bot.models.voices import DEFAULT_VOICE
from bot.participation.guild_participation import (
    SILENCED_FOR_GOOD,
    GuildParticipations,
    ListensOnlyError,
    OptedOutError,
)
from bot.participation.settings import ParticipationSettings
from bot.room.announcer import GATHER_S, NotAnnouncedError
from bot.room.endings import PROCESS_ENDS
from bot.room.guild_policy import GuildPolicy
from bot.room.joined_channel import CHECK_NEWCOMERS_S, CHECK_ROOM_S, GPU_FAILED, REFRESH_RIGHTS_S
from bot.room.room import Room
from bot.room.server_voice import UsualVoice
from bot.room.services import RoomServices
from bot.server_settings import ServerSettings, no_server_settings
from bot.settings import RoomSettings
from bot.store.database import open_database
from bot.store.guilds import GuildStore
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from bot.texts.text import Text, verbatim
from compaction.errors import StoreError
from compaction.model import Mode, Seq, TurnKind
from compaction.session import SessionMemory
from compaction.settings import BudgetSettings, CompactionSettings
from compaction.summary.extractive import ExtractiveSummariser
from tests.fakes.brain import FRAMES_A_WORD, FakeVoice, ScriptedResponder
from tests.fakes.choices import FakeGuildChoices, FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.hearing import ScriptedRecognizer, speech
from tests.fakes.place import ADA, BO, OTHER_BOT, FakePlace
from voice.asr.settings import AsrSettings
from voice.errors import LinkError, RecogniserError, RemovedFromChannelError
from voice.listening.settings import ListeningSettings
from voice.speaking.settings import SpeakingSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from bot.brain.responder import Responder
    from bot.channel.port import Place
    from bot.memory.recall import RecallScope
    from bot.memory.upkeep import MemoryUpkeep
    from bot.participation.guild_participation import GuildParticipation
    from bot.store.claims import RoomClaim
    from compaction.folding.events import CompactionEvent
    from compaction.model import SessionId, Turn
    from compaction.ports import TurnStore
    from voice.transport.audio_events import SpeechFrames

TICK_S = 0.05


class House:
    """The services that the rooms use: a real database, fake audio and models, and a list of all events."""

    def __init__(self, sessions: Sessions, store: TurnStore, clock: FakeClock) -> None:
        self.sessions = sessions
        self.store = store
        # The store for the room with a claim.
        self.store_of: Callable[[RoomClaim], TurnStore] = lambda _: self.store
        self.clock = clock
        self.seen: list[events.Event] = []
        self.voice = FakeVoice()
        self.sample = FakeVoice()
        self.recognizer = ScriptedRecognizer()
        self.gpu_failure: RecogniserError | None = None
        self.place = FakePlace()
        self.policy: GuildPolicy | None = None
        self.participating = ParticipationSettings()
        self.choices = FakeGuildChoices()
        self.opt_outs = FakeOptOuts()
        self.consent = RoomSettings()
        self.new_responder: Callable[[], Responder] = lambda: EmbeddedResponder(
            names=BrainSettings().wake_names, zone=UTC
        )
        self.can_skip = False
        self.ailing = ""
        self.servers = no_server_settings()
        self.listen: ListenRequest | None = None
        self.readable: ReadableMemory | None = None
        self.toolbox: Callable[[RecallScope, Place], Toolbox] = lambda *_: Toolbox()
        self.open_upkeep: Callable[[SessionId, RoomClaim, SessionMemory], MemoryUpkeep | None] = lambda *_: None

    @cached_property
    def participation(self) -> GuildParticipations:
        """Return the participation of all servers, with the settings at the time of the first call."""
        names = BrainSettings().wake_names
        return GuildParticipations(
            self.choices,
            self.opt_outs,
            self.participating,
            wake_names=names,
            clock=self.clock,
            asks=self.consent.asks,
        )

    def room(self) -> Room:
        """Return a new room of the place."""
        return Room(self.place, self.services(), self.listen)

    def services(self) -> RoomServices:
        """Return the services for a room."""
        brain = BrainSettings()
        return RoomServices(
            sessions=self.sessions,
            open_memory=self._open_memory,
            recognizer=self.recognizer,
            detector=LoudnessDetector(),
            synthesizer=self.voice,
            using_voice=lambda _: nullcontext(self.sample),
            new_responder=self.new_responder,
            instructions=SystemPrompt(brain.name),
            max_input_tokens=10_000,
            zone=UTC,
            clock=self.clock,
            observe=self.seen.append,
            room=RoomSettings(),
            brain=brain,
            participation=self.participation,
            listening=ListeningSettings(),
            asr=AsrSettings(),
            speaking=SpeakingSettings(),
            responder_name=verbatim("what I heard"),
            guild_policy=self.policy,
            can_skip=self.can_skip,
            open_toolbox=self.toolbox,
            open_upkeep=self.open_upkeep,
            health=lambda: verbatim(self.ailing),
            gpu_failure=lambda: self.gpu_failure,
            servers=self.servers,
            readable=self.readable,
        )

    def _open_memory(
        self, session_id: SessionId, claim: RoomClaim, on_event: Callable[[CompactionEvent], None]
    ) -> AbstractAsyncContextManager[SessionMemory]:
        return SessionMemory.open(
            session_id,
            store=self.store_of(claim),
            summariser=ExtractiveSummariser(),
            fallback=ExtractiveSummariser(),
            settings=CompactionSettings(),
            mode=Mode.SUMMARY,
            clock=self.clock,
            on_event=on_event,
            searchable=True,
        )

    def of(self, kind: type[events.Event]) -> list[events.Event]:
        """Return the events of one kind."""
        return [event for event in self.seen if isinstance(event, kind)]

    @property
    def turns(self) -> list[Turn]:
        """Return every recorded turn."""
        return [event.turn for event in self.seen if isinstance(event, events.TurnRecorded)]

    @property
    def said(self) -> list[str]:
        """Return the words of every recorded turn with their speakers."""
        return [f"{part.speaker}: {part.text}" for turn in self.turns for part in turn.parts]

    async def pass_time(self, seconds: float, *, step_s: float = TICK_S) -> None:
        """Advance the clock in steps and let all tasks run after each."""
        for _ in range(round(seconds / step_s)):
            self.clock.advance(step_s)
            for _ in range(5):
                await asyncio.sleep(0)

    async def say(self, user_id: int, text: str) -> None:
        """Let a person say something, and wait until the turn is recorded."""
        self.recognizer.texts.append(text)
        before = len(self.turns)
        started = self.clock.monotonic()
        await self.pass_time(2.0)
        self.place.links[-1].hear(speech(user_id, at=started))
        await self.pass_time(1.5)
        await settle(lambda: len(self.turns) > before)

    async def reply(self, number: int) -> events.ReplySpoken:
        """Wait until the bot has spoken `number` times, and return the last of these replies."""
        await settle(lambda: len(self.of(events.ReplySpoken)) >= number)
        event = self.of(events.ReplySpoken)[number - 1]
        assert isinstance(event, events.ReplySpoken)
        return event


async def settle(holds: Callable[[], bool]) -> None:
    """Wait at most ten seconds for the work of other threads, such as the database's."""
    for _ in range(10_000):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("what was waited for did not come")


@asynccontextmanager
async def a_house(folder: Path) -> AsyncIterator[House]:
    """Open the services with a database in `folder`."""
    async with AsyncExitStack() as stack:
        clock = FakeClock()
        database = await stack.enter_async_context(open_database(folder / "room.db", synchronous="normal"))
        yield House(Sessions(database, clock), SqlTurnStore(database, clock), clock)


@asynccontextmanager
async def living(house: House) -> AsyncIterator[tuple[Room, asyncio.Task[str]]]:
    """Run a room until the block is left. If it has not ended by then, it is cancelled, as in a crash."""
    room = house.room()
    task = asyncio.create_task(room.run(), name="room-under-test")
    try:
        await settle(lambda: room.opened.is_set() or task.done())
        yield room, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def ended(house: House, task: asyncio.Task[str]) -> str:
    """Wait until a room has ended and return the reason."""
    await settle(task.done)
    return task.result()


@pytest.mark.asyncio
async def test_the_dashboard_gets_every_event_of_the_room(tmp_path: Path) -> None:
    """While a room lives it is shown, with its session, memory and server; the process's observer gets all as well."""
    shown: list[events.Event] = []
    life: list[tuple[object, ...]] = []

    @contextmanager
    def show(
        session_id: SessionId, place: Place, memory: SessionMemory, guild: GuildParticipation
    ) -> Iterator[events.Observer]:
        life.append((session_id, place.channel_id, memory.session_id, guild.guild_id))
        yield shown.append
        life.append(())

    async with a_house(tmp_path) as house:
        room = Room(house.place, replace(house.services(), show_live=show))
        task = asyncio.create_task(room.run(), name="room-under-test")
        await settle(room.opened.is_set)
        await house.say(ADA.id, "The train leaves at nine.")
        await house.pass_time(CHECK_ROOM_S + 1)
        room.close("left")
        await ended(house, task)
    begun, over = life
    assert begun[1:] == (house.place.channel_id, begun[0], house.place.guild_id)
    assert over == ()
    assert shown == house.seen
    kinds = {type(event) for event in shown}
    assert {events.RoomOpened, events.TurnRecorded, events.LinkChanged, events.QueuesMeasured} <= kinds


@pytest.mark.asyncio
async def test_people_are_told_heard_and_answered(tmp_path: Path) -> None:
    """The room posts its notice, records what is said, and answers a question from it. The answer becomes a
    turn too.
    """
    async with a_house(tmp_path) as house, living(house):
        (notice,) = house.place.notices
        assert notice.startswith(RoomSettings().notice)
        assert "/opt-out" in notice
        assert house.place.shown_as_listening
        await house.say(ADA.id, "The spare key is under the blue flower pot.")
        assert not house.of(events.ContextBuilt)
        await house.say(BO.id, "Roomtone, where is the spare key?")
        reply = await house.reply(1)
        assert reply.text == f"Just now, Ada said: The spare key is under the blue flower pot. {NO_MODEL}"
        assert (reply.answer_to, reply.interrupted) == (1, False)
        assert [turn.seq for turn in house.turns] == [0, 1, 2]
        assert house.turns[2].kind is TurnKind.ASSISTANT
        assert house.said[2] == f"Roomtone: {reply.text}"
        expected = ("Roomtone", "Room tone", "Ada", "Bo", "The Lantern Society", "Lounge")
        assert house.recognizer.asked[0][2] == expected


@pytest.mark.asyncio
async def test_a_sample_of_a_voice_is_played_where_the_bot_may_speak(tmp_path: Path) -> None:
    """A sample is said with its own voice and becomes no turn; a silenced bot says none."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        sample = house.sample
        assert await room.play_sample(DEFAULT_VOICE) is None
        assert (sample.spoken, house.voice.spoken) == ([DEFAULT_VOICE.sample], [])
        assert house.turns == []
        sample.mute.add(DEFAULT_VOICE.sample)
        assert "could not speak" in str(await room.play_sample(DEFAULT_VOICE))
        asked = len(sample.spoken)
        await house.participation.silence_for_now(house.place.guild_id, by=BO.id)
        assert "/talk lets me" in str(await room.play_sample(DEFAULT_VOICE))
        await house.participation.silence_always(house.place.guild_id, by=BO.id)
        assert await room.play_sample(DEFAULT_VOICE) == SILENCED_FOR_GOOD
    assert len(sample.spoken) == asked


@pytest.mark.asyncio
@pytest.mark.parametrize("during", ["reply", "sample"])
async def test_a_silenced_bot_says_no_sample_to_its_end(tmp_path: Path, during: str) -> None:
    """A sample that waits for a reply is not said when somebody asks for silence, and one that is played stops."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        link = house.place.links[-1]
        link.pulling = False
        if during == "reply":
            await house.say(BO.id, "Roomtone, hello.")
            await settle(lambda: bool(house.voice.spoken))
        playing = asyncio.create_task(room.play_sample(DEFAULT_VOICE), name="sample")
        await settle(lambda: during == "reply" or bool(house.sample.spoken))
        await house.pass_time(TICK_S)
        link.pull(3)
        await house.say(ADA.id, "Roomtone, be quiet.")
        await house.pass_time(1.0)
        await settle(playing.done)
        assert "/talk" in str(playing.result())
        assert (house.sample.spoken == []) == (during == "reply")
        sent = link.frames_sent
        link.pull(3)
        assert link.frames_sent == sent


class ChosenVoice(FakeVoice):
    """A voice that a server has chosen, with something to say about it in /status."""

    def prefer(self, language: str) -> None:
        """Do nothing: there is only this voice."""

    def status(self) -> Text:
        return verbatim("Heart is away, so I use my usual one.")


@pytest.mark.asyncio
async def test_a_room_speaks_with_the_voice_that_its_server_has_chosen(tmp_path: Path) -> None:
    """What the room says comes from the voice that `open_voice` returns for its place."""
    chosen = ChosenVoice()
    async with a_house(tmp_path) as house:
        services = replace(
            house.services(), open_voice=lambda place, usual: chosen if place is house.place else UsualVoice(usual)
        )
        room = Room(house.place, services)
        task = asyncio.create_task(room.run(), name="room-under-test")
        await settle(room.opened.is_set)
        assert "my usual one" in room.status()
        await house.say(ADA.id, "Roomtone, where is the spare key?")
        await house.reply(1)
        room.close("left")
        await ended(house, task)
    assert chosen.spoken
    assert house.voice.spoken == []


@pytest.mark.asyncio
async def test_nobody_is_heard_before_the_notice_is_given(tmp_path: Path) -> None:
    """Until Discord has accepted the notice, the packets of everybody are dropped unread; then nobody's are."""
    async with a_house(tmp_path) as house:
        heard_before: list[bool] = []
        write = house.place.write_notice

        async def slow(text: Text, *, asks: bool = False) -> bool:
            heard_before.append(not house.place.excludes(ADA.id))
            return await write(text, asks=asks)

        house.place.write_notice = slow  # type: ignore[method-assign]
        async with living(house):
            assert heard_before == [False]
            assert not house.place.excludes(ADA.id)


@pytest.mark.asyncio
async def test_where_the_bot_asks_nobody_is_heard_before_they_agreed(tmp_path: Path) -> None:
    """With `consent = "ask"` packets of a person are dropped unread until they press the button, and again after they
    take it back. The next session asks anew; a session that goes on after a crash does not.
    """
    async with a_house(tmp_path) as house:
        house.consent = RoomSettings(consent={"all": "notice", str(house.place.guild_id): "ask"})
        guild_id = house.place.guild_id
        async with living(house):
            assert house.place.asked == [True]
            assert [house.place.excludes(each.id) for each in (ADA, BO)] == [True, True]
            await house.participation.set_agreed(guild_id, ADA.id, agrees=True)
            assert [house.place.excludes(each.id) for each in (ADA, BO)] == [False, True]
            await house.say(ADA.id, "Hello there.")
            assert house.recognizer.asked[0][2] == ("Roomtone", "Room tone", "Ada", "The Lantern Society", "Lounge")
        async with living(house) as (room, task):
            assert not house.place.excludes(ADA.id)
            await house.participation.set_agreed(guild_id, ADA.id, agrees=False)
            assert house.place.excludes(ADA.id)
            await house.participation.set_agreed(guild_id, ADA.id, agrees=True)
            room.close("left")
            await settle(task.done)
        async with living(house):
            assert house.place.excludes(ADA.id)


@pytest.mark.asyncio
async def test_rights_are_asked_anew_while_the_room_is_open(tmp_path: Path) -> None:
    """What people may do is asked when the room opens and every half a minute; of newcomers, within two seconds."""
    async with a_house(tmp_path) as house, living(house):
        await settle(lambda: bool(house.place.refreshed))
        await house.pass_time(REFRESH_RIGHTS_S + CHECK_NEWCOMERS_S, step_s=CHECK_NEWCOMERS_S / 2)
        everybody = [place for place, newcomers in enumerate(house.place.refreshed) if not newcomers]
        assert everybody == [0, REFRESH_RIGHTS_S / CHECK_NEWCOMERS_S]


@pytest.mark.asyncio
async def test_where_the_bot_asks_an_opt_out_comes_first(tmp_path: Path) -> None:
    """Who has opted out cannot agree before they opt in; opting out takes an agreement back."""
    async with a_house(tmp_path) as house:
        house.consent = RoomSettings(consent={"all": "ask"})
        guild_id = house.place.guild_id
        async with living(house):
            await house.participation.set_agreed(guild_id, ADA.id, agrees=True)
            await house.participation.set_opt_out(guild_id, ADA.id, out=True)
            with pytest.raises(OptedOutError, match="/opt-in"):
                await house.participation.set_agreed(guild_id, ADA.id, agrees=True)
            await house.participation.set_opt_out(guild_id, ADA.id, out=False)
            assert house.place.excludes(ADA.id)


@pytest.mark.asyncio
async def test_after_an_opt_out_no_prompt_has_the_persons_words(tmp_path: Path) -> None:
    """What Ada said before she opted out is in no later prompt, nor is her name expected by the recogniser."""
    async with a_house(tmp_path) as house, living(house):
        await house.say(ADA.id, "The walrus sleeps in the shed.")
        await house.participation.set_opt_out(house.place.guild_id, ADA.id, out=True)
        await house.say(BO.id, "Roomtone, what sleeps in the shed?")
        reply = await house.reply(1)
        assert "walrus" not in reply.text.casefold()
        (built,) = house.of(events.ContextBuilt)
        assert isinstance(built, events.ContextBuilt)
        assert not any("walrus" in part.content.casefold() or "Ada" in part.content for part in built.parts)
        assert "Ada" not in house.recognizer.asked[-1][2]


@pytest.mark.asyncio
async def test_after_an_opt_out_no_earlier_result_of_a_tool_is_sent(tmp_path: Path) -> None:
    """What tools found before an opt-out may repeat the person, so it is dropped at once, and again before the next
    prompt, because a tool may have been running.
    """
    async with a_house(tmp_path) as house:
        tools = Toolbox()
        house.toolbox = lambda *_: tools
        async with living(house):
            await house.say(ADA.id, "The walrus sleeps in the shed.")
            await house.say(BO.id, "Roomtone, what sleeps in the shed?")
            await house.reply(1)
            tools.exchanges.record(Seq(1), [ToolExchange((), ())])
            await house.participation.set_opt_out(house.place.guild_id, ADA.id, out=True)
            assert tools.exchanges.steps(Seq(1)) == 0
            tools.exchanges.record(Seq(1), [ToolExchange((), ())])
            await house.say(BO.id, "Roomtone, what time is it?")
            await house.reply(2)
            assert tools.exchanges.steps(Seq(1)) == 0


@pytest.mark.asyncio
async def test_where_nobody_can_agree_the_bot_leaves(tmp_path: Path) -> None:
    """Where the bot asks and the chat refuses the button, it does not stay, even if it could speak."""
    async with a_house(tmp_path) as house:
        house.consent = RoomSettings(consent={"all": "ask"})
        house.place.writable = False
        async with living(house) as (_, task):
            await settle(task.done)
            with pytest.raises(NotAnnouncedError):
                task.result()
            assert house.voice.spoken == []


@pytest.mark.asyncio
async def test_without_chat_the_notice_is_spoken(tmp_path: Path) -> None:
    """If the chat refuses the notice, the bot says it aloud before it hears anybody."""
    async with a_house(tmp_path) as house:
        house.place.writable = False
        async with living(house) as (room, _):
            assert room.opened.is_set()
            assert house.voice.spoken[0] == RoomSettings().notice


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", ["hoarse", "muted"])
async def test_without_chat_and_voice_the_bot_leaves(tmp_path: Path, fault: str) -> None:
    """If the notice can be neither written nor heard, the bot hears nobody, leaves and says why."""
    async with a_house(tmp_path) as house:
        house.place.writable = False
        house.place.audible = fault != "muted"
        house.voice.mute = {RoomSettings().notice} if fault == "hoarse" else set()
        async with living(house) as (room, task):
            await settle(task.done)
            assert not room.opened.is_set()
            assert house.place.excludes(ADA.id)
            with pytest.raises(NotAnnouncedError, match="Send Messages"):
                task.result()
            assert not house.place.shown_as_listening


@pytest.mark.asyncio
async def test_rights_taken_away_during_the_session_end_it(tmp_path: Path) -> None:
    """If somebody comes who can be told in no way, the bot writes why and leaves in order."""
    async with a_house(tmp_path) as house, living(house) as (room, task):
        house.place.writable = house.place.audible = False
        house.place.people.append(Person(9, "Cy", False))
        house.clock.advance(GATHER_S)
        room.on_membership(MembershipChange(Person(9, "Cy", False), joined=True))
        assert await ended(house, task) == "not_announced"
        assert house.place.written[-1].startswith("I am leaving.")


@pytest.mark.asyncio
async def test_the_context_is_what_was_said_before_the_question(tmp_path: Path) -> None:
    """The context has the system prompt, the earlier turns in order, and the question last."""
    async with a_house(tmp_path) as house, living(house):
        await house.say(ADA.id, "I painted the old fence green.")
        await house.say(BO.id, "Roomtone, what did Ada paint?")
        await house.reply(1)
        built = house.of(events.ContextBuilt)[0]
        assert isinstance(built, events.ContextBuilt)
        assert [part.kind.value for part in built.parts] == ["system", "turn", "current"]
        assert built.parts[1].content.endswith("Ada: I painted the old fence green.")
        assert built.answer_to == 1


@pytest.mark.asyncio
async def test_a_guilds_choice_holds_from_the_next_reply_on(tmp_path: Path) -> None:
    """A guild's mode and budget can change during a session. If a question is too large for the budget, the bot says so
    aloud.
    """
    async with a_house(tmp_path) as house, open_database(tmp_path / "guilds.db") as database:
        guilds = GuildStore(database, house.clock)
        budget = Budget(BudgetSettings(max_context_tokens=1_024, reserved_output_tokens=512))
        house.policy = GuildPolicy(guilds, budget, mode=Mode.SUMMARY, max_output_tokens=300)
        guild_id, long = house.place.guild_id, "Roomtone, what was painted " + "4711 " * 250
        with capture_logs() as logs:
            async with living(house):
                await guilds.choose(guild_id, lambda _: GuildChoice(Mode.ROLLING, False), by=BO.id)
                await house.say(BO.id, long)
                await house.reply(1)
                await guilds.choose(guild_id, lambda _: GuildChoice(None, True), by=BO.id)
                await house.say(BO.id, long)
                assert (await house.reply(2)).text == TOO_MUCH
        (built,) = house.of(events.ContextBuilt)
        assert isinstance(built, events.ContextBuilt)
        assert sum(part.tokens for part in built.parts) > budget.room()
        changed = [(line["old_mode"], line["new_mode"]) for line in logs if line["event"] == "compaction_mode_changed"]
        assert changed == [("summary", "rolling"), ("rolling", "summary")]
        assert "512 are allowed" in house.place.written[-1]


@pytest.mark.asyncio
async def test_alone_with_one_person_every_word_is_for_the_bot(tmp_path: Path) -> None:
    """Alone with one person, the bot answers everything they say. Another bot does not count as a participant."""
    async with a_house(tmp_path) as house:
        house.place.people = [ADA, OTHER_BOT]
        async with living(house):
            await house.say(ADA.id, "Hello there, how are you?")
            assert (await house.reply(1)).text.startswith("Hello, Ada.")


@pytest.mark.asyncio
async def test_an_orderly_end_stores_the_last_words_and_ends_the_session(tmp_path: Path) -> None:
    """If the bot is sent away while a person is speaking, their words become a turn and the session is closed."""
    async with a_house(tmp_path) as house, living(house) as (room, task):
        await house.say(ADA.id, "We meet at the old station.")
        house.recognizer.texts.append("And bring your umbrella, please.")
        sound: list[SpeechFrames] = [speech(ADA.id, at=house.clock.monotonic())[0]]  # type: ignore[list-item]
        house.place.links[-1].hear(sound)
        room.close("left")
        assert await ended(house, task) == "left"
        assert house.said[-1] == "Ada: And bring your umbrella, please."
        opened, closed = house.of(events.RoomOpened)[0], house.of(events.RoomClosed)[0]
        assert isinstance(opened, events.RoomOpened)
        assert isinstance(closed, events.RoomClosed)
        session = await house.sessions.find(opened.session_id)  # type: ignore[arg-type]
        assert session is not None
        assert session.ended_at is not None
        assert closed.reason == "left"
        memory = await house.store.load(session.id)
        assert memory.segments[-1].closing


@pytest.mark.asyncio
async def test_a_crash_keeps_the_session_for_the_next_room(tmp_path: Path) -> None:
    """After a crash, the next room continues the session and its turn numbers, and no turn is missing or doubled."""
    async with a_house(tmp_path) as house:
        async with living(house):
            await house.say(ADA.id, "The budget is four hundred euros.")
        async with living(house):
            await house.say(BO.id, "Roomtone, what is the budget?")
            reply = await house.reply(1)
        assert "four hundred euros" in reply.text
        first, second = house.of(events.RoomOpened)
        assert isinstance(first, events.RoomOpened)
        assert isinstance(second, events.RoomOpened)
        assert (first.session_id, first.resumed) == (second.session_id, False)
        assert second.resumed
        assert [turn.seq for turn in house.turns] == [0, 1, 2]


@pytest.mark.asyncio
async def test_a_server_chooses_when_an_empty_room_is_left(tmp_path: Path) -> None:
    """A server's own time counts at once, also for a room that is open."""
    async with a_house(tmp_path) as house, living(house) as (_, task):
        house.place.people = []
        await house.servers.change(
            house.place.guild_id, lambda _: ServerSettings(leave_when_empty_s=CHECK_ROOM_S), by=1
        )
        await house.pass_time(4 * CHECK_ROOM_S, step_s=CHECK_ROOM_S)
        assert await ended(house, task) == "empty"


@pytest.mark.asyncio
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


@pytest.mark.asyncio
async def test_a_session_ends_when_it_is_as_long_as_it_may_be(tmp_path: Path) -> None:
    """After the server's longest time the bot says so and ends the session; the next room begins a new one."""
    async with a_house(tmp_path) as house:
        await house.servers.change(house.place.guild_id, lambda _: ServerSettings(longest_session_h=1), by=1)
        async with living(house) as (_, task):
            house.place.people = [ADA]
            await house.pass_time(3_500)
            assert not task.done()
            await house.pass_time(200)
            assert await ended(house, task) == "longest"
        assert "has lasted 1 hour, as long as one may" in house.place.written[-1]
        async with living(house) as (_, task):
            await house.pass_time(100)
            assert not task.done()
        assert len({each.session_id for each in house.seen if isinstance(each, events.RoomOpened)}) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("target", ["file", "thread"])
async def test_a_session_can_be_only_written_down(tmp_path: Path, target: Literal["file", "thread"]) -> None:
    """After /listen the bot writes down and never answers: not by name, not after /talk, not after a crash."""
    async with a_house(tmp_path) as house:
        house.listen = ListenRequest(target, 601)
        reader = SessionReader(house.sessions, house.store, withheld=house.participation.withheld_on)
        house.readable = ReadableMemory(reader, cast("Any", None), cast("Any", None))
        async with living(house):
            assert "I say nothing." in house.place.notices[0]
            assert "take part" not in house.place.notices[0]
            await house.say(ADA.id, "Roomtone, when do we meet @everyone?")
            await house.participation.of_guild(house.place.guild_id)
            with pytest.raises(ListensOnlyError, match="/leave"):
                await house.participation.lift_silence(house.place.guild_id, by=1, moderator=True)
            await house.pass_time(11)
        house.listen = None
        async with living(house) as (room, task):
            assert "only write down" in room.status()
            assert "only write down" in str(await room.play_sample(DEFAULT_VOICE))
            await house.say(BO.id, "Roomtone, you may talk again.")
            await house.pass_time(11)
            room.close("left")
            assert await ended(house, task) == "left"
        assert not [event for event in house.seen if isinstance(event, events.ReplySpoken)]
        if target == "thread":
            assert house.place.threads == [601, 601]
            written = "\n".join(house.place.thread.posted)
            assert "**Ada:** Roomtone, when do we meet @\u200beveryone?" in written
            assert house.place.files == []
        else:
            ((name, written),) = house.place.files
            assert name.endswith(".md")
            assert "everyone" in written
        assert "Roomtone, you may talk again." in written
        async with living(house) as (room, _):
            assert "only write down" not in room.status()


@pytest.mark.asyncio
async def test_without_a_thread_it_does_not_listen(tmp_path: Path) -> None:
    """Where no thread can be made, the bot says so and leaves."""
    async with a_house(tmp_path) as house:
        house.listen = ListenRequest("thread", 601)
        house.place.takes_threads = False
        async with living(house) as (_, task):
            assert await ended(house, task) == "no_transcript"
        assert house.place.written == ["I am leaving. No thread here."]


@pytest.mark.asyncio
async def test_one_message_shows_how_the_session_goes(tmp_path: Path) -> None:
    """It is written once and edited at most every 15 s, only when something has changed, and a last time at the end."""
    async with a_house(tmp_path) as house, living(house) as (room, task):
        await settle(lambda: bool(house.place.cards))
        assert [edits for edits, _ in house.place.cards] == [None]
        await house.pass_time(14)
        await house.say(ADA.id, "We meet on Saturday.")
        assert len(house.place.cards) <= 2
        await house.pass_time(30)
        edits, card = house.place.cards[-1]
        assert edits == 1
        assert {str(name): text for name, text in card.fields}["who spoke, and how often"] == f"<@{ADA.id}> 1"
        room.close("left")
        await ended(house, task)
        assert house.place.cards[-1][1].text == "The session is over."


@pytest.mark.asyncio
async def test_a_server_can_do_without_the_message(tmp_path: Path) -> None:
    """With live_message off nothing is written but the notice."""
    async with a_house(tmp_path) as house:
        await house.servers.change(house.place.guild_id, lambda _: ServerSettings(live_message=False), by=1)
        async with living(house) as (room, task):
            room.close("left")
            await ended(house, task)
        assert house.place.cards == []


@pytest.mark.asyncio
async def test_a_lost_connection_is_a_crash_unless_somebody_sent_the_bot_away(tmp_path: Path) -> None:
    """A lost voice connection ends the room with `LinkError`. A moderator's disconnect ends it in order."""
    async with a_house(tmp_path) as house:
        async with living(house) as (_, task):
            house.place.links[-1].lose("The voice server is gone.")
            await settle(task.done)
            error = task.exception()
            assert isinstance(error, ExceptionGroup)
            assert isinstance(error.exceptions[0], LinkError)
        async with living(house) as (_, task):
            house.place.links[-1].lose(removed=True)
            assert await ended(house, task) == "expelled"
        house.place.refuse = RemovedFromChannelError()
        async with living(house) as (room, task):
            assert await ended(house, task) == "expelled"
            assert not room.opened.is_set()


@pytest.mark.asyncio
async def test_a_voice_that_fails_is_written(tmp_path: Path) -> None:
    """If the voice fails, the answer and the reason are written in the channel, and the answer is recorded
    as a turn.
    """
    async with a_house(tmp_path) as house, living(house):
        house.voice.mute = {"Hello, Ada.", NO_MODEL}
        await house.say(ADA.id, "Hello, Roomtone, good evening!")
        await settle(lambda: len(house.place.written) == 1)
        assert house.place.written[0] == f"The voice is hoarse. Give it tea.\nI wanted to say: Hello, Ada. {NO_MODEL}"
        problems = [event.sentence for event in house.seen if isinstance(event, events.Problem)]
        assert problems == ["The voice is hoarse. Give it tea."]
        await settle(lambda: len(house.turns) == 2)
        assert (house.turns[1].kind, house.said[1]) == (TurnKind.ASSISTANT, f"Roomtone: Hello, Ada. {NO_MODEL}")
        assert not house.of(events.ReplySpoken)


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


@pytest.mark.asyncio
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


@pytest.mark.asyncio
async def test_a_broken_connection_is_told_at_once(tmp_path: Path) -> None:
    """No time passes between the break and its event."""
    async with a_house(tmp_path) as house, living(house):
        link, before = house.place.links[-1], len(house.of(events.LinkChanged))
        link.down_since = house.clock.monotonic()
        house.place.link_changed()
        (told,) = house.of(events.LinkChanged)[before:]
        assert isinstance(told, events.LinkChanged)
        assert told.state == "disconnected"


@pytest.mark.asyncio
async def test_a_reply_that_is_spoken_over_is_remembered_as_far_as_it_was_heard(tmp_path: Path) -> None:
    """An interrupted reply is recorded as far as it was heard, before the turn that interrupted it, and marked in the
    next prompt.
    """
    async with a_house(tmp_path) as house, living(house):
        link = house.place.links[-1]
        link.pulling = False
        await house.say(ADA.id, "The spare key is under the blue flower pot.")
        await house.say(BO.id, "Roomtone, where is the spare key?")
        await settle(lambda: bool(house.voice.spoken))
        await house.pass_time(TICK_S)
        link.pull(6)
        await house.say(ADA.id, "Never mind, I have found it already.")
        reply = await house.reply(1)
        assert (reply.text, reply.interrupted) == ("Just now, Ada", True)
        await settle(lambda: len(house.turns) == 4)
        assert house.said[2:] == [
            "Roomtone: Just now, Ada (interrupted)",
            "Ada: Never mind, I have found it already.",
        ]
        link.pulling = True
        await house.say(BO.id, "Roomtone, where was the spare key?")
        await house.reply(2)
        built = house.of(events.ContextBuilt)[-1]
        assert isinstance(built, events.ContextBuilt)
        assert built.parts[3].content.endswith("Just now, Ada (interrupted)")
        assert "(interrupted)" in built.parts[0].content


@pytest.mark.asyncio
async def test_people_who_talk_at_once_are_one_turn_with_each_ones_words(tmp_path: Path) -> None:
    """People who talk at once become one turn with a part for each, in the order in which they began, and a question in
    it is answered.
    """
    async with a_house(tmp_path) as house, living(house):
        house.recognizer.texts += ["I do too, very much.", "Roomtone, who likes the lighthouse?"]
        at = house.clock.monotonic()
        house.place.links[-1].hear([*speech(BO.id, at=at, seconds=1.5), *speech(ADA.id, at=at + 1.0, seconds=3.0)])
        await house.pass_time(6.0)
        await settle(lambda: bool(house.turns))
        [turn] = house.turns
        assert [(part.speaker, part.text) for part in turn.parts] == [
            ("Bo", "I do too, very much."),
            ("Ada", "Roomtone, who likes the lighthouse?"),
        ]
        assert turn.kind is TurnKind.SPEECH
        assert turn.ended_at - turn.started_at == pytest.approx(4.0, abs=0.1)
        reply = await house.reply(1)
        assert reply.answer_to == turn.seq
        assert "nothing about that here, Ada" in reply.text


@pytest.mark.asyncio
async def test_what_only_sounded_is_an_effect(tmp_path: Path) -> None:
    """A recognised sound such as '[laughter]' becomes an effect turn."""
    async with a_house(tmp_path) as house, living(house):
        await house.say(ADA.id, "[laughter]")
        assert [turn.kind for turn in house.turns] == [TurnKind.EFFECT]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("reason", "heard"), [(PROCESS_ENDS, "One two three four. (interrupted)"), ("left", "One two (interrupted)")]
)
async def test_a_sentence_may_end_when_the_process_does(tmp_path: Path, reason: str, heard: str) -> None:
    """When the process ends in mid-sentence, the sentence is played to its end and the next one is not begun. When the
    bot is sent away, it falls silent at once. Both are recorded once, as far as they were heard.
    """
    async with a_house(tmp_path) as house:
        house.new_responder = lambda: ScriptedResponder("One two three four. ", "Five six seven eight.")
        async with living(house) as (room, task):
            link = house.place.links[-1]
            link.pulling = False
            await house.say(ADA.id, "Roomtone, count to eight.")
            await settle(lambda: len(house.voice.spoken) == 2)
            link.pull(2 * FRAMES_A_WORD)
            room.close(reason)
            for _ in range(20):
                await asyncio.sleep(0)
            link.pull(100)
            assert await ended(house, task) == reason
        spoken = [turn for turn in house.turns if turn.kind is TurnKind.ASSISTANT]
        assert [part.text for turn in spoken for part in turn.parts] == [heard]


@pytest.mark.asyncio
async def test_while_a_sentence_ends_people_are_heard_and_not_answered(tmp_path: Path) -> None:
    """What is said while the process ends becomes a turn, also over the bot's sentence, and nobody is answered."""
    async with a_house(tmp_path) as house:
        responder = ScriptedResponder("One two three four.")
        house.new_responder = lambda: responder
        async with living(house) as (room, task):
            link = house.place.links[-1]
            link.pulling = False
            await house.say(ADA.id, "Roomtone, count to four.")
            await settle(lambda: len(house.voice.spoken) == 1)
            link.pull(2)
            room.close(PROCESS_ENDS)
            await house.say(BO.id, "Roomtone, and what comes after four?")
            link.pulling = True
            assert await ended(house, task) == PROCESS_ENDS
        # Bo has interrupted the answer, so it is recorded before what they said.
        assert house.said[1:] == ["Roomtone: One (interrupted)", "Bo: Roomtone, and what comes after four?"]
        assert len(responder.contexts) == 1


@pytest.mark.asyncio
async def test_somebody_who_talks_over_the_last_answer_loses_nothing(tmp_path: Path) -> None:
    """The process ends while an answer of several sentences is spoken, which is stopped from two sides at once."""
    async with a_house(tmp_path) as house:
        house.new_responder = lambda: ScriptedResponder("One two three four. ", "Five six seven eight. ", "Nine ten.")
        async with living(house) as (room, task):
            link = house.place.links[-1]
            link.pulling = False
            await house.say(ADA.id, "Roomtone, count to ten.")
            await settle(lambda: len(house.voice.spoken) > 1)
            link.pull(2)
            room.close(PROCESS_ENDS)
            await house.say(BO.id, "Roomtone, stop counting now please.")
            link.pulling = True
            assert await ended(house, task) == PROCESS_ENDS
        assert house.said[1] == "Roomtone: One (interrupted)"
        assert "Bo: Roomtone, stop counting now please." in house.said
