"""What the bot has posted on Discord loses the words of who uses /forget-me there."""

from __future__ import annotations

import asyncio
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.background_task import owned_task
from bot.discord.commands.privacy import PrivacyFacts, add_privacy_commands
from bot.discord.commands.setting_values import OperatorSettings
from bot.discord.posting import WRITE_TIMEOUT_S
from bot.events import SpokenText, TurnRecorded
from bot.logs.log_file import log_path
from bot.memory.personal_data import PersonalData, PersonForgetter
from bot.memory.personal_recall import MemoryReaders
from bot.posts.notice import ListeningNotice
from bot.posts.renewal import PostedRenewal
from bot.posts.transcript import GROWS_FOR_S, WRITE_EVERY_S, TranscriptFilePost, TranscriptWriter
from bot.posts.words import transcript_file
from bot.server_settings import ListenTarget, no_server_settings
from bot.settings import RoomSettings
from bot.store.sessions import Sessions
from bot.wiring.rooms import RoomForgetting
from tests.bot.discord.client import room_channel_in
from tests.bot.discord.remembered import ADA, BEN, LOUNGE, Remembered, digests_of, remembered
from tests.fakes.choices import guild_states
from tests.fakes.loop_time import pass_loop_time
from tests.fakes.recogniser import recognition
from tests.patience import settle
from voice.audio import NO_SOUND
from voice.listening.utterance import Utterance

if TYPE_CHECKING:
    from pathlib import Path

    import discord

    from bot.discord.client import AddCommands
    from bot.memory.session_views import SessionViews
    from compaction.model import Turn
    from tests.bot.evening import Evening

SECRET = "Zanzibarq"


class Bot:
    """The bot's commands about data, and what sees to its posts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.views: SessionViews
        self.sessions: Sessions
        self.renewal: PostedRenewal

    def commands(self, evening: Evening, views: SessionViews) -> list[AddCommands]:
        """Return what adds /forget-me to a server with an evening."""
        self.views = views
        readable = MemoryReaders(views, digests_of(evening, views), cast("Any", None))
        self.sessions = Sessions(evening.database, evening.clock)
        self.renewal = PostedRenewal(self.sessions, readable, zone=UTC)
        rooms = RoomForgetting(
            guild_states(), {evening.session_id: evening.upkeep}, no_server_settings(), posts=self.renewal
        )
        forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log_path(self._folder).parent)
        records = PersonalData(evening.database, forgetter, evening.people, rooms=rooms)
        operator = OperatorSettings(leave_when_empty_s=300.0, retention_days=30.0, room=RoomSettings())
        facts = PrivacyFacts(ListeningNotice(), no_server_settings(), operator, log_days=30.0, keeps_facts=True)
        return [lambda tree: add_privacy_commands(tree, records=records, people=evening.people, facts=facts)]


def recorded(person: int, turn: Turn) -> TurnRecorded:
    """Return the event of a turn of one person."""
    utterance = Utterance("u", person, 0.0, 1.0, 1.0, NO_SOUND)
    return TurnRecorded(turn, 0.0, (SpokenText(utterance, recognition(turn.parts[0].text), 0.0, 0.0),))


async def writer_of(bot: Bot, here: Remembered, target: ListenTarget) -> TranscriptFilePost | TranscriptWriter:
    """Return what writes the evening down."""
    channel, posted = room_channel_in(here.client, LOUNGE), bot.sessions.posted_transcripts
    stored = await bot.sessions.find(here.evening.session_id)
    assert stored is not None
    if target == "file":
        read = partial(transcript_file, channel, stored, bot.views, zone=UTC)
        return TranscriptFilePost(channel, stored.id, posted, read, words=here.evening.words)
    return TranscriptWriter(
        channel,
        stored.id,
        here.local.guild.text_channel.id,
        words=here.evening.words,
        clock=here.evening.clock,
        servers=no_server_settings(),
        posted=posted,
    )


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize("target", ["thread", "file"])
async def test_words_of_which_discord_has_not_told_can_be_forgotten(
    target: ListenTarget, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It posts or changes a message and never answers, and the bot ends before it can try again."""
    bot = Bot(tmp_path)
    async with remembered(tmp_path, bot.commands) as here:
        writer, request = await writer_of(bot, here, target), here.client.http.request
        done = list[asyncio.Task[Any]]()

        async def hanging(route: discord.http.Route, **how: Any) -> Any:
            if "messages" in route.path and route.method == method and not done:
                done.append(asyncio.create_task(request(route, **how), name="carried-out"))
                pass_loop_time(monkeypatch, WRITE_TIMEOUT_S)
                await asyncio.Event().wait()
            return await request(route, **how)

        turn = await here.say(ADA, SECRET)
        async with owned_task(writer.run(), name="writer-under-test"):
            if target == "thread":
                await here.evening.clock.until_somebody_sleeps()
            monkeypatch.setattr(here.client.http, "request", hanging)
            writer.on_event(recorded(ADA, turn))
            here.evening.clock.advance(WRITE_EVERY_S)
            if target == "file":
                await writer.finish()
            await settle(lambda: bool(done))
        monkeypatch.setattr(here.client.http, "request", request)
        await asyncio.gather(*done, return_exceptions=True)
        await here.use(ADA, "forget-me", sure=True)
        await bot.renewal.run_once(here.client)
        assert not any(SECRET in each.content or each.payload["attachments"] for each in here.local.messages)


async def test_forget_me_takes_the_words_out_of_posted_transcripts(tmp_path: Path) -> None:
    """Of the messages in a thread the person's lines go, one that has nothing else is deleted, and the file is made
    anew. What others said stays.
    """
    bot = Bot(tmp_path)
    async with remembered(tmp_path, bot.commands) as here:
        evening, thread = here.evening, await writer_of(bot, here, "thread")
        async with owned_task(thread.run(), name="thread-under-test"):
            # The first message grows, and then it is old.
            for pause_s, person, text in ((0.0, ADA, SECRET), (0.0, BEN, "It rains."), (GROWS_FOR_S, ADA, "Again.")):
                await evening.clock.until_somebody_sleeps()
                evening.clock.advance(pause_s)
                thread.on_event(recorded(person, await here.say(person, text)))
                await evening.clock.until_somebody_sleeps()
                evening.clock.advance(WRITE_EVERY_S)
                await settle(lambda text=text: any(text in each.content for each in here.local.messages))  # type: ignore[misc]
        await (await writer_of(bot, here, "file")).finish()
        first, second, file = here.local.messages
        assert SECRET in first.content
        assert "Again." in second.content
        size = file.payload["attachments"][0]["size"]

        async with owned_task(bot.renewal.run(here.client), name="renewal-under-test"):
            await here.use(ADA, "forget-me", sure=True)
            await settle(lambda: len(here.local.messages) == 2)
            await settle(lambda: here.local.messages[1].payload["attachments"][0]["size"] < size)
            # Not in the middle of a request, of which nobody would know what became.
            while await bot.sessions.posted_transcripts.stale():
                await bot.renewal.run_once(here.client)
        assert SECRET not in str([(each.content, each.payload) for each in here.local.messages])
        assert "It rains." in here.local.messages[0].content
        await bot.renewal.run_once(here.client)
        assert await bot.sessions.posted_transcripts.stale() == ()
