"""The tree of slash commands that asks `bot.discord.admission` and `bot.discord.access` before it runs one.

It finds out who the person is: their permissions on the whole server, their roles, and where they are.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

import discord
import structlog
from discord import app_commands

from bot.discord.access import RULES, CommandUser, Cooldowns, often, refusal
from bot.discord.admission import Verdict
from bot.discord.answers import answer
from bot.discord.audience import is_told_in, reader_of
from bot.discord.request_errors import REQUEST_ERRORS
from bot.readers import Reader
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from bot.channel.port import Place
    from bot.discord.admission import GuildAdmission
    from bot.server_settings import ServerSettingsBook
    from bot.settings import DiscordSettings
    from bot.shards import Shards

log = structlog.get_logger()

NOT_SHOWN = Text("Discord does not show me this server at the moment. Try again in a moment.")


class BotWhereabouts(Protocol):
    """Knows where the bot is; `bot.room.rooms.Rooms` implements it."""

    def place_of(self, guild_id: int) -> Place | None:
        """Return the channel that the bot is in, or None."""


class CheckedCommandTree(app_commands.CommandTree[Any]):
    """A command tree whose every command is checked. All commands work only on servers, not in direct messages.

    `servers`: what each server has chosen. `whereabouts`: knows where the bot is.
    """

    def __init__(
        self,
        client: discord.Client,
        settings: DiscordSettings,
        *,
        admission: GuildAdmission,
        whereabouts: BotWhereabouts,
        servers: ServerSettingsBook,
        shards: Shards,
    ) -> None:
        super().__init__(
            client,
            allowed_contexts=app_commands.AppCommandContext(guild=True, dm_channel=False, private_channel=False),
            allowed_installs=app_commands.AppInstallationType(guild=True, user=False),
        )
        self._settings = settings
        self._admission = admission
        self.whereabouts = whereabouts
        self.servers = servers
        self._shards = shards
        self._cooldowns = Cooldowns()
        # What returns the views for presses on messages of an earlier process.
        self.lasting_views: list[Callable[[], Iterable[discord.ui.View]]] = []

    def apply_rules(self) -> None:
        """Set the commands' default permissions. Call it once all are added.

        Raises `KeyError` for a command without a rule, which is a mistake in the code.
        """
        for command in self.get_commands():
            assert isinstance(command, app_commands.Command | app_commands.Group), "there are no context menus"
            command.default_permissions = RULES[next(_names(command))].default

    async def interaction_check(self, interaction: discord.Interaction, /) -> bool:
        """Return whether the command may run. If not, answer with the reason, which only that person sees."""
        if self._shards.is_divided and interaction.guild_id is not None:
            # Each use of a command is a task of its own, which the room that it opens inherits this from.
            structlog.contextvars.bind_contextvars(shard=self._shards.of(interaction.guild_id))
        command = interaction.command
        if command is None:
            # discord.py reports the unknown command.
            return True
        refused = await self._refusal(interaction, command.qualified_name)
        completes = interaction.type is discord.InteractionType.autocomplete
        if refused is None and not completes:
            refused = self._cooldown(interaction, command.qualified_name)
        if refused is None:
            return True
        if completes:
            # It can be answered with suggestions only, and there are none.
            return False
        log.info(
            "command_refused",
            command=command.qualified_name,
            guild_id=interaction.guild_id,
            user_id=interaction.user.id,
        )
        try:
            await answer(interaction, refused)
        except REQUEST_ERRORS as error:
            log.warning("refusal_not_sent", command=command.qualified_name, error_class=type(error).__name__)
        return False

    async def refusal_of_press(self, interaction: discord.Interaction, *, command: str) -> Text | None:
        """Return why a button that does what `command` does may not be pressed, or None. A press counts as a use."""
        return await self._refusal(interaction, command) or self._cooldown(interaction, command)

    async def _refusal(self, interaction: discord.Interaction, command: str) -> Text | None:
        guild = interaction.guild
        if guild is None:
            # The bot has left a server that is not known here, and Discord does not know it yet.
            return Verdict.UNINVITED.sentence
        verdict = await self._admission.check(guild)
        if verdict is not Verdict.SERVED:
            return verdict.sentence
        refused = refusal(command, self.user_of(interaction))
        if not guild.roles and (refused is not None or RULES[command].needs_role):
            # In a new session discord.py knows the server before it knows its roles and who is in which channel.
            return NOT_SHOWN
        return refused

    def _cooldown(self, interaction: discord.Interaction, command: str) -> Text | None:
        """Count one use of a command; return how long the person has to wait if there were too many."""
        cooldown = RULES[command].cooldown
        if cooldown is None or interaction.guild_id is None:
            return None
        now = time.monotonic()
        wait_s = self._cooldowns.use(interaction.guild_id, interaction.user.id, command, cooldown, now=now)
        return often(wait_s) if wait_s else None

    def user_of(self, interaction: discord.Interaction) -> CommandUser:
        """Return what the rules need to know of the person who uses a command."""
        member, guild_id = interaction.user, interaction.guild_id
        here = None if guild_id is None else self.whereabouts.place_of(guild_id)
        if not isinstance(member, discord.Member):
            return CommandUser(discord.Permissions.none(), has_role=False)
        chosen = self.servers.of(member.guild.id).roles
        return CommandUser(
            member.guild_permissions,
            is_owner=member.id in self._admission.owners,
            has_role=not chosen or has_chosen_role(member, chosen),
            is_present=here is not None and member.voice is not None and _channel_id(member.voice) == here.channel_id,
            bot_is_away=here is None,
        )

    def reader_of(self, interaction: discord.Interaction) -> Reader:
        """Return what `bot.readers` needs to know of the person who uses a command here."""
        member = interaction.user
        if not isinstance(member, discord.Member):
            return Reader(str(member.id), interaction.guild_id or 0, frozenset())
        return reader_of(
            member,
            self.servers.of(member.guild.id),
            manages=self.user_of(interaction).is_manager,
            is_told=lambda channel: is_told_in(channel, interaction.channel),
        )


def has_chosen_role(member: discord.Member, chosen: Collection[int]) -> bool:
    """Return whether a member has one of the roles that the server has chosen."""
    return any(role.id in chosen for role in member.roles)


def _channel_id(voice: discord.VoiceState) -> int | None:
    return None if voice.channel is None else voice.channel.id


def _names(command: app_commands.Command[Any, ..., Any] | app_commands.Group) -> Iterator[str]:
    """Yield the full name of a command, or those of a group's commands."""
    if isinstance(command, app_commands.Group):
        for each in command.walk_commands():
            yield from _names(each)
    else:
        yield command.qualified_name
