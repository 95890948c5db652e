"""The link by which somebody adds the bot to their server, with exactly the permissions that it uses there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import discord

if TYPE_CHECKING:
    from collections.abc import Mapping

# Slash commands need the second; the first makes it a member.
SCOPES = ("bot", "applications.commands")

# Permission -> what the bot uses it for. A test compares them with the calls in the code. Not among them: Mute Members,
# by which it would make itself a speaker on a stage (it asks to speak), and Move Members, by which it would enter full
# channels.
PERMISSIONS: Mapping[str, str] = {
    "view_channel": "see the voice channels and their chats",
    "connect": "come into a voice channel",
    "speak": "answer aloud",
    "request_to_speak": "ask to speak on a stage",
    "send_messages": "write the notice that it listens, and what it cannot say aloud",
    "embed_links": "show how a session goes, and recaps, as tables",
    "attach_files": "post the transcript of a session in which it only listens",
    "read_message_history": "read the files that people drop, for whoever asks",
    "create_public_threads": "write a transcript into a thread",
    "send_messages_in_threads": "write a transcript into a thread",
    "change_nickname": "show at its name that it listens",
}


def permissions() -> discord.Permissions:
    """Return the permissions of the link."""
    return discord.Permissions(**dict.fromkeys(PERMISSIONS, True))


def invite_url(application_id: int, guild_id: int | None = None) -> str:
    """Return the link. `guild_id`: the server to add the bot to; None: whoever opens it chooses."""
    if guild_id is None:
        return discord.utils.oauth_url(application_id, permissions=permissions(), scopes=SCOPES)
    guild = discord.Object(guild_id)
    return discord.utils.oauth_url(
        application_id, permissions=permissions(), scopes=SCOPES, guild=guild, disable_guild_select=True
    )
