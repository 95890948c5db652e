"""The buttons below the notice where the bot asks before it hears anybody (`room.consent = "ask"`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import discord

from bot.discord.answers import answer_when_known, guild_id_of
from bot.discord.failures import CheckedView, may_press
from bot.errors import BotError
from bot.texts.catalogue import ENGLISH
from bot.texts.text import Text, in_language, sentence_of
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.discord.command_tree import CheckedCommandTree

HEARD = Text("I hear you now, until this session ends. *Do not hear me* takes that back at once.")
NOT_HEARD = Text("I do not hear you: what you say is not even decrypted. *Hear me* changes that.")
HEAR_ME = Text("Hear me")
DO_NOT_HEAR_ME = Text("Do not hear me")
_HEAR_ME_ID, _DO_NOT_HEAR_ME_ID = "roomtone:hear-me", "roomtone:do-not-hear-me"
NOT_LISTENING_HERE = Text("I am not listening in this channel now.")


class Consents(Protocol):
    """Keeps who agreed to be heard; `bot.participation.all_guilds.GuildParticipations` implements it."""

    async def set_agreed(self, guild_id: int, person_id: int, *, agrees: bool) -> None:
        """Hear a person on that guild until the session ends, or no longer. Raises `BotError`, `StoreError`."""


class ConsentButtons(CheckedView):
    """The two buttons. One instance serves all notices of an earlier process."""

    def __init__(self, consents: Consents, tree: CheckedCommandTree, language: str = ENGLISH) -> None:
        super().__init__(tree, "opt-in")
        self.hear.label = in_language(HEAR_ME, language)
        self.do_not_hear.label = in_language(DO_NOT_HEAR_ME, language)
        self._consents = consents

    async def interaction_check(self, interaction: discord.Interaction, /) -> bool:
        # Nobody waits to be heard no more.
        pressed: Mapping[str, Any] = interaction.data or {}
        refuses = pressed.get("custom_id") == _DO_NOT_HEAR_ME_ID
        return refuses or await may_press(self.tree, interaction, command="opt-in")

    @discord.ui.button(style=discord.ButtonStyle.success, custom_id=_HEAR_ME_ID)
    async def hear(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
        """The person agrees to be heard."""
        await answer_when_known(interaction, self._choose(interaction, agrees=True))

    @discord.ui.button(style=discord.ButtonStyle.secondary, custom_id=_DO_NOT_HEAR_ME_ID)
    async def do_not_hear(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
        """The person takes it back."""
        await answer_when_known(interaction, self._choose(interaction, agrees=False))

    async def _choose(self, interaction: discord.Interaction, *, agrees: bool) -> Text:
        """Store the choice, and return what the person reads."""
        guild_id = guild_id_of(interaction)
        here = self.tree.whereabouts.place_of(guild_id)
        if here is None or here.channel_id != interaction.channel_id:
            return NOT_LISTENING_HERE
        try:
            await self._consents.set_agreed(guild_id, interaction.user.id, agrees=agrees)
        except (BotError, StoreError) as error:
            return sentence_of(error)
        return HEARD if agrees else NOT_HEARD
