"""Commands and buttons that break: the person who used them reads why, whatever Discord was told before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import discord
import pytest
from discord import app_commands
from structlog.testing import capture_logs

from bot.channel.port import Person
from bot.discord.failures import NOT_FOUND, OUTDATED, command_failed
from bot.discord.place import DiscordPlace
from bot.memory.session_reader import SessionReader
from compaction.errors import StoreError
from tests.bot.discord.commands.test_catch_up import catching_up
from tests.bot.discord.remembered import BEN, GUILD, LOUNGE
from tests.bot.discord.test_client import online
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

BROKE = "Something in me broke."


async def fail(*_: object, **__: object) -> None:
    """Stand for a defect."""
    raise KeyError("what Ada said")


async def test_a_button_that_breaks_after_discord_was_told_to_wait_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discord would show 'thinking…' for a quarter of an hour. The answer has none of the error's words."""
    async with catching_up(tmp_path) as here:
        place = here.client.place(GUILD.id, LOUNGE)
        assert isinstance(place, DiscordPlace)
        assert await place.offer_catch_up(Person(BEN, "Ben", is_bot=False), minutes=12)
        (offer,) = here.local.messages
        monkeypatch.setattr(SessionReader, "find", fail)
        with capture_logs() as logs:
            pressed = await here.local.press(BEN, offer.id, "roomtone:catch-up")
        assert pressed.deferred
        (reply,) = pressed.replies
        assert (reply.content, reply.ephemeral) == (BROKE, True)
        assert [line["button"] for line in logs if line["event"] == "button_failed"] == ["roomtone:catch-up"]


async def test_who_uses_a_command_that_an_upgrade_has_removed_is_told_what_to_do() -> None:
    """Discord clients go on showing it for a while. It is no fault of the bot."""
    async with online() as (local, client, _):
        client.tree.remove_command("status")
        with capture_logs() as logs:
            result = await local.invoke(BEN, "status")
            await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        assert result.replies[0].content == OUTDATED
        assert [line for line in logs if line["log_level"] == "error"] == []


_COMMAND = cast("Any", SimpleNamespace(name="look", qualified_name="watch look"))


@pytest.mark.parametrize(
    ("error", "told", "level"),
    [
        (app_commands.CommandNotFound("dig", []), OUTDATED, "warning"),
        (app_commands.CommandSignatureMismatch(_COMMAND), OUTDATED, "warning"),
        (
            app_commands.TransformerError(
                "2009", discord.AppCommandOptionType.user, cast("Any", SimpleNamespace(_error_display_name="Member"))
            ),
            NOT_FOUND,
            "info",
        ),
        (app_commands.CommandInvokeError(_COMMAND, KeyError("what Ada said")), BROKE, "error"),
        (app_commands.CommandInvokeError(_COMMAND, StoreError("The disk is full.")), "The disk is full.", "error"),
    ],
)
async def test_a_failed_command_says_what_to_do(error: app_commands.AppCommandError, told: str, level: str) -> None:
    """An old form of a command, and somebody who is not on the server, are no defects of the bot."""
    sent: list[str] = []

    async def send(text: str, **_: object) -> None:
        sent.append(text)

    interaction = SimpleNamespace(
        command=_COMMAND,
        guild_id=GUILD.id,
        locale=discord.Locale.american_english,
        response=SimpleNamespace(send_message=send, is_done=lambda: False),
        extras={},
    )
    with capture_logs() as logs:
        await command_failed(cast("Any", interaction), error)
    assert sent == [told]
    assert [line["log_level"] for line in logs] == [level]
