"""Participation under random events: the bot never speaks when it must not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.background_task import owned_task
from bot.brain.decider import Decision, PendingReply, Reason
from bot.brain.question import Spoken
from bot.brain.wakeword import SILENT_MINUTES
from bot.channel.notice_queue import NOTICES_WAITING
from bot.channel.participants import Participants
from bot.cost import Cost
from bot.events import SpokenText
from bot.guild import Silence, VoiceMode
from bot.participation.costs import HOUR_S
from bot.participation.engagement import QuietTimer
from bot.participation.guild_state import GuildState, GuildStates
from bot.participation.participation import SILENCE_UNSTORED, Participation, ReplyState
from bot.participation.settings import ParticipationSettings
from bot.participation.statistics import silenced_for
from bot.server_settings import ServerSettingsBook
from compaction.model import Seq, Turn, TurnKind
from tests.fakes.brain import until
from tests.fakes.choices import FULL, FailingServerSettings, FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import ADA, BO, OTHER_BOT, FakeRoomChannel
from tests.patience import PATIENCE_S

TEXTS = [
    "Roomtone, what was it?",
    "And on Sunday?",
    "Shut up, Roomtone.",
    "Roomtone, you can talk again.",
    "Stop.",
    "Bo, are you there?",
    "We leave at nine and take the bus.",
    "When does the concert start?",
    "Mm-hm.",
    "[laughter]",
    "...",
]


@dataclass(frozen=True)
class Said:
    """The fields of a `SpokenText` that participation uses."""

    user_id: int
    text: str
    started_at: float

    @property
    def utterance(self) -> Said:
        """Return what has the utterance's id."""
        return self

    @property
    def id(self) -> str:
        """Return an id of its own."""
        return f"{self.user_id} {self.started_at}"

    @property
    def ended_at(self) -> float:
        """Return the end of two seconds of speech."""
        return self.started_at + 2.0


class Table:
    """One participation with its guild and its clock."""

    def __init__(self, most_calls: int, *, quiet_after_minutes: float = 0.0) -> None:
        self.clock = FakeClock()
        self.channel = FakeRoomChannel(people=[ADA, BO, OTHER_BOT])
        self.store = FailingServerSettings()
        self.servers = ServerSettingsBook(self.store)
        self.guilds = GuildStates(
            self.servers,
            FakeOptOuts(),
            ParticipationSettings(max_calls_per_hour=most_calls, quiet_thought_after_minutes=quiet_after_minutes),
            wake_names=("Roomtone",),
            clock=self.clock,
        )
        self.stopped = 0

    async def begin(self) -> tuple[Participation, GuildState]:
        """Return the participation and its guild."""
        guild = await self.guilds.begin_session(self.channel.guild_id, "evening")
        participation = Participation(
            self.guilds,
            guild,
            session_id="evening",
            channel=self.channel,
            participants=Participants(self.channel, guild.words),
            clock=self.clock,
            replies=self,
        )
        guild.room = participation
        return participation, guild

    def reply_state(self, speaker: int | None) -> ReplyState:
        """Report that the bot is not speaking."""
        return ReplyState(PendingReply.NONE, busy=False)

    def is_begun(self, utterance_id: str) -> bool:
        """Report that no reply is held."""
        return False

    @property
    def can_skip(self) -> bool:
        """Report that a reply can be skipped."""
        return True

    def stop_speaking(self) -> None:
        """Count the call."""
        self.stopped += 1

    def speak_unprompted(self, decision: Decision) -> bool:
        """Accept the reply."""
        return True


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from([ADA.id, BO.id, OTHER_BOT.id, 99]), st.sampled_from(TEXTS)),
        st.tuples(st.just("pass"), st.sampled_from([1.0, 40.0, 600.0, 3_600.0]), st.just("")),
        st.tuples(st.just("quiet"), st.sampled_from([0.0, 5.0]), st.just("")),
        st.tuples(st.just("always"), st.just(0), st.just("")),
        st.tuples(st.just("talk"), st.booleans(), st.just("")),
        st.tuples(st.just("mode"), st.sampled_from(VoiceMode), st.just("")),
        st.tuples(st.just("opt"), st.sampled_from([ADA.id, BO.id]), st.sampled_from(["", "out"])),
    ),
    max_size=30,
)


