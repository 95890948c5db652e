"""The views of all buttons and menus, and what people are told of a command or a button that broke.

Discord does so only if it was not answered at all, and lets somebody wait for a quarter of an hour who was told to.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import discord
import structlog
from discord import app_commands

from bot.discord.answers import answer, is_over
from bot.discord.request_errors import REQUEST_ERRORS
from bot.errors import crash_sentence
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.discord.command_tree import CheckedCommandTree

log = structlog.get_logger()

# A Discord client keeps the commands that it has seen, also while an upgrade of the bot changes them.
OUTDATED = Text("Your Discord shows an old form of this command. Restart it, or press Ctrl+R in it, and try again.")
NOT_FOUND = Text("I cannot find what you have chosen there: it is gone, or not on this server.")


class AnsweringView(discord.ui.View):
    """A view for buttons: if one breaks, the person who pressed it reads why."""

    async def on_error(self, interaction: discord.Interaction, error: Exception, item: discord.ui.Item[Any], /) -> None:
        await press_failed(interaction, error, name=getattr(item, "custom_id", "unknown"))


class CheckedView(AnsweringView):
    """A view whose presses are checked as uses of `command` are, and count as such. It asks `tree`."""

    def __init__(self, tree: CheckedCommandTree, command: str, *, timeout: float | None = None) -> None:
        super().__init__(timeout=timeout)
        self.tree = tree
        self.command = command

    async def interaction_check(self, interaction: discord.Interaction, /) -> bool:
        return await may_press(self.tree, interaction, command=self.command)


async def may_press(tree: CheckedCommandTree, interaction: discord.Interaction, *, command: str) -> bool:
    """Return whether somebody may press what does the same as a command. If not, they are told why."""
    refused = await tree.refusal_of_press(interaction, command=command)
    if refused is not None:
        await answer(interaction, refused)
    return refused is None


class OverButtons(AnsweringView):
    """Answers a press of a button that nobody waits for any more: after a restart, or when its time is over.

    One serves all messages with these buttons.
    """

    def __init__(self, custom_ids: Iterable[str], told: Text) -> None:
        super().__init__(timeout=None)
        for custom_id in custom_ids:
            button: discord.ui.Button[OverButtons] = discord.ui.Button(custom_id=custom_id, label=custom_id)
            button.callback = partial(answer, text=told)  # type: ignore[method-assign]
            self.add_item(button)


async def press_failed(interaction: discord.Interaction, error: Exception, *, name: str) -> None:
    """Log a button, a menu or a window that raised an error, and tell the person."""
    if is_over(error):
        log.warning("button_answered_too_late", button=name, guild_id=interaction.guild_id)
        return
    log.error("button_failed", button=name, guild_id=interaction.guild_id, exc_info=error)
    await _tell(interaction, crash_sentence(error), of=name)


async def command_failed(interaction: discord.Interaction, error: app_commands.AppCommandError) -> None:
    """Log a command that raised an error, and tell the person."""
    name = interaction.command.name if interaction.command else "unknown"
    match error:
        case app_commands.CommandNotFound() | app_commands.CommandSignatureMismatch():
            log.warning("command_outdated", command=name, guild_id=interaction.guild_id)
            sentence = OUTDATED
        case app_commands.TransformerError():
            log.info("option_not_found", command=name, guild_id=interaction.guild_id)
            sentence = NOT_FOUND
        case app_commands.CommandInvokeError() if is_over(error.original):
            # Nothing can be told any more. Discord has told the person that the bot did not respond.
            log.warning("command_answered_too_late", command=name, guild_id=interaction.guild_id)
            return
        case _:
            log.error("command_failed", command=name, guild_id=interaction.guild_id, exc_info=error)
            sentence = crash_sentence(error.original if isinstance(error, app_commands.CommandInvokeError) else error)
    await _tell(interaction, sentence, of=name)


async def _tell(interaction: discord.Interaction, sentence: Text, *, of: str) -> None:
    try:
        await answer(interaction, sentence)
    except REQUEST_ERRORS as failure:
        log.warning("failure_not_told", command=of, error_class=type(failure).__name__)
