"""What was said while somebody was away, to them alone: `/recap what:missed`, and the button *What did I miss?*"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import discord

from bot.discord.answers import answer, defer, language_of
from bot.discord.audience import channel_name, nearest_channels
from bot.discord.commands.store_failures import not_read
from bot.discord.digest_embed import digest_embed
from bot.discord.failures import AnsweringView
from bot.discord.session_choice import NO_SESSION
from bot.memory.absence import Absence, last_absence
from bot.texts.catalogue import ENGLISH
from bot.texts.text import Text, in_language, verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.discord.command_tree import CheckedCommandTree
    from bot.memory.digests import Digests
    from bot.memory.session_reader import SessionReader
    from bot.readers import Reader

NEVER_AWAY = Text("You have been here all the time. With `minutes` you choose how far back I go.")
NOTHING_MISSED = Text("Nothing was said meanwhile that I may tell.")
MISSED = Text("What did I miss?")
TITLE = Text("While you were away from {channel}")
LATELY = Text("Lately in {channel}")


class CatchUp:
    """Tells people what they missed. `now`: UTC epoch seconds."""

    def __init__(self, reader: SessionReader, digests: Digests, *, now: Callable[[], float]) -> None:
        self._reader = reader
        self._digests = digests
        self._now = now

    async def show(self, interaction: discord.Interaction, person: Reader, minutes: int | None) -> None:
        """Answer with what was said in the last `minutes`, or while the person was away."""
        await defer(interaction)
        sentence, embed = await self._missed(interaction, person, minutes)
        await answer(interaction, sentence, embed=discord.utils.MISSING if embed is None else embed)

    async def _missed(
        self, interaction: discord.Interaction, person: Reader, minutes: int | None
    ) -> tuple[Text, discord.Embed | None]:
        """Return the sentence for the person and the embed; one of them is empty."""
        try:
            session = await self._reader.find(person, nearest=nearest_channels(interaction), catches_up=True)
            if session is None:
                return NO_SESSION, None
            away: Absence | None
            if minutes is not None:
                away = Absence(self._now() - 60 * minutes, None)
            else:
                read = await self._reader.read(session)
                away = last_absence(read.recorded, person.person_id)
            # Who is there and was never seen to come or leave has been there since the bot came.
            never_seen = minutes is None and away is not None and away.until is None and not away.left
            if away is None or (never_seen and person.present_in == session.channel_id):
                return NEVER_AWAY, None
            until = float("inf") if away.until is None else away.until
            digest = await self._digests.of(session, person, since=away.since, until=until, catches_up=True)
        except StoreError as error:
            return not_read(error), None
        if digest.is_empty:
            return NOTHING_MISSED, None
        channel = channel_name(interaction, session.channel_id)
        title = (TITLE if minutes is None else LATELY).fill(channel=channel)
        return verbatim(""), digest_embed(digest, language_of(interaction), title=title, shows_last=True)


class CatchUpButton(AnsweringView):
    """The button below the offer. It does what /recap does with `missed`, for the same people.

    One instance serves all offers of an earlier process.
    """

    def __init__(self, catch_up: CatchUp, tree: CheckedCommandTree, language: str = ENGLISH) -> None:
        super().__init__(timeout=None)
        self._catch_up = catch_up
        self._tree = tree
        self.missed.label = in_language(MISSED, language)

    @discord.ui.button(style=discord.ButtonStyle.secondary, custom_id="roomtone:catch-up")
    async def missed(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
        """Whoever presses reads what they missed."""
        if (refused := await self._tree.refusal_of_press(interaction, command="recap")) is not None:
            await answer(interaction, refused)
            return
        await self._catch_up.show(interaction, self._tree.reader_of(interaction), None)