async def live(steps: list[tuple[str, object, str]], most_calls: int) -> list[tuple[object, ...]]:
    """Do the steps, and return every decision with the state in which it was made."""
    table = Table(most_calls)
    participation, guild = await table.begin()
    decided: list[tuple[object, ...]] = []
    for step, value, text in steps:
        match step:
            case "pass":
                table.clock.advance(cast("float", value))
            case "quiet":
                minutes = cast("float", value) or None
                await table.guilds.silence_for_now(table.channel.guild_id, by=BO.id, minutes=minutes)
            case "always":
                await table.guilds.silence_always(table.channel.guild_id, by=ADA.id)
            case "talk":
                await table.guilds.lift_silence(table.channel.guild_id, by=BO.id, manager=bool(value))
            case "mode":
                chosen = partial(replace, voice_mode=cast("VoiceMode", value))
                await table.servers.change(table.channel.guild_id, chosen, by=ADA.id)
            case "opt":
                await table.guilds.set_opt_out(table.channel.guild_id, cast("int", value), out=bool(text))
            case _:
                user_id, now = cast("int", value), table.clock.monotonic()
                participation.on_utterance(user_id, text, ended_at=now)
                silenced, over = participation.silenced, guild.costs.is_over(now)
                _, decision = participation.choose_utterance([cast("SpokenText", Said(user_id, text, now))])
                decided.append((user_id, text, decision, silenced, over, user_id in guild.opted_out))
                if decision.answer:
                    participation.on_reply_begun(user_id)
                    guild.costs.add(Cost(calls=1, tokens=103), now=table.clock.monotonic())
                    participation.on_reply_ended(user_id, "So it is.", spoken_s=1.0, skipped=False)
    return decided


@settings(deadline=None, max_examples=150)
@given(STEPS, st.integers(1, 4))
@pytest.mark.slow
def test_it_never_speaks_where_it_must_not(steps: list[tuple[str, object, str]], most_calls: int) -> None:
    """The bot never answers when silenced or over the limit, and never a bot or a person who opted out.

    The same steps always give the same decisions. A permitted utterance with the bot's name is always answered.
    """
    decided = asyncio.run(live(steps, most_calls))
    assert decided == asyncio.run(live(steps, most_calls))
    for user_id, text, decision, silenced, over, opted_out in decided:
        forbidden = silenced or over or opted_out or user_id == OTHER_BOT.id
        if forbidden:
            assert not decision.answer  # type: ignore[attr-defined]
        elif text == TEXTS[0]:
            assert (decision.answer, decision.reason) == (True, Reason.WAKE_NAME)  # type: ignore[attr-defined]


@pytest.fixture
def table() -> Table:
    """A table with nine people."""
    return Table(9)


async def test_who_plays_with_it_does_not_fill_the_channel(table: Table) -> None:
    """If somebody silences and unsilences the bot repeatedly, the bot obeys each time but limits its messages."""
    participation, guild = await table.begin()
    for _ in range(3 * NOTICES_WAITING):
        participation.on_utterance(ADA.id, "Roomtone, be quiet.", ended_at=0.0)
        assert participation.silenced
        table.servers.hold_silence(guild.guild_id, Silence())
    assert table.stopped == 3 * NOTICES_WAITING
    await written(participation)
    assert table.channel.written == [silenced_for(SILENT_MINUTES)] * NOTICES_WAITING


async def written(participation: Participation) -> None:
    """Let the room write what waits."""
    async with owned_task(participation.run(), name="participation-under-test"):
        await participation.wait_until_written(within_s=PATIENCE_S)


async def test_a_silence_by_voice_lapses_and_can_be_ended_by_its_button(table: Table) -> None:
    """It is stored, posted with the button, and over after ten minutes. Asking again meanwhile changes nothing."""
    participation, guild = await table.begin()
    participation.on_utterance(ADA.id, "Hey Roomtone, be quiet please!", ended_at=0.0)
    table.clock.advance(60.0 * SILENT_MINUTES - 1.0)
    participation.on_utterance(BO.id, "Roomtone, shut up.", ended_at=0.0)
    assert participation.silenced
    async with owned_task(participation.run(), name="participation-under-test"):
        await participation.wait_until_written(within_s=PATIENCE_S)
        await until(lambda: table.store.newest.silence == guild.silence)
    assert (table.channel.written, table.channel.talk_offered) == ([silenced_for(SILENT_MINUTES)], 1)
    table.clock.advance(1.0)
    assert not participation.silenced


