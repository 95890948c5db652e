"""A server's participation: a choice takes effect at once, is stored, and is loaded by the next process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bot.guild import Silence, VoiceMode
from bot.participation.guild_state import (
    GuildStates,
    NotNowError,
    NotStoredError,
    SessionConsent,
)
from bot.participation.settings import ParticipationSettings
from bot.server_settings import ServerSettingsBook
from bot.shards import Shards
from compaction.errors import StoreError
from compaction.model import Mode, SessionId
from tests.bot.participation.rooms import SilencedRoom
from tests.fakes.choices import FailingServerSettings, FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import loop_turns

GUILD, ADA, BO = 10, 1, 2
NAMES = ("Roomtone", "Room tone")


class QuietHouse:
    """A `GuildStates` with its stores and its clock."""

    def __init__(self) -> None:
        self.stored = FailingServerSettings()
        self.servers = ServerSettingsBook(self.stored)
        self.opt_outs = FakeOptOuts()
        self.clock = FakeClock()
        self.participation = self.over(self.servers)

    async def again(self) -> GuildStates:
        """Return a new `GuildStates` on the same stores, as after a restart."""
        servers = ServerSettingsBook(self.stored)
        await servers.load()
        return self.over(servers)

    def over(self, servers: ServerSettingsBook, **more: Any) -> GuildStates:
        """Return the participation of servers with these settings. `more`: arguments of `GuildStates`."""
        settings = ParticipationSettings()
        return GuildStates(servers, self.opt_outs, settings, wake_names=NAMES, clock=self.clock, **more)

    async def choose(self, **changes: Any) -> None:
        """Choose something in /settings."""
        await self.servers.change(GUILD, lambda now: replace(now, **changes), by=ADA)


@pytest.fixture
def house() -> QuietHouse:
    """A server of which nothing is stored."""
    return QuietHouse()


async def test_the_settings_hold_where_nothing_is_chosen(house: QuietHouse) -> None:
    """Without a choice the settings apply, and each guild has one object that all callers share."""
    guild = await house.participation.of_guild(GUILD)
    assert (guild.voice_mode, guild.wake_names, guild.silence) == (VoiceMode.ENGAGED, NAMES, Silence())
    assert await house.participation.of_guild(GUILD) is guild
    assert await house.participation.of_guild(11) is not guild


async def test_nobody_is_heard_whom_the_bot_serves_nowhere(house: QuietHouse) -> None:
    """No choice of theirs changes that."""
    participation = house.over(house.servers, refused=frozenset({BO}))
    guild = await participation.of_guild(GUILD)
    for out in (True, False):
        await participation.set_opt_out(GUILD, BO, out=out)
        assert guild.excludes(BO)
    assert not guild.excludes(ADA)


async def test_opt_outs_of_another_process_are_read_anew(house: QuietHouse) -> None:
    """What people choose on a server that another process serves is stored there, so it is never remembered here."""
    elsewhere = house.over(house.servers, shards=Shards((1,), 2))
    assert await elsewhere.withheld_on(GUILD) == frozenset()
    await house.opt_outs.put(GUILD, 2001, out=True)
    assert await elsewhere.withheld_on(GUILD) == {"2001"}


async def test_what_is_chosen_holds_at_once_and_in_the_next_process(house: QuietHouse) -> None:
    """Mode, names, silence and opt-outs survive a restart; the server's other choices stay."""
    guild = await house.participation.of_guild(GUILD)
    await house.choose(mode=Mode.ROLLING, voice_mode=VoiceMode.FREE, wake_names=("Jeeves",))
    await house.participation.silence_always(GUILD, by=ADA)
    await house.participation.set_opt_out(GUILD, BO, out=True)
    assert house.servers.of(GUILD).mode is Mode.ROLLING
    for each in (guild, await (await house.again()).of_guild(GUILD)):
        assert (each.voice_mode, each.wake_names) == (VoiceMode.FREE, ("Jeeves",))
        assert each.silence.always
        assert each.opted_out == {BO}
    assert house.participation.names_of(GUILD) == ("Jeeves",)


async def test_silence_for_now_takes_a_room(house: QuietHouse) -> None:
    """Silencing a session stops its speech at once; if the bot is in no room, it raises an error."""
    with pytest.raises(NotNowError, match="voice channel"):
        await house.participation.silence_for_now(GUILD, by=BO)
    guild = await house.participation.of_guild(GUILD)
    room = guild.room = SilencedRoom()
    await house.participation.silence_for_now(GUILD, by=BO, minutes=5)
    assert room.silences == 1
    assert house.stored.newest.silence == Silence(until=house.clock.now() + 300.0)
    assert await house.participation.lift_silence(GUILD, by=BO, manager=False)
    assert house.stored.newest.silence == Silence()


