"""The slash command /reminders: lists reminders and timers, and deletes one. Everybody sees their own; managers see of
those of others only whose they are and when they are due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from discord import app_commands

from bot.channel.markdown import escape_markdown
from bot.discord.answers import answer_when_known, choices, guild_id_of
from bot.texts.text import Text, joined, verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    import discord

    from bot.discord.command_tree import CheckedCommandTree
    from bot.participation.guild_state import GuildStates
    from bot.store.reminders import Reminder, ReminderStore

NONE_KEPT = Text("You have no reminders here. In my voice channel, say: *remind me in ten minutes.*")
DELETED = Text("It is deleted.")
NOT_THERE = Text("You have no such reminder. To see your reminders, use /reminders without a choice.")
HEAD = Text("I will remind you of this:")
HEAD_OF_ALL = Text("These are the reminders on this server. You see only the time of other people's reminders:")


def add_reminders(
    tree: CheckedCommandTree,
    *,
    store: ReminderStore,
    participation: GuildStates,
    zone: tzinfo,
) -> None:
    """Put /reminders on `tree`. `participation`: knows who opted out. `zone`: the time zone of the times that are
    suggested.
    """
    shown = _Reminders(tree, store, participation)

    @tree.command(name="reminders", description="See your reminders, or delete one.")
    @app_commands.describe(delete="Which reminder I delete.")
    @app_commands.guild_only()
    async def reminders(interaction: discord.Interaction, delete: str | None = None) -> None:
        await answer_when_known(
            interaction, shown.listed(interaction) if delete is None else shown.deleted(interaction, delete)
        )

    @reminders.autocomplete("delete")
    async def suggested(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        try:
            found = await shown.of(interaction)
        except StoreError:
            # Discord has no place for the reason here; the command itself gives it.
            return []
        at = {each.id: f"{datetime.fromtimestamp(each.due_at, zone):%Y-%m-%d %H:%M}" for each in found}
        own = {each.id: _words(each) for each in found if each.person_id == interaction.user.id}
        named = [(f"{at[each.id]} · {own.get(each.id, each.person_id)}", str(each.id)) for each in found]
        return choices(named, typed)


@dataclass(frozen=True, slots=True)
class _Reminders:
    """What a person may see and delete. The methods raise `StoreError`."""

    tree: CheckedCommandTree
    store: ReminderStore
    participation: GuildStates

    async def of(self, interaction: discord.Interaction) -> list[Reminder]:
        is_manager, own_id = self.tree.user_of(interaction).is_manager, interaction.user.id
        found = await self.store.of(guild_id := guild_id_of(interaction))
        withheld = await self.participation.withheld_on(guild_id)
        return [each.without_words_of(withheld) for each in found if is_manager or each.person_id == own_id]

    async def listed(self, interaction: discord.Interaction) -> Text:
        if not (found := await self.of(interaction)):
            return NONE_KEPT
        head = HEAD if all(each.person_id == interaction.user.id for each in found) else HEAD_OF_ALL
        lines = [f"- <t:{each.due_at:.0f}:f> {self._shown(each, interaction)}" for each in found]
        return joined((head, *map(verbatim, lines)), "\n")

    def _shown(self, reminder: Reminder, interaction: discord.Interaction) -> str:
        """Return what a person may read of a reminder, as Discord writes it."""
        is_own = reminder.person_id == interaction.user.id
        return escape_markdown(_words(reminder)) if is_own else f"<@{reminder.person_id}>"

    async def deleted(self, interaction: discord.Interaction, wanted: str) -> Text:
        may_delete = {str(each.id): each.id for each in await self.of(interaction)}
        is_gone = wanted in may_delete and await self.store.delete(may_delete[wanted])
        return DELETED if is_gone else NOT_THERE


def _words(reminder: Reminder) -> str:
    return " ".join(filter(None, (reminder.whom and f"{reminder.whom}:", reminder.what))) or "⏲"
