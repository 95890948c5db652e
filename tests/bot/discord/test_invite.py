"""The invitation asks for exactly the permissions that the code uses."""

from __future__ import annotations

import ast
import base64
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import discord
import pytest
import typer
from typer.testing import CliRunner

from bot.cli import invite
from bot.discord.admission import invite_url
from bot.discord.permissions import PERMISSIONS
from bot.errors import SetupError
from tests.sources import nodes

BOT = Path(__file__).parents[3] / "bot"
SOURCES = (BOT / "discord", BOT / "channel")

# A call of discord.py, or a call with a keyword -> the permissions that Discord demands for it. Answers to commands go
# through the interaction (`interaction.response`, `interaction.followup`) and need none.
NEEDED = {
    "channel.send": {"view_channel", "send_messages"},
    "send(embed)": {"embed_links"},
    "send(file)": {"attach_files"},
    "history": {"read_message_history"},
    "request_to_speak": {"request_to_speak"},
    "create_thread": {"create_public_threads"},
    "thread.send": {"send_messages_in_threads"},
    "edit(nick)": {"change_nickname"},
    # The voice connection of `voice.transport`.
    "DiscordVoiceConnection": {"connect", "speak"},
    # Optional: who gives the bot Mute Members lets it make itself a speaker. Otherwise it asks (`request_to_speak`).
    "edit(suppress)": set(),
    # Its own messages need no further permission.
    "edit(content)": set(),
    "edit(embed)": set(),
    "edit(view)": set(),
    "edit(attachments)": {"attach_files"},
}


def calls() -> Iterator[str]:
    """Yield the calls of bot/discord and bot/channel that `NEEDED` may name."""
    for path in (path for folder in SOURCES for path in folder.rglob("*.py")):
        for node in nodes(path):
            match node:
                case ast.Call(func=ast.Attribute() as function):
                    yield from _names_of(node, function)
                case ast.Call(func=ast.Name("post_message" | "begin_post"), args=[channel, *_]):
                    yield from _names_of_post(node, ast.unparse(channel))
                case ast.Call(func=ast.Name("DiscordVoiceConnection")):
                    yield "DiscordVoiceConnection"


def _names_of(node: ast.Call, function: ast.Attribute) -> Iterator[str]:
    owner = ast.unparse(function.value).lower()
    if "interaction" in owner:
        return
    keywords = [keyword.arg for keyword in node.keywords if keyword.arg]
    match function.attr:
        case "send" | "_post":
            yield from _names_of_post(node, owner)
        case "edit":
            yield from (f"edit({keyword})" for keyword in keywords if keyword not in {"allowed_mentions"})
        case "history" | "request_to_speak" | "create_thread" as name:
            yield name


def _names_of_post(node: ast.Call, channel: str) -> Iterator[str]:
    yield "thread.send" if "thread" in channel.lower() else "channel.send"
    yield from (f"send({keyword.arg})" for keyword in node.keywords if keyword.arg in {"embed", "file"})
    if any(keyword.arg is None for keyword in node.keywords):
        # Whatever `DiscordPosts` posts, also in a thread.
        yield from ("thread.send", "send(embed)")


def test_the_invitation_has_the_permissions_that_the_code_uses() -> None:
    """Each call needs what `NEEDED` says, and the invitation asks for all of that and nothing else."""
    made = set(calls())
    assert made <= set(NEEDED), "a call whose permissions nobody has looked up"
    needed = set().union(*(NEEDED[name] for name in made))
    assert needed == set(PERMISSIONS)


def test_the_link_has_scopes_and_permissions() -> None:
    """The link names the application, both scopes, and the permissions as Discord's number."""
    query = parse_qs(urlsplit(invite_url(123)).query)
    assert (query["client_id"], query["scope"]) == (["123"], ["bot applications.commands"])
    assert query["permissions"] == [str(discord.Permissions(**dict.fromkeys(PERMISSIONS, True)).value)]


def test_the_command_prints_the_link_and_what_each_permission_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The link is on a line of its own; the token is not in the output."""
    token = base64.b64encode(b"123456789012345678").decode() + ".secret.part"
    monkeypatch.setenv("DISCORD_TOKEN", token)

    app = typer.Typer()
    app.command()(invite.command)
    printed = CliRunner().invoke(app).output
    assert printed.splitlines()[0] == invite_url(123456789012345678)
    assert "  Speak: answer aloud" in printed
    assert "secret" not in printed
    monkeypatch.setenv("DISCORD_TOKEN", "nonsense")
    assert isinstance(CliRunner().invoke(app).exception, SetupError)
