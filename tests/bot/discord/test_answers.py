"""Answers in the language of the person, posts in that of the server, and the commands' names, on the local Discord."""

from __future__ import annotations

import discord
import pytest

from bot.discord.answers import Field, embed_in
from bot.texts.text import Text, verbatim
from rehearsal.discord.guild import GuildSpec, Member
from tests.bot.discord.test_client import ADA, BEN, PATIENCE_S, online, settle

GERMAN = GuildSpec(
    people=(Member(ADA, "Ada", moderator=True, locale="de"), Member(BEN, "Ben", locale="en-GB")), locale="de"
)


@pytest.mark.asyncio
async def test_people_read_their_own_language_and_channels_the_servers() -> None:
    """An answer follows the Discord of the person, and what is written into a channel follows the server."""
    async with online(GERMAN) as (local, client, _):
        answers = {}
        for person in (ADA, BEN):
            result = await local.invoke(person, "join")
            await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
            answers[person] = result.replies[0].content
        assert answers == {
            ADA: "Geh zuerst in einen Sprachkanal, dann benutze /komm.",
            BEN: "Join a voice channel first, then use /join.",
        }
        place = client.place(local.guild.id, 600)
        assert place is not None
        await place.write(Text("I may speak again."))
        await settle(lambda: local.messages)
        assert local.messages[0].content == "Ich darf wieder sprechen."


@pytest.mark.asyncio
async def test_discord_gets_the_names_in_every_language() -> None:
    """Each command is registered with its English name and its German one."""
    async with online() as (local, _, _):
        registered = {command["name"]: command for _, command in local._state.all_commands()}
        assert registered["join"]["name_localizations"] == {"de": "komm"}
        assert registered["join"]["description_localizations"]["de"].startswith("Ruf mich in deinen Sprachkanal")


def test_an_embed_fits_discords_limits() -> None:
    """Parts that are too long are cut, an empty field gets a dash, and the 26th field is left out."""
    fields = [Field(verbatim("n" * 300), verbatim("v" * 2_000)), *[Field(verbatim("x"), verbatim(""))] * 30]
    embed = embed_in("de", title=Text("Hear me"), text=verbatim("t" * 5_000), fields=fields)
    assert isinstance(embed, discord.Embed)
    assert (embed.title, len(embed.description or ""), len(embed.fields)) == ("Hör mich", 4_096, 25)
    assert (len(embed.fields[0].name or ""), len(embed.fields[0].value or "")) == (256, 1_024)
    assert embed.fields[1].value == "–"
