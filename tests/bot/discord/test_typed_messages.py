"""Typed talk on the local Discord: which messages are for the bot, and how its answers are posted."""

from __future__ import annotations

from dataclasses import replace

import discord
import pytest

from bot.channel.port import IN_NO_CHANNEL
from bot.discord import typed_messages
from bot.discord.admission import GuildAdmission, Verdict
from bot.discord.commands.joining import ELSEWHERE
from bot.discord.typed_messages import HOW_OFTEN, IN_VOICE
from bot.discord.voice_channels import FOR_EVERY_AGE
from bot.texts.text import verbatim
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, SPARE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.server import LocalDiscord, VoiceMessage
from tests.bot.discord.client import ADA, BEN, online
from tests.patience import settle

VOICE, CHAT, OTHER_VOICE, CHOSEN = 600, 601, 602, 603
MENTION = f"<@{ROOMTONE_BOT_ID}>"
GUILD = GuildSpec(
    voice_channels=(Channel(VOICE, "Lounge"), Channel(OTHER_VOICE, "Late Show", age_restricted=True)),
    text_channel=Channel(CHAT, "general"),
    people=(Member(ADA, "Ada"), Member(BEN, "Ben")),
)


def answers(local: LocalDiscord) -> list[str]:
    """Return what the bot has posted."""
    return [each.content for each in local.messages if each.author_id == ROOMTONE_BOT_ID]


async def test_who_mentions_the_bot_or_replies_to_it_is_answered_there() -> None:
    """The room gets the words without the mention, on one line. Its answer is a reply that mentions nobody. It gets
    nothing that is not said to the bot, is empty or is a bot's. Discord hides the text of a reply that does not ping.
    """
    async with online(GUILD) as (local, client, rooms):
        rooms.room_channel, rooms.written = (
            client.find_channel(GUILD.id, VOICE),
            f"Nine, <@{BEN}>. " + "On and on. " * 300,
        )
        await local.post_message(ADA, "Hello.", channel_id=VOICE)
        await local.post_message(ADA, MENTION, channel_id=VOICE)
        await local.post_message(SPARE_BOT_ID, f"{MENTION} hello", channel_id=VOICE)
        asked = await local.post_message(ADA, f"{MENTION} what time\nis it, <@{BEN}>?", channel_id=VOICE)
        await settle(lambda: len(answers(local)) == 2)
        (typed,) = rooms.typed
        assert (typed.person.id, typed.person.name, typed.text) == (ADA, "Ada", "what time is it, @Ben?")
        assert all(len(part) <= 2_000 for part in answers(local))
        first = next(each for each in local.messages if each.author_id == ROOMTONE_BOT_ID)
        assert (first.channel_id, first.payload["mentions"]) == (VOICE, [])
        assert first.payload["message_reference"]["message_id"] == str(asked.id)
        await local.post_message(BEN, "Is it?", channel_id=VOICE, replies_to=first.id, pings=False)
        await local.post_message(BEN, "Really?", channel_id=VOICE, replies_to=first.id)
        await settle(lambda: len(rooms.typed) == 2)
        assert rooms.typed[1].text == "Really?"


# Where people mention the bot -> what they read there, while its room is in one voice channel, writes captions into a
# thread, and a text channel is chosen for typed talk.
ANSWERED = {
    "the room's chat": "Nine.",
    "the captions": "Nine.",
    "the chosen channel": "Nine.",
    "the chat of another voice channel": ELSEWHERE,
    "a text channel": IN_VOICE,
    # Of an evening before, for which other people were there.
    "another thread of the bot's": IN_VOICE,
    "a thread of the chosen channel": IN_VOICE,
}


