"""Typed talk from end to end: the whole bot in the local Discord, with its own database and no model."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC
from typing import TYPE_CHECKING

import pytest

from bot.app import running_bot
from bot.events import ignore_event
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from tests.bot.app_settings import settings_in
from tests.bot.discord.client import ADA, BEN
from tests.bot.discord.remembered import seen
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rehearsal.discord.interactions.result import InteractionReply
    from rehearsal.discord.server import LocalDiscord

CHLOE, LOUNGE = 2003, 600
MENTION = f"<@{ROOMTONE_BOT_ID}>"


async def holds(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - the bot sets no event
            await asyncio.sleep(0.02)


class Chat:
    """The chat of the voice channel, as people use it."""

    def __init__(self, local: LocalDiscord) -> None:
        self.local = local

    async def use(self, person: int, command: str, **options: object) -> InteractionReply:
        """Use a command in the chat, and return the answer."""
        result = await self.local.invoke(person, command, options, channel_id=LOUNGE)
        await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        return result.replies[0]

    def answers_to(self, message_id: int) -> list[tuple[int, str]]:
        """Return what the bot has written below a message, with the ids."""
        return [
            (each.id, each.content)
            for each in self.local.messages
            if each.author_id == ROOMTONE_BOT_ID
            and (each.payload.get("message_reference") or {}).get("message_id") == str(message_id)
        ]

    async def ask(self, person: int, text: str, *, replies_to: int | None = None) -> tuple[int, str]:
        """Type to the bot, and return the id and the text of its answer."""
        asked = await self.local.post_message(person, text, channel_id=LOUNGE, replies_to=replies_to)
        await holds(lambda: bool(self.answers_to(asked.id)))
        ((answer_id, answer),) = self.answers_to(asked.id)
        return answer_id, answer


def stored(path: Path, table: str = "") -> str:
    """Return all bytes of the database, or of one table, as text."""
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(line for line in connection.iterdump() if f'"{table}' in line)


@pytest.mark.slow
async def test_people_talk_with_the_bot_in_writing(local: LocalDiscord, tmp_path: Path) -> None:
    """Ada mentions it and is answered below her message, from what Ben has typed; so is her reply to that. /recall
    finds what he typed, and not what she asked. Chloe, who opted out, is neither answered nor stored. A silent bot says
    so. Its end is that of its room.
    """
    async with running_bot(settings_in(tmp_path / "data", local), observe=ignore_event, zone=UTC):
        chat = Chat(local)
        for person in (ADA, BEN, CHLOE):
            await local.join(person, channel_id=LOUNGE)
        assert "I am coming to Evening" in (await chat.use(ADA, "join")).content
        await holds(lambda: any(each.author_id == ROOMTONE_BOT_ID for each in local.messages))
        assert (await chat.use(CHLOE, "opt-out")).ephemeral
        unheard = await local.post_message(CHLOE, f"{MENTION} The zeppelin is mine.", channel_id=LOUNGE)

        await chat.ask(BEN, f"{MENTION} We hid the key of the boat under the lantern.")
        first, told = await chat.ask(ADA, f"{MENTION} Where did we hide the key of the boat?")
        assert "Ben" in told
        assert "under the lantern" in told
        _, again = await chat.ask(ADA, "And what is under the lantern?", replies_to=first)
        assert "the key of the boat" in again

        # Who is there is stored beside what is said.
        database = tmp_path / "data" / "roomtone.db"
        await holds(lambda: str(BEN) in stored(database, "attendance"))
        found = seen(await chat.use(BEN, "recall", words="key boat lantern"))
        assert "Ben: We hid the key of the boat under the lantern." in found
        assert "Where did we hide the key of the boat?" not in found
        assert chat.answers_to(unheard.id) == []
        assert "key of the boat" in stored(database)
        assert "zeppelin" not in stored(database)

        await chat.use(BEN, "quiet")
        _, why = await chat.ask(ADA, f"{MENTION} Are you there?")
        assert "/talk" in why
    # The room has ended before the database was closed, and its session with it.
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*), count(ended_at) FROM sessions").fetchall() == [(1, 1)]
