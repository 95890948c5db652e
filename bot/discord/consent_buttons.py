"""The buttons below the notice where the bot asks before it hears anybody (`room.consent = "ask"`)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

import discord

from bot.discord.access import OFTEN_IN
from bot.discord.answers import answer_when_known
from bot.discord.cooldowns import Cooldowns, often
from bot.discord.failures import AnsweringView
from bot.errors import BotError
from bot.texts.catalogue import ENGLISH
from bot.texts.text import Text, in_language, sentence_of
from compaction.errors import StoreError

if TYPE_CHECKING:
    from bot.discord.command_tree import BotWhereabouts

HEARD = Text("I hear you now, until this session ends. *Do not hear me* takes that back at once.")
NOT_HEARD = Text("I do not hear you: what you say is not even decrypted. *Hear me* changes that.")
HEAR_ME = Text("Hear me")
DO_NOT_HEAR_ME = Text("Do not hear me")
NOT_LISTENING_HERE = Text("I am not listening in this channel now.")


class Consents(Protocol):
    """Keeps who agreed to be heard; `bot.participation.all_guilds.GuildParticipations` implements it."""

    async def set_agreed(self, guild_id: int, person_id: int, *, agrees: bool) -> None:
        """Hear a person on that guild until the session ends, or no longer. Raises `BotError`, `StoreError`."""


class ConsentButtons(AnsweringView):
    """The two buttons. One instance serves all notices of an earlier process."""

    def __init__(self, consents: Consents, whereabouts: BotWhereabouts, language: str = ENGLISH) -> None:
        super().__init__(timeout=None)
        self.hear.label = in_language(HEAR_ME, language)
        self.do_not_hear.label = in_language(DO_NOT_HEAR_ME, language)
        self._consents = consents
        self._whereabouts = whereabouts
        self._presses = Cooldowns()

    @discord.ui.button(style=discord.ButtonStyle.success, custom_id="roomtone:hear-me")
    async def hear(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
        """The person agrees to be heard."""
        await self.press(interaction, agrees=True)

    @discord.ui.button(style=discord.ButtonStyle.secondary, custom_id="roomtone:do-not-hear-me")
    async def do_not_hear(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
        """The person takes it back."""
        await self.press(interaction, agrees=False)

    async def press(self, interaction: discord.Interaction, *, agrees: bool) -> None:
        """Store the choice, and answer so that only that person sees it."""
        await answer_when_known(interaction, self._told(interaction, agrees=agrees))

    async def _told(self, interaction: discord.Interaction, *, agrees: bool) -> Text:
        try:
            return await self._choose(interaction, agrees=agrees)
        except (BotError, StoreError) as error:
            return sentence_of(error)

    async def _choose(self, interaction: discord.Interaction, *, agrees: bool) -> Text:
        here = None if interaction.guild_id is None else self._whereabouts.place_of(interaction.guild_id)
        if interaction.guild_id is None or here is None or here.channel_id != interaction.channel_id:
            return NOT_LISTENING_HERE
        if agrees:
            # As for /opt-in.
            used = self._presses.use(
                interaction.guild_id, interaction.user.id, "hear-me", OFTEN_IN, now=time.monotonic()
            )
            if used:
                return often(used)
        await self._consents.set_agreed(interaction.guild_id, interaction.user.id, agrees=agrees)
        return HEARD if agrees else NOT_HEARD
