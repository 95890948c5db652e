"""Who a room hears: nobody before the notice, where it asks only those who agreed, and nobody who opted out."""

from __future__ import annotations

import pytest

from bot import events
from bot.brain.tools.toolbox import TalkTools, Toolbox, ToolExchange
from bot.channel.port import MembershipChange, Person
from bot.posts.notice import DEFAULT_NOTICE, GATHER_S, NotAnnouncedError
from bot.room.room import CHECK_NEWCOMERS_S, REFRESH_RIGHTS_S
from bot.settings import RoomSettings
from bot.texts.text import Text
from compaction.model import Seq
from tests.bot.room.room_scene import House, ended, leave, living
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle


def heard_at_the_notice(house: House, *people: Person) -> list[tuple[bool, ...]]:
    """Return which of them are heard while Discord takes the notice, for each notice from now on."""
    heard, write = list[tuple[bool, ...]](), house.channel.write_notice

    async def slow(text: Text, *, asks: bool = False) -> bool:
        heard.append(tuple(not house.channel.excludes(each.id) for each in people))
        return await write(text, asks=asks)

    house.channel.write_notice = slow  # type: ignore[method-assign]
    return heard


async def test_nobody_is_heard_before_the_notice_is_given(house: House) -> None:
    """Until Discord has accepted the notice, the packets of everybody are dropped unread; then nobody's are."""
    heard_before = heard_at_the_notice(house, ADA)
    async with living(house):
        assert heard_before == [(False,)]
        assert not house.channel.excludes(ADA.id)
        assert house.channel.heard_since(ADA.id) == house.clock.monotonic(), "not what was said before"


async def test_who_had_the_notice_is_heard_at_once_when_the_session_goes_on(house: House) -> None:
    """After a crash or a move to another process nobody waits for Discord, and nobody is told twice. Somebody who came
    meanwhile is told, and not heard before.
    """
    async with living(house):
        assert len(house.channel.notices) == 1
    async with living(house):
        assert len(house.channel.notices) == 1
        assert not house.channel.excludes(ADA.id)
        await settle(lambda: house.channel.shown_as_listening)
    newcomer = Person(4, "Cy", False)
    house.channel.people.append(newcomer)
    heard = heard_at_the_notice(house, ADA, newcomer)
    async with living(house):
        assert heard == [(True, False)]
        assert not house.channel.excludes(newcomer.id)


async def test_a_notice_with_other_words_is_given_to_everybody(house: House) -> None:
    """Another machine may send speech elsewhere: then nobody is heard before they could know."""
    async with living(house):
        guild = await house.participation.of_guild(house.channel.guild_id)
        assert guild.consent.notified == {ADA.id, BO.id}
        guild.consent.notice = "another"
    async with living(house):
        assert len(house.channel.notices) == 2


async def test_where_the_bot_asks_nobody_is_heard_before_they_agreed(house: House) -> None:
    """With `consent = "ask"` packets of a person are dropped unread until they press the button, and again after they
    take it back. The next session asks anew; a session that goes on after a crash does not.
    """
    house.consent = RoomSettings(consent={"all": "notice", str(house.channel.guild_id): "ask"})
    guild_id = house.channel.guild_id
    async with living(house):
        assert house.channel.asked == [True]
        assert [house.channel.excludes(each.id) for each in (ADA, BO)] == [True, True]
        house.clock.advance(5)
        await house.participation.set_agreed(guild_id, ADA.id, agrees=True)
        assert [house.channel.excludes(each.id) for each in (ADA, BO)] == [False, True]
        assert house.channel.heard_since(ADA.id) == house.clock.monotonic() >= 5, "not what was said before"
        await house.say(ADA.id, "Hello there.")
        assert house.recogniser.asked[0][2] == ("Roomtone", "Room tone", "Ada", "The Lantern Society", "Lounge")
    async with living(house) as (room, task):
        assert not house.channel.excludes(ADA.id)
        await house.participation.set_agreed(guild_id, ADA.id, agrees=False)
        assert house.channel.excludes(ADA.id)
        await house.participation.set_agreed(guild_id, ADA.id, agrees=True)
        await leave(room, task)
    async with living(house):
        assert house.channel.excludes(ADA.id)


