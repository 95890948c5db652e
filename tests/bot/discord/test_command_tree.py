"""Every command asks the table before it runs, against the local Discord; and docs/commands.md shows the table. Who
used a command or a button that breaks reads why, whatever Discord was told before.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import discord
import pytest
from discord import app_commands
from structlog.typing import EventDict

from bot.channel.port import Person
from bot.discord.access import PEOPLE, RULES, Who
from bot.discord.client import RoomtoneClient
from bot.discord.command_tree import NOT_FOUND, NOT_SHOWN, OUTDATED
from bot.memory.session_views import SessionViews
from bot.settings import DiscordSettings
from bot.texts.text import Text
from compaction.errors import StoreError
from rehearsal.discord.guild import permissions
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.client import ADA, BEN, FakeRooms, answered, enters, online, room_channel_in
from tests.bot.discord.commands.all_commands import all_commands
from tests.bot.discord.commands.local_server import server_with
from tests.bot.discord.remembered import GUILD, LOUNGE, catching_up

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"


async def test_nobody_is_taken_for_a_stranger_while_discord_does_not_show_the_server(
    local: LocalDiscord, client: RoomtoneClient, rooms: FakeRooms
) -> None:
    """In a new session, for moments, and during an outage: who is where, and who moderates, is not known then."""
    rooms.room_channel = client.find_channel(local.guild.id, LOUNGE)
    await enters(local, rooms, BEN)
    client._connection._add_guild_from_data(cast("Any", {"id": str(local.guild.id), "unavailable": True}))
    for command in ("leave", "join"):
        assert await answered(local, BEN, command) == [NOT_SHOWN]
    assert rooms.room_channel is not None


async def test_rights_in_one_channel_make_nobody_a_manager(
    local: LocalDiscord, client: RoomtoneClient, rooms: FakeRooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions count on the whole server: who may manage the channel in which they type is no manager by that."""
    rooms.room_channel = client.find_channel(local.guild.id, LOUNGE)
    granting = "rehearsal.discord.guild.state.channel_permissions"
    monkeypatch.setattr(granting, lambda *_, **__: permissions.ALL)
    assert PEOPLE[Who.PRESENT_OR_MANAGERS] in (await answered(local, BEN, "leave"))[0]
    assert await answered(local, ADA, "status") == ["I am well."]


async def test_discord_is_told_the_default_permissions() -> None:
    """Discord shows commands only on servers, and those of the voice channel only to people who may connect; and their
    names in German.
    """
    async with online() as (local, _, _):
        registered = {command["name"]: command for _, command in local.state.all_commands()}
    assert registered["join"]["default_member_permissions"] == str(discord.Permissions(connect=True).value)
    assert registered["leave"]["default_member_permissions"] is None
    assert {tuple(command["contexts"]) for command in registered.values()} == {(0,)}
    assert {tuple(command["integration_types"]) for command in registered.values()} == {(0,)}
    assert registered["join"]["name_localizations"] == {"de": "komm"}
    assert registered["join"]["description_localizations"]["de"].startswith("Ruf mich in deinen Sprachkanal")


async def test_who_may_not_use_a_command_gets_no_suggestions(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: without an answer Discord says that loading them failed."""

    def add(tree: app_commands.CommandTree[Any]) -> None:
        async def suggested(_: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
            return [app_commands.Choice(name=f"{typed}!", value=typed)]

        @tree.command(name="recap", description="Recaps.")
        @app_commands.autocomplete(session=suggested)
        async def recap(interaction: discord.Interaction, session: str) -> None:
            """Not called."""

    async with server_with(add) as local:
        assert await local.suggest(BEN, "recap", "session", "ever") == [("ever!", "ever")]
        monkeypatch.setattr("bot.discord.command_tree.refusal", lambda *_: Text("No."))
        assert await local.suggest(BEN, "recap", "session", "ever") == []


async def test_a_command_without_a_rule_stops_the_bot() -> None:
    """A command that nobody has put into the table is a mistake in the code, so the bot does not start with it."""

    def add(tree: app_commands.CommandTree[Any]) -> None:
        @tree.command(name="open-sesame", description="Opens.")
        async def open_sesame(interaction: discord.Interaction) -> None:
            """Not called."""

    with pytest.raises(KeyError, match="open-sesame"):
        RoomtoneClient(DiscordSettings(), FakeRooms(), [add])


# The page explains these words below its table.
SHORT = {
    "people in my voice channel and members who can manage the server": "channel, managers",
    "people in my voice channel": "channel",
    "members who can manage the server": "managers",
    "members of this server": "everybody",
    "with one of the roles": "with a role",
}


def table() -> str:
    """Return the table of docs/commands.md: what each command does, and who may use it."""
    lines = ["| command | what it does | who may use it | who sees it in Discord |", "|---|---|---|---|"]
    for command in all_commands():
        rule = RULES[command.qualified_name]
        who = f"{PEOPLE[rule.who]}{', with one of the roles' if rule.needs_role else ''}"
        default = (
            "everybody"
            if rule.default is None
            else "who has "
            + ", ".join(name for name, is_set in rule.default if is_set)
            .replace("_", " ")
            .title()
            .replace("Guild", "Server")
        )
        people = re.sub(r" \(.*?\)", "", who)
        for long, short in SHORT.items():
            people = people.replace(long, short)
        lines.append(f"| `/{command.qualified_name}` | {command.description} | {people} | {default} |")
    return "\n".join(lines)


async def test_the_documentation_shows_the_table() -> None:
    """docs/commands.md has exactly this table. If it differs, replace it by the one in this failure."""
    assert {command.qualified_name for command in all_commands()} == set(RULES)
    (shown,) = re.findall(r"(?:^\|.*\n)+", PAGE.read_text("utf-8"), re.MULTILINE)
    assert shown.strip() == table()


BROKE = "Something went wrong inside me."


async def fail(*_: object, **__: object) -> None:
    """Stand for a defect."""
    raise KeyError("what Ada said")


async def test_a_button_that_breaks_after_discord_was_told_to_wait_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told_to_wait: asyncio.Event, logs: list[EventDict]
) -> None:
    """Discord would show 'thinking…' for a quarter of an hour. The answer has none of the error's words."""

    async def fail_late(*_: object, **__: object) -> None:
        await told_to_wait.wait()
        await fail()

    async with catching_up(tmp_path) as here:
        room_channel = room_channel_in(here.client, LOUNGE)
        assert await room_channel.offer_catch_up(Person(BEN, "Ben", is_bot=False), minutes=12)
        (offer,) = here.local.messages
        monkeypatch.setattr(SessionViews, "find", fail_late)
        pressed = await here.local.press(BEN, offer.id, "roomtone:catch-up")
        assert pressed.deferred
        (reply,) = pressed.replies
        assert (reply.content, reply.ephemeral) == (BROKE, True)
        assert [line["command"] for line in logs if line["event"] == "command_failed"] == ["roomtone:catch-up"]


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
async def test_a_failed_command_says_what_to_do(
    error: app_commands.AppCommandError, told: str, level: str, logs: list[EventDict]
) -> None:
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
    await RoomtoneClient(DiscordSettings(), FakeRooms()).tree.on_error(cast("Any", interaction), error)
    assert sent == [told]
    assert [line["log_level"] for line in logs] == [level]
