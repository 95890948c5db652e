"""/transcript on the local Discord: who gets which session, in which format and language."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert

from bot.discord.commands.sessions import NO_SESSION, NOTHING_SAID, add_transcript
from bot.memory.retention import DAY_S
from bot.store.attendance import AttendanceStore, Presence
from bot.store.tables import sessions
from compaction.errors import StoreError
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from tests.bot.discord.remembered import ADA, BEN, CHLOE, COMMITTEE, GUILD, LOUNGE, NIGHT, STAIRS, remembered, seen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bot.discord.client import AddCommands
    from bot.memory.session_reader import SessionReader
    from tests.bot.evening import Evening


def commands(_: Evening, reader: SessionReader) -> Sequence[AddCommands]:
    return [partial(add_transcript, reader=reader, zone=UTC)]


async def test_members_get_the_file_in_their_language(tmp_path: Path) -> None:
    """Who may enter the channel gets a file that only they see, in each format; the sentence is in their language."""
    async with remembered(tmp_path, commands) as here:
        assert (await here.use(BEN, "transcript")).content == NO_SESSION
        await here.say(ADA, "The gate code is 4411.")
        await here.say(BEN, "Good.")
        told = seen(await here.use(BEN, "transcript"))
        assert told.startswith("The session in Evening that began <t:")
        assert ": 2 lines. Only you see this message.\n(roomtone-evening.md)" in told
        assert "2 Zeilen" in seen(await here.use(CHLOE, "transcript", format="json"))
        for form, name in (("json", "evening.json"), ("srt", "evening.srt"), ("webvtt", "evening.vtt")):
            assert name in seen(await here.use(ADA, "transcript", format=form))
        assert here.local.messages == ()


@pytest.mark.parametrize("channel", [LOUNGE, COMMITTEE, STAIRS])
async def test_who_was_not_there_learns_nothing(tmp_path: Path, channel: int) -> None:
    """They neither get the session nor find it among the choices, also if they may enter the channel now."""
    async with remembered(tmp_path, commands, channel=channel, present=(ADA,)) as here:
        await here.say(ADA, "The gate code is 4411.")
        assert "(roomtone-evening.md)" in seen(await here.use(ADA, "transcript"))
        assert len(await here.local.suggest(ADA, "transcript", "session")) == 1
        for options in ({}, {"session": "evening"}, {"session": "nothing"}):
            refused = await here.use(BEN, "transcript", channel_id=LOUNGE, **options)
            assert (refused.content, refused.payload["attachments"]) == (NO_SESSION, [])
        assert await here.local.suggest(BEN, "transcript", "session") == []


async def test_words_of_an_age_restricted_channel_are_read_in_one_alone(tmp_path: Path) -> None:
    """Minors have the permissions to enter it, and Discord keeps them out. So whoever may enter reads its words where
    the same restriction holds.
    """
    async with remembered(tmp_path, commands, channel=NIGHT) as here:
        await here.say(ADA, "The gate code is 4411.")
        for typed_in in (LOUNGE, here.local.guild.text_channel.id):
            assert (await here.use(BEN, "transcript", channel_id=typed_in)).content == NO_SESSION
        assert "(roomtone-evening.md)" in seen(await here.use(BEN, "transcript", channel_id=NIGHT))


async def test_sessions_are_suggested_by_day_and_channel(tmp_path: Path) -> None:
    """Typing narrows the sessions down by what their name has."""
    async with remembered(tmp_path, commands) as here:
        await here.say(ADA, "The gate code is 4411.")
        ((name, value),) = await here.local.suggest(BEN, "transcript", "session", "even")
        assert (name.endswith(" · Evening"), value) == (True, "evening")
        assert await here.local.suggest(BEN, "transcript", "session", "stairs") == []


async def test_an_older_session_is_found_by_what_somebody_types(tmp_path: Path) -> None:
    """Discord shows 25 choices. What is typed is looked for in the sessions before these too."""
    async with remembered(tmp_path, commands) as here:
        for number in range(30):
            at, name = here.evening.clock.now() + number * DAY_S, SessionId(f"day-{number}")
            session = {"id": name, "guild_id": GUILD.id, "channel_id": LOUNGE, "started_at": at, "ended_at": at + 60.0}
            async with here.evening.database.writing() as connection:
                await connection.execute(insert(sessions).values(session))
            turn = Turn(Seq(0), TurnKind.SPEECH, at, at + 2.0, (TurnPart(str(ADA), "Ada", "Hello."),))
            await here.evening.store.append_turn(name, turn)
            await AttendanceStore(here.evening.database).add(name, [Presence(str(BEN), at, joined=True)])
        newest = await here.local.suggest(BEN, "transcript", "session")
        assert [value for _, value in newest] == [f"day-{number}" for number in range(29, 4, -1)]
        day = datetime.fromtimestamp(here.evening.clock.now() + DAY_S, UTC)
        found = await here.local.suggest(BEN, "transcript", "session", f"{day:%Y-%m-%d}")
        assert [value for _, value in found] == ["day-1"]


async def test_withheld_and_forgotten_words_are_in_no_file(tmp_path: Path) -> None:
    """A session in which only people spoke who opted out has nothing to show."""
    async with remembered(tmp_path, commands) as here:
        await here.say(BEN, "My aunt lives in Zanzibarq.")
        await here.reply("Zanzibarq is far.")
        assert ": 2 lines." in seen(await here.use(ADA, "transcript"))
        here.withheld.add(str(BEN))
        assert (await here.use(ADA, "transcript")).content == NOTHING_SAID


async def test_a_failing_store_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person reads what failed; the choices are empty."""

    async def fail(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    async with remembered(tmp_path, commands) as here:
        await here.say(BEN, "Hello.")
        for method in ("find", "readable"):
            monkeypatch.setattr(f"bot.memory.session_reader.SessionReader.{method}", fail)
        assert (await here.use(BEN, "transcript")).content.startswith("I could not read it now. The disk is full.")
        assert await here.local.suggest(BEN, "transcript", "session") == []