@pytest.mark.usefixtures("room")
async def test_rights_are_asked_anew_while_the_room_is_open(house: House) -> None:
    """What people may do is asked when the room opens and every half a minute; of newcomers, within two seconds."""
    await settle(lambda: bool(house.channel.refreshed))
    await house.pass_time(REFRESH_RIGHTS_S + CHECK_NEWCOMERS_S, step_s=CHECK_NEWCOMERS_S / 2)
    everybody = [channel for channel, newcomers in enumerate(house.channel.refreshed) if not newcomers]
    assert everybody == [0, REFRESH_RIGHTS_S / CHECK_NEWCOMERS_S]


async def test_after_an_opt_out_nothing_of_the_person_is_sent(house: House) -> None:
    """What Ada said before she opted out is in no later prompt, nor is her name expected by the recogniser. What tools
    found may repeat her, so it is dropped at once, and so is what a tool finds that was running.
    """
    made: list[Toolbox] = []

    def opened(_here: object, _channel: object, talk: TalkTools) -> Toolbox:
        made.append(Toolbox(talk=talk))
        return made[-1]

    house.toolbox = opened
    async with living(house):
        (tools,) = made
        await house.say(ADA.id, "The walrus sleeps in the shed.")
        tools.exchanges.record(Seq(0), [ToolExchange((), ())])
        running = tools.for_asker()
        await house.participation.set_opt_out(house.channel.guild_id, ADA.id, out=True)
        running.record(Seq(0), [ToolExchange((), ())])
        await house.say(BO.id, "Roomtone, what sleeps in the shed?")
        reply = await house.reply(1)
        assert not tools.exchanges.steps({0})
        assert "walrus" not in reply.text.casefold()
        (built,) = house.of(events.ContextBuilt)
        assert not any("walrus" in part.content.casefold() or "Ada" in part.content for part in built.parts)
        assert "Ada" not in house.recogniser.asked[-1][2]


async def test_without_chat_the_notice_is_spoken(house: House) -> None:
    """If the chat refuses the notice, the bot says it aloud before it hears anybody."""
    house.channel.writable = False
    async with living(house) as (room, _):
        assert room.opened.is_set()
        assert house.voice.spoken[0] == DEFAULT_NOTICE


@pytest.mark.parametrize("fault", ["hoarse", "muted", "asks"])
async def test_where_nobody_can_be_told_the_bot_leaves(house: House, fault: str) -> None:
    """If the notice can be neither written nor heard, the bot hears nobody, leaves and says why. Where the bot asks,
    and the chat refuses the button, it does not stay even if it could speak.
    """
    house.consent = RoomSettings(consent={"all": "ask" if fault == "asks" else "notice"})
    house.channel.writable = False
    house.channel.audible = fault != "muted"
    house.voice.mute = {DEFAULT_NOTICE} if fault == "hoarse" else set()
    async with living(house) as (room, task):
        await settle(task.done)
        assert not room.opened.is_set()
        assert house.channel.excludes(ADA.id)
        with pytest.raises(NotAnnouncedError, match="Send Messages"):
            task.result()
        assert not house.channel.shown_as_listening
        assert fault != "asks" or house.voice.spoken == []


async def test_rights_taken_away_during_the_session_end_it(house: House) -> None:
    """If somebody comes who can be told in no way, the bot writes why and leaves in order."""
    async with living(house) as (room, task):
        house.channel.writable = house.channel.audible = False
        house.channel.people.append(Person(9, "Cy", False))
        house.clock.advance(GATHER_S)
        room.on_membership(MembershipChange(Person(9, "Cy", False), joined=True))
        assert await ended(house, task) == "not_announced"
        assert any(text.startswith("I am leaving.") for text in house.channel.written)
