"""Answers in the language of the person, posts in that of the server, and the commands' names, on the local Discord."""

from __future__ import annotations

import itertools

import discord
from hypothesis import given
from hypothesis import strategies as st

from bot.discord.answers import Field, embed_in, message_parts
from bot.texts.text import Text, verbatim
from rehearsal.discord.guild.spec import GuildSpec, Member
from tests.bot.discord.test_client import ADA, BEN, online, settle
from tests.patience import PATIENCE_S

GERMAN = GuildSpec(
    people=(Member(ADA, "Ada", moderator=True, locale="de"), Member(BEN, "Ben", locale="en-GB")), locale="de"
)


async def test_people_read_their_own_language_and_channels_the_servers() -> None:
    """An answer follows the Discord of the person, and what is written into a channel follows the server."""
    async with online(GERMAN) as (local, client, _):
        answers = {}
        for person in (ADA, BEN):
            result = await local.invoke(person, "join")
            await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
            answers[person] = result.replies[0].content
        assert answers == {
            ADA: "Geh zuerst in einen Sprachkanal, dann benutze diesen Befehl noch einmal.",
            BEN: "Join a voice channel first, then use this command again.",
        }
        place = client.place(local.guild.id, 600)
        assert place is not None
        await place.write(Text("I may speak again."))
        await settle(lambda: local.messages)
        assert local.messages[0].content == "Ich darf wieder sprechen."


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


@given(st.text(alphabet="ab \n", max_size=60), st.integers(1, 12))
def test_a_long_text_is_parted_at_lines_or_words_and_nothing_is_lost(text: str, most: int) -> None:
    """Each part fits; only white space is left out between them; a word is cut only if it is too long itself."""
    parts = message_parts(text, most_chars=most)
    assert all(len(part) <= most for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
    for before, after in itertools.pairwise(parts):
        assert before.strip()
        assert after.strip()


def test_a_text_that_fits_is_one_message() -> None:
    """Also an empty one, for an answer that is an embed alone."""
    assert [message_parts(text) for text in ("", "Yes.", "x" * 2_000)] == [[""], ["Yes."], ["x" * 2_000]]
    assert message_parts("One line.\nAnother one.", most_chars=15) == ["One line.", "Another one."]