async def test_a_silence_by_voice_that_cannot_be_stored_is_told(table: Table) -> None:
    """It holds all the same, and the channel reads once that it ends with the process."""
    participation, _ = await table.begin()
    table.store.broken = True
    participation.on_utterance(ADA.id, "Roomtone, be quiet.", ended_at=0.0)
    async with owned_task(participation.run(), name="participation-under-test"):
        await until(lambda: len(table.channel.written) == 2)
    assert table.channel.written == [silenced_for(SILENT_MINUTES), SILENCE_UNSTORED.fill(error=FULL)]
    assert participation.silenced


async def test_a_managers_silence_stays_as_it_is(table: Table) -> None:
    """Nobody makes one of ten minutes of it."""
    participation, guild = await table.begin()
    await table.guilds.silence_always(table.channel.guild_id, by=BO.id)
    participation.on_utterance(ADA.id, "Roomtone, be quiet.", ended_at=0.0)
    assert (guild.silence, participation.notices.figures.waiting) == (Silence(always=True), 0)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    "text",
    ["Stop, stop, stop!", "Quiet tonight?", "no silence please", "Be quiet.", "Roomtone, quiet tonight?", "Ruhe!"],
)
async def test_what_somebody_says_only_interrupts(table: Table, text: str, alone: bool) -> None:
    """Neither from somebody whom the bot has just answered nor from who is alone with it. And what may sound like its
    contrary does not end a silence.
    """
    participation, guild = await table.begin()
    if alone:
        table.channel.people = [ADA, OTHER_BOT]
    participation.on_reply_ended(ADA.id, "So it is.", spoken_s=1.0, skipped=False)
    participation.on_utterance(ADA.id, text, ended_at=0.0)
    assert (guild.silence, table.stopped) == (Silence(), 0)
    await table.guilds.silence_for_now(table.channel.guild_id, by=BO.id)
    for ends in ("please no talk", "Roomtone, please no talk", "Roomtone, you can talk again."):
        participation.on_utterance(ADA.id, ends, ended_at=0.0)
    assert participation.silenced


def decided(participation: Participation, user_id: int, text: str, *, at: float = 0.0) -> bool:
    """Return whether the bot would answer an utterance now."""
    return participation.preview_decision(cast("SpokenText", Said(user_id, text, at))).answer


async def test_nobody_calls_themselves(table: Table) -> None:
    """Their own name calls nobody else; the name of somebody who has left calls nobody."""
    participation, _ = await table.begin()

    def reason(user_id: int) -> Reason:
        return participation.preview_decision(cast("SpokenText", Said(user_id, "Bo, are you there?", 0.0))).reason

    assert (reason(ADA.id), reason(BO.id)) == (Reason.ADDRESSED_TO_OTHER, Reason.NOT_ADDRESSED)
    table.channel.people = [ADA, replace(BO, id=7, name="Augusta"), OTHER_BOT]
    assert reason(ADA.id) is Reason.NOT_ADDRESSED


@pytest.mark.parametrize("who", ["from people who used /opt-out", "another bot", "nobody answers"])
async def test_who_is_not_heard_silences_nothing(table: Table, who: str) -> None:
    """Their words may be recognised already, and name the bot. Where it only writes down, nobody has to silence it."""
    participation, guild = await table.begin()
    if who == "from people who used /opt-out":
        await table.guilds.set_opt_out(table.channel.guild_id, ADA.id, out=True)
    guild.listens_only = who == "nobody answers"
    speaker = OTHER_BOT if who == "another bot" else ADA
    participation.on_utterance(speaker.id, "Roomtone, be quiet.", ended_at=0.0)
    assert (guild.silence, participation.notices.figures.waiting) == (Silence(), 0)
    assert participation.silenced is guild.listens_only


@pytest.mark.parametrize(("beside", "for_bot"), [("Roomtone?", True), ("We leave at nine.", False)])
async def test_what_people_say_at_once_is_for_the_bot_if_all_of_it_is(beside: str, for_bot: bool) -> None:
    """What is told among people is no call, whoever calls beside it."""
    participation, _ = await Table(9).begin()
    said = (Said(BO.id, beside, 0.0), Said(ADA.id, "Roomtone, what was it?", 0.0))
    chosen, decision = participation.choose_utterance([cast("SpokenText", each) for each in said])
    assert (chosen.user_id, decision.for_bot) == (ADA.id, for_bot)


