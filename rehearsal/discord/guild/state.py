"""The state of the local guild: who is in which voice channel, the text messages, and the registered commands.

The module does no I/O. The gateway sends the changes to clients, and the voice gateway reads the credentials.
"""

from __future__ import annotations

import itertools
import re
import secrets
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.granted import channel_permissions
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.guild.spec import Channel, GuildSpec
from rehearsal.errors import LocalDiscordError

# The oldest messages are deleted beyond this number, so that `--serve` can run for days.
_MESSAGES_KEPT = 1000
# Discord's ids count milliseconds from the first second of 2015.
_DISCORD_EPOCH_MS = 1_420_070_400_000
_TIMESTAMP_SHIFT = 22
# What Discord shows as a command that can be pressed.
_COMMAND_MENTION = re.compile(r"</(?P<name>[^:>]+):(?P<id>\d+)>")
# The type of a button among the components of a message.
BUTTON = 2
# Menus: of own options, of people, of roles, and of channels.
STRING_MENU, USER_MENU, ROLE_MENU, CHANNEL_MENU = 3, 5, 6, 8
MENUS = (STRING_MENU, USER_MENU, ROLE_MENU, CHANNEL_MENU)


@dataclass(frozen=True, slots=True)
class VoiceCredentials:
    """The data of VOICE_STATE_UPDATE and VOICE_SERVER_UPDATE, which a client needs to connect to voice."""

    state: Json
    server: Json

    def as_dict(self) -> Json:
        """Return the data of both events under the names that the control API uses."""
        return {"state": self.state, "server": self.server}


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """A message in a text channel, after its last edit. `content`: as people on the server read it."""

    id: int
    channel_id: int
    author_id: int
    content: str
    payload: Json = field(repr=False)

    def as_dict(self) -> Json:
        """Return the message as the control API sends it."""
        return {
            "id": str(self.id),
            "channel_id": str(self.channel_id),
            "author_id": str(self.author_id),
            "content": self.content,
            "buttons": buttons_of(self.payload),
        }


def buttons_of(message: Json) -> list[Json]:
    """Return the buttons below a message that a person can press, from left to right and top to bottom."""
    return [
        {
            "custom_id": each["custom_id"],
            "label": each.get("label") or "",
            "disabled": bool(each.get("disabled")),
        }
        for row in message.get("components", [])
        for each in row.get("components", [])
        if each.get("type") == BUTTON and "custom_id" in each
    ]


def menus_of(message: Json) -> list[Json]:
    """Return the menus below a message, from top to bottom, as the bot described them."""
    rows = message.get("components", [])
    return [each for row in rows for each in row.get("components", []) if each.get("type") in MENUS]