async def test_what_is_said_in_the_room_is_told_only_where_people_read_it_anyway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the room's chat, the thread of its captions and the text channel that the server has chosen. Commands, whose
    answers only one person sees, work everywhere.
    """
    monkeypatch.setattr(typed_messages, "HOW_OFTEN_ELSEWHERE", HOW_OFTEN)
    async with online(replace(GUILD, more_text_channels=(Channel(CHOSEN, "talk"),))) as (local, client, rooms):
        here = client.find_channel(GUILD.id, VOICE)
        assert here is not None
        rooms.room_channel, rooms.written = here, "Nine."
        await client.tree.servers.change(GUILD.id, lambda now: replace(now, chat_channel=CHOSEN), by=None)
        captions, former, aside = [(await here.open_thread(each)).id for each in (CHAT, CHAT, CHOSEN)]
        rooms.captions_thread = captions
        await settle(lambda: client.get_channel(aside) is not None)
        places = dict(zip(ANSWERED, (VOICE, captions, CHOSEN, OTHER_VOICE, CHAT, former, aside), strict=True))
        for place, channel_id in places.items():
            before = len(answers(local))
            await local.post_message(ADA, f"{MENTION} what time is it?", channel_id=channel_id)
            await settle(lambda before=before: len(answers(local)) > before)  # type: ignore[misc]
            assert (place, answers(local)[-1]) == (place, ANSWERED[place])
            assert local.messages[-1].channel_id == channel_id
            assert (await local.invoke(ADA, "status", channel_id=channel_id)).replies


async def test_who_mentions_the_bot_where_it_is_not_is_told_how_to_call_it() -> None:
    """Nothing of an age-restricted channel is told in another one."""
    async with online(GUILD) as (local, client, rooms):
        rooms.no_answer = IN_NO_CHANNEL
        await client.tree.servers.change(GUILD.id, lambda now: replace(now, chat_channel=CHAT), by=None)
        await local.post_message(ADA, f"{MENTION} hello", channel_id=CHAT)
        await settle(lambda: answers(local) == [IN_NO_CHANNEL])
        rooms.room_channel = client.find_channel(GUILD.id, OTHER_VOICE)
        await local.post_message(ADA, f"{MENTION} hello", channel_id=CHAT)
        await settle(lambda: answers(local)[1:] == [FOR_EVERY_AGE.fill(channel="general")])
        assert len(rooms.typed) == 1


async def test_who_mentions_the_bot_where_it_does_not_talk_is_told_once_where_it_does() -> None:
    """Each person, in an hour. A reply to the bot and what is typed to others are none of that, and no turn."""
    async with online(GUILD) as (local, _, rooms):
        for person in (ADA, ADA, BEN):
            await local.post_message(person, MENTION, channel_id=CHAT)
        await settle(lambda: len(answers(local)) == 2)
        await local.post_message(ADA, "hello", channel_id=CHAT)
        await local.post_message(ADA, f"{MENTION} hello", channel_id=VOICE)
        await settle(lambda: len(rooms.typed) == 1)
        assert answers(local) == [IN_VOICE] * 2


async def test_one_person_cannot_keep_the_bot_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """After ten messages in a minute their next ones are ignored; other people are answered. Nobody is on a server that
    the bot does not serve, where it could not leave.
    """
    asked: list[int] = []

    async def uninvited(_: GuildAdmission, guild: discord.Guild) -> Verdict:
        asked.append(guild.id)
        return Verdict.UNINVITED

    async with online(GUILD) as (local, client, rooms):
        with monkeypatch.context() as unserved:
            unserved.setattr(GuildAdmission, "check", uninvited)
            await local.post_message(BEN, f"{MENTION} hello", channel_id=VOICE)
            await settle(lambda: bool(asked))
        rooms.room_channel, rooms.no_answer = client.find_channel(GUILD.id, VOICE), verbatim("No.")
        for _ in range(int(HOW_OFTEN.rate) + 2):
            await local.post_message(ADA, f"{MENTION} hello", channel_id=VOICE)
        await local.post_message(BEN, f"{MENTION} hello", channel_id=VOICE)
        await settle(lambda: bool(rooms.typed) and rooms.typed[-1].person.id == BEN)
        assert len(rooms.typed) == int(HOW_OFTEN.rate) + 1


async def test_a_voice_message_in_the_rooms_chat_is_passed_on() -> None:
    """In reply to the bot; with its length, and its sound from the CDN."""
    sound = VoiceMessage(b"OggS and so on", 3.5)
    async with online(GUILD) as (local, client, rooms):
        rooms.room_channel, rooms.written = client.find_channel(GUILD.id, VOICE), "Nine."
        await local.post_message(ADA, f"{MENTION} what time is it?", channel_id=VOICE)
        await settle(lambda: answers(local) == ["Nine."])
        own = next(each for each in local.messages if each.author_id == ROOMTONE_BOT_ID)
        # Discord shows the bot no file of this one.
        await local.post_message(BEN, "", channel_id=VOICE, voice=sound)
        await local.post_message(BEN, "", channel_id=VOICE, voice=sound, replies_to=own.id)
        await settle(lambda: len(rooms.typed) == 2)
        recording = rooms.typed[1].recording
        assert recording is not None
        assert (recording.duration_s, recording.size_bytes, recording.to_bot) == (3.5, len(sound.content), True)
        assert await recording.fetch() == sound.content
        assert rooms.typed[0].recording is None


async def test_a_voice_message_elsewhere_is_told_what_a_typed_one_is() -> None:
    """Where the bot is in no channel, in another one, or does not talk."""
    sound = VoiceMessage(b"OggS and so on", 3.5)
    async with online(GUILD) as (local, client, rooms):
        rooms.no_answer = IN_NO_CHANNEL
        await local.post_message(ADA, f"{MENTION} hello", channel_id=VOICE)
        await settle(lambda: answers(local) == [IN_NO_CHANNEL])
        own = next(each for each in local.messages if each.author_id == ROOMTONE_BOT_ID)
        await local.post_message(ADA, "", channel_id=VOICE, voice=sound)
        await local.post_message(ADA, "", channel_id=VOICE, voice=sound, replies_to=own.id)
        await settle(lambda: answers(local) == [IN_NO_CHANNEL] * 2)
        rooms.room_channel = client.find_channel(GUILD.id, OTHER_VOICE)
        await local.post_message(ADA, "", channel_id=VOICE, voice=sound, replies_to=own.id)
        await settle(lambda: answers(local)[2:] == [ELSEWHERE])
        assert len(rooms.typed) == 2