@pytest.mark.parametrize("ids", [(ADA.id, BO.id), (BO.id, ADA.id)])
async def test_what_is_answered_aloud_already_stays_the_question(ids: tuple[int, int]) -> None:
    """Also beside somebody who goes on with an earlier question: an answer nobody asks for would never be over."""
    participation, _ = await Table(9).begin()
    said = zip(ids, ("And on Sunday?", "Roomtone, what was it?"), strict=True)
    going_on, asking = (cast("SpokenText", Said(*each, 0.0)) for each in said)
    decision = participation.preview_decision(asking)
    turn = Turn(Seq(0), TurnKind.SPEECH, 0.0, 2.0, ())
    released = Spoken(turn, asking.utterance.id, asking.ended_at, asking.user_id, decision, "en")
    group = sorted((going_on, asking), key=lambda each: each.user_id)
    begun = {going_on.utterance.id: decision}
    assert participation.choose_utterance(group, begun=begun)[0] is going_on
    assert participation.choose_utterance(group, released=released, begun=begun)[0] is asking


@pytest.mark.parametrize("happens", ["nothing", "opts out", "silence"])
async def test_nobody_is_answered_after_what_happens_while_their_turn_is_stored(table: Table, happens: str) -> None:
    """The decision is made before, and a store may take seconds."""
    participation, _ = await table.begin()
    spoken = cast("SpokenText", Said(ADA.id, "Roomtone, what was it?", 0.0))
    decision = participation.preview_decision(spoken)
    if happens == "opts out":
        await table.guilds.set_opt_out(table.channel.guild_id, ADA.id, out=True)
    elif happens == "silence":
        participation.be_quiet(SILENT_MINUTES, BO.id)
    confirmed = participation.confirm(decision, ADA.id, started_at=0.0)
    assert (decision.answer, confirmed.answer) == (True, happens == "nothing")


@pytest.mark.parametrize("ends", ["silence", "leaving"])
async def test_who_goes_on_has_to_call_it_again(table: Table, ends: str) -> None:
    """After a silence, whoever asked for it, and after somebody has left and come back."""
    participation, guild = await table.begin()
    participation.on_reply_ended(ADA.id, "So it is.", spoken_s=1.0, skipped=False)
    assert decided(participation, ADA.id, "And on Sunday?")
    if ends == "silence":
        participation.on_utterance(BO.id, "Roomtone, be quiet.", ended_at=0.0)
        table.servers.hold_silence(guild.guild_id, Silence())
    else:
        participation.on_left(ADA.id)
    assert not decided(participation, ADA.id, "And on Sunday?")


async def test_the_last_words_of_who_leaves_are_for_who_stays(table: Table) -> None:
    """They were not alone with the bot, although only one person is there by the time the words have their text."""
    participation, _ = await table.begin()
    table.channel.people = [ADA, OTHER_BOT]
    assert decided(participation, ADA.id, "I have to get up at six.")
    assert not decided(participation, BO.id, "I have to get up at six.")
    table.channel.people = [OTHER_BOT]
    assert not decided(participation, BO.id, "I have to get up at six.")


async def test_what_nobody_can_hear_is_not_answered(table: Table) -> None:
    """Where the bot is muted or may not speak, a reply is not worth a model's work."""
    participation, _ = await table.begin()
    assert decided(participation, ADA.id, TEXTS[0])
    table.channel.audible = False
    assert not decided(participation, ADA.id, TEXTS[0])


async def test_the_ceiling_is_told_once_an_hour() -> None:
    """However often the bot is called meanwhile."""
    table = Table(1)
    participation, guild = await table.begin()
    for hour, told in ((0, 1), (0, 1), (1, 2)):
        table.clock.advance(HOUR_S * hour)
        guild.costs.add(Cost(calls=1, tokens=100), now=table.clock.monotonic())
        participation.choose_utterance([cast("SpokenText", Said(ADA.id, TEXTS[0], table.clock.monotonic()))])
        assert participation.notices.figures.waiting == told


def test_it_takes_a_long_silence() -> None:
    """The quiet time is counted from the last speech."""
    quiet = QuietTimer(after_s=600.0, every_s=1_800.0, now=0.0)
    quiet.reset(100.0)
    quiet.reset(50.0)
    assert not quiet.is_due(699.0)
    assert quiet.is_due(700.0)


def test_there_is_one_in_a_while() -> None:
    """There is at most one unprompted remark per interval, however often the room falls quiet."""
    quiet = QuietTimer(after_s=60.0, every_s=1_800.0, now=0.0)
    assert quiet.is_due(60.0)
    quiet.use(60.0)
    assert not quiet.is_due(1_800.0)
    quiet.reset(1_840.0)
    assert not quiet.is_due(1_880.0)
    assert quiet.is_due(1_900.0)