class LocalGuild:
    """The guild's state. Use it only from the event loop's thread.

    `beside`: another guild of the same Discord, with the same applications and so the same commands.
    """

    def __init__(self, guild: GuildSpec, *, beside: LocalGuild | None = None) -> None:
        self.guild = guild
        # The voice states of those who are in a channel, and the voice tokens in force, by their members.
        self.voice_states: dict[int, Json] = {}
        self.voice_tokens: dict[int, str] = {}
        # Messages and threads by their ids, as the API sends them.
        self.written: dict[int, Json] = {}
        self.threads: dict[int, Json] = {}
        self._message_order: deque[int] = deque()
        self._commands: dict[int, list[Json]] = {} if beside is None else beside._commands
        self._nicknames: dict[int, str | None] = {}
        self._counter = itertools.count(1)
        # Messages older than this may be edited so often from now on, all of them together (the fault "old_edits").
        # Discord's limit is about those that are older than an hour, and it does not publish the number.
        self.old_after_s = 3600.0
        self.old_edits_left = 3

    def snowflake(self) -> int:
        """Return a new id. As in Discord's own ids, the upper bits hold the time."""
        milliseconds = time.time_ns() // 1_000_000 - _DISCORD_EPOCH_MS
        return milliseconds << _TIMESTAMP_SHIFT | next(self._counter) & (1 << _TIMESTAMP_SHIFT) - 1

    @staticmethod
    def age_s(snowflake: int) -> float:
        """Return how long ago an id was made, in seconds."""
        return time.time() - ((snowflake >> _TIMESTAMP_SHIFT) + _DISCORD_EPOCH_MS) / 1000

    def set_nickname(self, user_id: int, nickname: str | None) -> Json:
        """Give a member another name in the guild, or none; return the member."""
        self._nicknames[user_id] = nickname
        return self.member(user_id)

    def member(self, user_id: int) -> Json:
        """Return a member with its nickname."""
        return {**payloads.guild_member(self.guild, user_id), "nick": self._nicknames.get(user_id)}

    # --- voice -------------------------------------------------------------------------------------------------

    def enter_voice(
        self, user_id: int, channel_id: int, *, self_mute: bool = False, self_deaf: bool = False, anew: bool = False
    ) -> Json:
        """Move a member into a voice channel and return the voice state.

        A member who enters the same channel again keeps the session id, unless `anew`. Raises `LocalDiscordError` for
        an unknown member, or for a channel that is not a voice channel.
        """
        if not self.guild.is_voice(channel_id):
            known = ", ".join(str(channel.id) for channel in self.guild.voice_channels)
            raise LocalDiscordError(f"Channel {channel_id} is not a voice channel. The voice channels are {known}.")
        old = self.voice_states.get(user_id)
        stays = old is not None and old["channel_id"] == str(channel_id)
        session_id = old["session_id"] if old is not None and stays and not anew else secrets.token_hex(16)
        state = self._voice_state(user_id, channel_id, session_id, self_mute=self_mute, self_deaf=self_deaf)
        if self.guild.is_stage(channel_id):
            # A member enters a stage as part of the audience.
            state["suppress"] = old["suppress"] if old is not None and stays else True
        self.voice_states[user_id] = state
        return state

    def set_stage_role(self, user_id: int, *, suppress: bool, asks_at: str | None) -> Json:
        """Make a member of a stage a speaker, or part of the audience with a request to speak at `asks_at`. Return the
        state.
        """
        changed = {"suppress": suppress, "request_to_speak_timestamp": asks_at}
        state = self.voice_states[user_id] = {**self.voice_states[user_id], **changed}
        return state

    def leave_voice(self, user_id: int) -> Json | None:
        """Remove a member from voice. Return the voice state to send, or None if the member was in no channel."""
        old = self.voice_states.pop(user_id, None)
        self.voice_tokens.pop(user_id, None)
        if old is None:
            return None
        return self._voice_state(user_id, None, old["session_id"], self_mute=False, self_deaf=False)

    def issue_voice_server(self, user_id: int, endpoint: str) -> Json:
        """Make a new voice token and return the data of VOICE_SERVER_UPDATE. The old token becomes invalid."""
        token = self.voice_tokens[user_id] = secrets.token_hex(8)
        return {"token": token, "guild_id": str(self.guild.id), "endpoint": endpoint}

    def voice_channel_of(self, user_id: int) -> int | None:
        """Return the id of the member's voice channel, or None."""
        state = self.voice_states.get(user_id)
        return None if state is None else int(state["channel_id"])

    def _voice_state(
        self, user_id: int, channel_id: int | None, session_id: str, *, self_mute: bool, self_deaf: bool
    ) -> Json:
        return {
            "guild_id": str(self.guild.id),
            "channel_id": None if channel_id is None else str(channel_id),
            "user_id": str(user_id),
            "member": payloads.guild_member(self.guild, user_id),
            "session_id": session_id,
            "deaf": False,
            "mute": False,
            "self_deaf": self_deaf,
            "self_mute": self_mute,
            "self_video": False,
            "self_stream": False,
            "suppress": False,
            "request_to_speak_timestamp": None,
        }

    # --- text --------------------------------------------------------------------------------------------------

    def has_channel(self, channel_id: int) -> bool:
        """Return whether the guild has this text channel or thread. Voice channels count: they have a text chat."""
        return channel_id in self.threads or any(channel.id == channel_id for channel in self.guild.channels)

    def channel_of(self, channel_id: int) -> Channel:
        """Return a channel of the guild; for a thread, the channel that it is in."""
        thread = self.threads.get(channel_id)
        wanted = channel_id if thread is None else int(thread["parent_id"])
        return next(channel for channel in self.guild.channels if channel.id == wanted)

    def permissions_in(self, channel_id: int, user_id: int) -> int:
        """Return what a member may do in a channel or thread."""
        in_thread = channel_id in self.threads
        return channel_permissions(self.guild, self.channel_of(channel_id), user_id, in_thread=in_thread)

    def add_thread(self, parent_id: int, name: str, owner_id: int) -> Json:
        """Begin a thread in a text channel and return it."""
        thread_id = self.snowflake()
        thread = payloads.thread(self.guild, thread_id=thread_id, parent_id=parent_id, name=name, owner_id=owner_id)
        self.threads[thread_id] = thread
        return thread

    def change_thread(self, thread_id: int, changes: Json) -> Json:
        """Change what is told of a thread (`archived`, `locked`), and return it."""
        thread = self.threads[thread_id]
        thread["thread_metadata"] |= changes
        return thread

    def delete_thread(self, thread_id: int) -> Json:
        """Delete a thread with its messages, and return it."""
        self.written = {key: each for key, each in self.written.items() if each["channel_id"] != str(thread_id)}
        return self.threads.pop(thread_id)

    def add_message(self, payload: Json) -> None:
        """Add a message, and delete the oldest message when there are too many."""
        message_id = int(payload["id"])
        self.written[message_id] = payload
        self._message_order.append(message_id)
        while len(self._message_order) > _MESSAGES_KEPT:
            self.written.pop(self._message_order.popleft(), None)

    def messages(self) -> tuple[PostedMessage, ...]:
        """Return the messages of all text channels, oldest first."""
        return tuple(
            PostedMessage(
                id=int(payload["id"]),
                channel_id=int(payload["channel_id"]),
                author_id=int(payload["author"]["id"]),
                content=self.shown(payload["content"], self.guild.locale),
                payload=payload,
            )
            for payload in self.written.values()
        )

    def shown(self, content: str, locale: str) -> str:
        """Return a text as a client in this language shows it: in place of a command's mention its name there."""

        def named(found: re.Match[str]) -> str:
            path = [command for _, command in self.all_commands() if command["id"] == found["id"]]
            if not path:
                return found[0]
            for word in found["name"].split()[1:]:
                path += [option for option in path[-1]["options"] if option["name"] == word]
            names = (str((each.get("name_localizations") or {}).get(locale, each["name"])) for each in path)
            return f"/{' '.join(names)}"

        return _COMMAND_MENTION.sub(named, content)

    # --- commands ----------------------------------------------------------------------------------------------

    def put_commands(self, application_id: int, guild_id: int | None, commands: list[Json]) -> list[Json]:
        """Replace an application's global or guild commands; return them as registered."""
        scope = None if guild_id is None else str(guild_id)
        others = [each for each in self._commands.get(application_id, []) if each.get("guild_id") != scope]
        registered = [self._registered(application_id, scope, command) for command in commands]
        self._commands[application_id] = others + registered
        return registered

    def commands(self, application_id: int, guild_id: int | None) -> list[Json]:
        """Return an application's global or guild commands."""
        scope = None if guild_id is None else str(guild_id)
        return [each for each in self._commands.get(application_id, []) if each.get("guild_id") == scope]

    def all_commands(self) -> Iterator[tuple[int, Json]]:
        """Yield the application id and the data of each registered command, guild commands before global ones."""
        for application_id, commands in self._commands.items():
            for command in sorted(commands, key=lambda each: "guild_id" not in each):
                yield application_id, command

    def _registered(self, application_id: int, scope: str | None, command: Json) -> Json:
        registered: Json = {
            "type": 1,
            "description": "",
            "options": [],
            "default_member_permissions": None,
            "nsfw": False,
            "integration_types": [0],
            **payloads.without_nulls(command),
            "id": str(self.snowflake()),
            "application_id": str(application_id),
            "version": "1",
        }
        if registered["default_member_permissions"] is not None:
            registered["default_member_permissions"] = str(registered["default_member_permissions"])
        if scope is not None:
            registered["guild_id"] = scope
        return registered