async def test_a_managers_silence_takes_a_manager(house: QuietHouse) -> None:
    """Only a manager can end a permanent silence, and starting one stops the speech at once."""
    guild = await house.participation.of_guild(GUILD)
    room = guild.room = SilencedRoom()
    await house.participation.silence_always(GUILD, by=ADA)
    assert room.silences == 1
    assert not await house.participation.lift_silence(GUILD, by=BO, manager=False)
    assert guild.silence.always
    assert await house.participation.lift_silence(GUILD, by=ADA, manager=True)
    assert not guild.silence.always


async def test_what_cannot_be_stored_is_in_effect(house: QuietHouse) -> None:
    """Whoever chose is told so. The next choice of the same is stored, and a silence also with any other setting."""
    guild = await house.participation.of_guild(GUILD)
    house.stored.broken = house.opt_outs.broken = True
    for choice in (
        house.participation.lift_silence(GUILD, by=ADA, manager=True),
        house.participation.silence_always(GUILD, by=ADA),
        house.participation.set_opt_out(GUILD, ADA, out=True),
        house.participation.set_opt_out(GUILD, BO, out=True),
        house.participation.set_opt_out(GUILD, BO, out=False),
    ):
        with pytest.raises(NotStoredError, match="Make room"):
            await choice
    house.stored.broken = house.opt_outs.broken = False
    await house.servers.load()
    assert (guild.silence, guild.opted_out) == (Silence(always=True), frozenset({ADA}))
    await house.choose(language="de")
    assert house.stored.newest.silence == guild.silence == Silence(always=True)
    await house.participation.set_opt_out(GUILD, ADA, out=True)
    assert house.opt_outs.out == {GUILD: frozenset({ADA})}


async def test_a_server_whose_opt_outs_cannot_be_read_is_not_served(house: QuietHouse) -> None:
    """Who opts out before it is served is not heard once it is, whether that could be stored or not."""
    house.opt_outs.broken = True
    for person_id, out in ((ADA, True), (BO, True), (BO, False)):
        with pytest.raises(NotStoredError, match="Make room"):
            await house.participation.set_opt_out(GUILD, person_id, out=out)
    with pytest.raises(StoreError):
        await house.participation.of_guild(GUILD)
    house.opt_outs.broken = False
    guild = await house.participation.of_guild(GUILD)
    assert (guild.excludes(ADA), guild.excludes(BO)) == (True, False)


class SlowOptOuts(FakeOptOuts):
    """A store whose first change takes until the test lets it go on, as a connection that stalls."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store it, or wait first."""
        if not self.is_asked.is_set():
            self.is_asked.set()
            await self.goes_on.wait()
        await super().put(guild_id, person_id, out=out)


async def test_who_changes_their_mind_has_opted_out_after_a_restart_too(house: QuietHouse) -> None:
    """It is in effect at once, and stored after the earlier change, however long that takes."""
    house.opt_outs = slow = SlowOptOuts()
    participation = house.over(house.servers)
    await participation.of_guild(GUILD)
    goes_in = asyncio.create_task(participation.set_opt_out(GUILD, ADA, out=False))
    await slow.is_asked.wait()
    leaves = asyncio.create_task(participation.set_opt_out(GUILD, ADA, out=True))
    await loop_turns(20)
    assert (await participation.of_guild(GUILD)).excludes(ADA)
    slow.goes_on.set()
    await asyncio.gather(goes_in, leaves)
    assert (await (await house.again()).of_guild(GUILD)).excludes(ADA)


