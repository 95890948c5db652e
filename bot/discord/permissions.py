"""The permissions that the bot asks for: what it uses each for, and which of them it lacks somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import discord

from bot.texts.text import Text, joined

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# Permission -> its name on Discord, and what the bot uses it for. A test compares them with the calls in the code. Not
# among them: Mute Members, by which it would make itself a speaker on a stage (it asks to speak), and Move Members, by
# which it would enter full channels.
PERMISSIONS: Mapping[str, tuple[Text, Text]] = {
    "view_channel": (Text("View Channel"), Text("see the voice channels and their chats")),
    "connect": (Text("Connect"), Text("come into a voice channel")),
    "speak": (Text("Speak"), Text("answer aloud")),
    "request_to_speak": (Text("Request to Speak"), Text("ask to speak on a stage")),
    "send_messages": (
        Text("Send Messages"),
        Text("write that the bot is listening, and write what it cannot say"),
    ),
    "embed_links": (Text("Embed Links"), Text("show a session and its recap as a table")),
    "attach_files": (Text("Attach Files"), Text("post a file with what was said")),
    "read_message_history": (
        Text("Read Message History"),
        Text("read the files that people post, and reply to messages"),
    ),
    "create_public_threads": (Text("Create Public Threads"), Text("write into a thread what is said")),
    "send_messages_in_threads": (Text("Send Messages in Threads"), Text("write into a thread what is said")),
    "change_nickname": (Text("Change Nickname"), Text("show in the bot's name that it is listening")),
}
LACKING = Text("I need more permissions in {channel}: {permissions}. A server manager can give them to my role.")
WITHOUT = Text("{permission} (to {use})")


def invited() -> discord.Permissions:
    """Return the permissions of the invitation."""
    return discord.Permissions(**dict.fromkeys(PERMISSIONS, True))


def lacking(granted: discord.Permissions, channel: str, wanted: Collection[str] = PERMISSIONS) -> Text | None:
    """Return what the bot lacks of these permissions in a channel, and what it would use it for; None: nothing."""
    missing = [found for name, found in PERMISSIONS.items() if name in wanted and not getattr(granted, name)]
    if not missing:
        return None
    named = [WITHOUT.fill(permission=permission, use=use) for permission, use in missing]
    return LACKING.fill(channel=channel, permissions=joined(named, ", "))


def lacking_in(channel: discord.abc.GuildChannel) -> Text | None:
    """Return what the bot lacks for a session in a voice channel, or None."""
    return lacking(channel.permissions_for(channel.guild.me), channel.name, missing_in(channel))


def missing_in(channel: discord.abc.GuildChannel) -> list[str]:
    """Return the permissions that the bot lacks for a session in a voice channel, by discord.py's names."""
    unused = "speak" if isinstance(channel, discord.StageChannel) else "request_to_speak"
    granted = channel.permissions_for(channel.guild.me)
    return [name for name in PERMISSIONS if name != unused and not getattr(granted, name)]
