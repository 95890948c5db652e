"""The button *Talk again*, below the sentence that the bot is silent. It does what /talk does, for the same people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import discord

from bot.discord.answers import answer_when_known
from bot.discord.commands.participation import let_talk
from bot.discord.failures import AnsweringView
from bot.texts.catalogue import ENGLISH
from bot.texts.text import Text, in_language

if TYPE_CHECKING:
    from bot.discord.command_tree import CheckedCommandTree
    from bot.discord.commands.participation import Silences

TALK_AGAIN = Text("Talk again")


class TalkButton(AnsweringView):
    """The button. One instance serves all such sentences of an earlier process."""

    def __init__(self, silences: Silences, tree: CheckedCommandTree, language: str = ENGLISH) -> None:
        super().__init__(timeout=None)
        self.talk_again.label = in_language(TALK_AGAIN, language)
        self._silences = silences
        self._tree = tree

    @discord.ui.button(style=discord.ButtonStyle.secondary, custom_id="roomtone:talk-again")
    async def talk_again(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
        """Somebody lets the bot speak again."""
        await answer_when_known(interaction, self._talk(interaction))

    async def _talk(self, interaction: discord.Interaction) -> Text:
        refused = await self._tree.refusal_of_press(interaction, command="talk")
        return refused or await let_talk(self._silences, interaction, tree=self._tree)
