"""The tree of slash commands that asks `bot.discord.admission` and `bot.discord.access` before it runs one, and the
views of buttons and menus, whose presses are checked in the same way.

It finds out who the person is: their permissions on the whole server, their roles, and where they are. If a command or
a button breaks, they read why: Discord tells them only if it was not answered at all, and lets somebody wait for a
quarter of an hour who was told to.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import discord
import structlog
from discord import app_commands

from bot.discord.access import RULES, CommandUser, Cooldowns, often, refusal
from bot.discord.admission import GuildAdmission, Verdict
from bot.discord.answers import OVER, answer
from bot.discord.posting import attempt
from bot.discord.voice_channels import is_age_allowed, member_of, role_ids, viewer_of, voice_channel_of
from bot.errors import crash_sentence
from bot.texts.text import ENGLISH, Text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from bot.room.rooms import Rooms
    from bot.server_settings import ServerSettingsBook
    from bot.shards import Shards
    from bot.viewers import Viewer

log = structlog.get_logger()

NOT_SHOWN = Text("Discord does not show me this server at the moment. Try again in a moment.")
# A Discord client keeps the commands that it has seen, also while an upgrade of the bot changes them.
OUTDATED = Text(
    "Your Discord has an old version of this command. Restart Discord, or press Ctrl+R in it. Then try again."
)
NOT_FOUND = Text("I cannot find what you chose. It is gone, or it is not on this server.")


@dataclass(slots=True)
class ChatButtons:
    """Makes the buttons below messages in the chat, in a language: below a notice that asks, below the sentence about a
    silence, and below the offer to who comes back. The commands that do the same put them here.
    """

    consent: Callable[[str], discord.ui.View] | None = None
    talk: Callable[[str], discord.ui.View] | None = None
    catch_up: Callable[[str], discord.ui.View] | None = None

    def lasting(self) -> list[discord.ui.View]:
        """Return the views for presses on messages of an earlier process, which have the same ids in every language."""
        return [each(ENGLISH) for each in (self.consent, self.talk, self.catch_up) if each is not None]


class CheckedCommandTree(app_commands.CommandTree[Any]):
    """A command tree whose every command is checked. All commands work only on servers, not in direct messages.

    `servers`: what each server has chosen. `rooms`: know where the bot is.
    """

    def __init__(
        self,
        client: discord.Client,
        *,
        admission: GuildAdmission,
        rooms: Rooms,
        servers: ServerSettingsBook,
        shards: Shards,
    ) -> None:
        super().__init__(
            client,
            allowed_contexts=app_commands.AppCommandContext(guild=True, dm_channel=False, private_channel=False),
            allowed_installs=app_commands.AppInstallationType(guild=True, user=False),
        )
        self._admission = admission
        self.rooms = rooms
        self.servers = servers
        self._shards = shards
        self._cooldowns = Cooldowns()
        self.buttons = ChatButtons()
        # What returns the views for presses on messages of an earlier process.
        self.lasting_views: list[Callable[[], Iterable[discord.ui.View]]] = [self.buttons.lasting]

    def apply_rules(self) -> None:
        """Set the commands' default permissions. Call it once all are added.

        Raises `KeyError` for a command without a rule, which is a mistake in the code.
        """
        for command in self.get_commands():
            assert isinstance(command, app_commands.Command | app_commands.Group), "there are no context menus"
            # Discord keeps one for a group, so its commands have the same.
            first = next(command.walk_commands()) if isinstance(command, app_commands.Group) else command
            command.default_permissions = RULES[first.qualified_name].default

    async def interaction_check(self, interaction: discord.Interaction, /) -> bool:
        """Return whether the command may run. If not, answer with the reason, which only that person sees."""
        if self._shards.is_divided and interaction.guild_id is not None:
            # Each use of a command is a task of its own, which the room that it opens inherits this from.
            structlog.contextvars.bind_contextvars(shard=self._shards.of(interaction.guild_id))
        if interaction.command is None:
            # discord.py reports the unknown command.
            return True
        name = interaction.command.qualified_name
        if interaction.type is discord.InteractionType.autocomplete:
            # It is no use, and can be answered with suggestions only: without the right there are none.
            if await self._refusal(interaction, name) is None:
                return True
            await attempt(interaction.response.autocomplete([]), None, event="answer_not_sent", command=name)
            return False
        return await self.may_use(interaction, command=name)

    async def may_use(self, interaction: discord.Interaction, *, command: str) -> bool:
        """Return whether somebody may use `command`, or press what does the same. It counts as a use. If they may not,
        they are told why.
        """
        refused, cooldown = await self._refusal(interaction, command), RULES[command].cooldown
        guild_id, person_id = interaction.guild_id, interaction.user.id
        if refused is None and cooldown is not None and guild_id is not None:
            wait_s = self._cooldowns.use(guild_id, person_id, command, cooldown, now=time.monotonic())
            refused = often(wait_s) if wait_s else None
        if refused is not None:
            log.info("command_refused", command=command, guild_id=guild_id, user_id=person_id)
            await attempt(answer(interaction, refused), None, event="answer_not_sent", command=command)
        return refused is None

    async def on_error(self, interaction: discord.Interaction, error: app_commands.AppCommandError, /) -> None:
        name = interaction.command.name if interaction.command else "unknown"
        original = error.original if isinstance(error, app_commands.CommandInvokeError) else error
        await use_failed(interaction, original, name=name)

    async def _refusal(self, interaction: discord.Interaction, command: str) -> Text | None:
        guild = interaction.guild
        # Without one the bot has left a server that is not known here, and Discord does not know it yet.
        verdict = Verdict.UNINVITED if guild is None else await self._admission.check(guild)
        if guild is None or verdict is not Verdict.SERVED:
            return verdict.value
        refused = refusal(command, self.user_of(interaction))
        if not guild.roles and (refused is not None or RULES[command].needs_role):
            # In a new session discord.py knows the server before it knows its roles and who is in which channel.
            return NOT_SHOWN
        return refused

    def user_of(self, interaction: discord.Interaction) -> CommandUser:
        """Return what the rules need to know of the person who uses a command."""
        member = member_of(interaction)
        here, there = self.rooms.room_channel_of(member.guild.id), voice_channel_of(member)
        chosen = self.servers.of(member.guild.id).roles
        return CommandUser(
            member.guild_permissions,
            is_owner=member.id in self._admission.owners,
            is_refused=self._admission.refuses(member.id),
            has_role=not chosen or not role_ids(member).isdisjoint(chosen),
            is_present=here is not None and there is not None and there.id == here.channel_id,
            bot_is_away=here is None,
        )

    def viewer_of(self, interaction: discord.Interaction) -> Viewer:
        """Return what `bot.viewers` needs to know of the person who uses a command here."""
        member = member_of(interaction)
        return viewer_of(
            member,
            self.servers.of(member.guild.id),
            manages=self.user_of(interaction).is_manager,
            is_allowed=lambda channel: is_age_allowed(channel, interaction.channel),
        )


class AnsweringView(discord.ui.View):
    """A view for buttons: if one breaks, the person who pressed it reads why."""

    def add_button(
        self, custom_id: str, label: str, on_press: Callable[[discord.Interaction], Awaitable[None]], **how: Any
    ) -> None:
        """Add a button. `how`: see `discord.ui.Button`."""
        button: discord.ui.Button[AnsweringView] = discord.ui.Button(custom_id=custom_id, label=label, **how)
        button.callback = on_press  # type: ignore[method-assign,assignment]
        self.add_item(button)

    async def on_error(self, interaction: discord.Interaction, error: Exception, item: discord.ui.Item[Any], /) -> None:
        await use_failed(interaction, error, name=getattr(item, "custom_id", "unknown"))


class CheckedView(AnsweringView):
    """A view whose presses are checked as uses of `command` are, and count as such. It asks `tree`."""

    def __init__(self, tree: CheckedCommandTree, command: str, *, timeout: float | None = None) -> None:
        super().__init__(timeout=timeout)
        self.tree = tree
        self.command = command

    async def interaction_check(self, interaction: discord.Interaction, /) -> bool:
        return await self.tree.may_use(interaction, command=self.command)


def over_buttons(custom_ids: Iterable[str], reply: Text) -> AnsweringView:
    """Return what answers a press of a button that nobody waits for any more: after a restart, or when its time is
    over. One serves all messages with these buttons.
    """
    view = AnsweringView(timeout=None)
    for custom_id in custom_ids:
        view.add_button(custom_id, custom_id, partial(answer, reply=reply))
    return view


async def use_failed(interaction: discord.Interaction, error: Exception, *, name: str) -> None:
    """Log a command, a button, a menu or a window that raised an error, and tell the person."""
    about = {"command": name, "guild_id": interaction.guild_id}
    match error:
        case app_commands.CommandNotFound() | app_commands.CommandSignatureMismatch():
            log.warning("command_outdated", **about)
            sentence = OUTDATED
        case app_commands.TransformerError():
            log.info("option_not_found", **about)
            sentence = NOT_FOUND
        case discord.HTTPException(code=code) if code in OVER:
            # Nothing can be told any more. Discord has told the person that the bot did not respond.
            log.warning("command_answered_too_late", **about)
            return
        case _:
            log.error("command_failed", **about, exc_info=error)
            sentence = crash_sentence(error)
    await attempt(answer(interaction, sentence), None, event="answer_not_sent", command=name)