async def test_an_opt_out_while_a_server_is_read_holds(house: QuietHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The opt-outs were read before it."""
    reading, read = asyncio.Event(), asyncio.Event()

    async def of_before(guild_id: int) -> frozenset[int]:
        assert guild_id == GUILD
        reading.set()
        await read.wait()
        return frozenset()

    monkeypatch.setattr(house.opt_outs, "of", of_before)
    begins = asyncio.create_task(house.participation.of_guild(GUILD))
    await reading.wait()
    leaves = asyncio.create_task(house.participation.set_opt_out(GUILD, ADA, out=True))
    await loop_turns(10)
    read.set()
    guild, _ = await asyncio.gather(begins, leaves)
    assert guild.excludes(ADA)
    assert house.opt_outs.out == {GUILD: frozenset({ADA})}


async def test_words_are_taken_back_where_they_are(house: QuietHouse) -> None:
    """What the person has just said, in all rooms. What was made of a session's turns, where these were changed."""
    guild, other = await house.participation.of_guild(GUILD), await house.participation.of_guild(11)
    guild.begin_session("evening")
    other.begin_session("another")
    house.participation.take_back({str(ADA)})
    house.participation.take_back(sessions=[SessionId("evening"), SessionId("ended")])
    assert [each.words.epoch for each in (guild, other)] == [1, 0]
    now = house.clock.monotonic()
    assert not any(each.words.may_use(ADA, since=now - 1.0) for each in (guild, other))
    assert all(each.words.may_use(ADA, since=now) for each in (guild, other))


async def test_opting_out_again_interrupts_nobody(house: QuietHouse) -> None:
    """Only the first /opt-out stops the reply in progress, and no /opt-in, after which they are heard again."""
    guild = await house.participation.of_guild(GUILD)
    for out in (True, True, True, False, False):
        await house.participation.set_opt_out(GUILD, ADA, out=out)
        assert guild.excludes(ADA) is out
    assert guild.words.epoch == 1


async def test_where_the_bot_asks_an_opt_out_comes_first(house: QuietHouse) -> None:
    """Who has opted out cannot agree before they opt in; opting out takes an agreement back."""
    guild = await house.participation.of_guild(GUILD)
    guild.asks = True
    await house.participation.set_agreed(GUILD, ADA, agrees=True)
    await house.participation.set_opt_out(GUILD, ADA, out=True)
    with pytest.raises(NotNowError, match="/opt-in"):
        await house.participation.set_agreed(GUILD, ADA, agrees=True)
    await house.participation.set_opt_out(GUILD, ADA, out=False)
    assert guild.excludes(ADA)


async def test_opting_in_takes_no_agreement_back(house: QuietHouse) -> None:
    """Who has agreed and did not opt out is heard on."""
    guild = await house.participation.of_guild(GUILD)
    guild.asks = True
    await house.participation.set_agreed(GUILD, ADA, agrees=True)
    await house.participation.set_opt_out(GUILD, ADA, out=False)
    assert not guild.excludes(ADA)


async def test_taking_an_agreement_back_drops_what_the_person_has_said(house: QuietHouse) -> None:
    """Where the bot asks, it is as an opt-out: what is on its way is dropped, unless they were not heard anyway."""
    guild = await house.participation.of_guild(GUILD)
    guild.asks = True
    await house.participation.set_agreed(GUILD, BO, agrees=False)
    assert guild.words.epoch == 0
    for agrees in (True, True, False, False):
        await house.participation.set_agreed(GUILD, ADA, agrees=agrees)
    assert guild.words.epoch == 1
    # Nobody has to agree any more, so they are heard as before.
    guild.asks = False
    await house.participation.set_agreed(GUILD, BO, agrees=False)
    assert guild.words.epoch == 1


async def test_a_server_s_choice_to_ask_takes_effect_when_a_room_begins() -> None:
    """Whoever is heard already was not asked."""
    house = QuietHouse()
    participation = house.participation
    guild = await participation.begin_session(GUILD, "evening")
    await house.servers.change(GUILD, lambda now: replace(now, asks=True), by=ADA)
    assert not (await participation.of_guild(GUILD)).excludes(ADA)
    assert await participation.begin_session(GUILD, "evening") is guild
    assert guild.excludes(ADA)


async def test_a_session_that_only_listened_keeps_nobody_from_lifting_a_silence(house: QuietHouse) -> None:
    """While it goes on there is nothing to lift: /talk says what to do. Once its room has ended, it lifts a silence."""
    guild = await house.participation.begin_session(GUILD, "evening", listens_only=True)
    await house.participation.silence_always(GUILD, by=ADA)
    guild.room = SilencedRoom()
    with pytest.raises(NotNowError, match="/leave"):
        await house.participation.lift_silence(GUILD, by=ADA, manager=True)
    assert guild.silence.always
    guild.room = None
    assert await house.participation.lift_silence(GUILD, by=ADA, manager=True)
    assert not guild.silence.always


async def test_another_session_begins_without_answers(house: QuietHouse) -> None:
    """A session that goes on keeps who agreed and who has had the newest notice; another one does not."""
    guild = await house.participation.begin_session(GUILD, "evening")
    guild.asks, guild.consent.agreed = True, frozenset({ADA})
    guild.consent.note_notified("first", frozenset({ADA}))
    guild.consent.note_notified("second", frozenset({BO}))
    guild.begin_session("evening")
    assert not guild.excludes(ADA)
    assert (guild.consent.notified_of("first"), guild.consent.notified_of("second")) == (frozenset(), frozenset({BO}))
    guild.begin_session("next")
    assert guild.excludes(ADA)
    assert guild.consent == SessionConsent("next")
